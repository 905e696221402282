package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	// inline is how long an act waits in place, all its waits together. What is ready within this is done in one go;
	// anything longer is waited for by nobody.
	inline = 2 * time.Second
	// maxRounds ends an act that goes round without getting anywhere, which would be a fault of ours.
	maxRounds = 500
	// actGrace is when the watch looks whether an act that was made has begun.
	actGrace = 10 * time.Second
)

// driver drives one job for the length of one claim.
type driver struct {
	w      *Worker
	job    *store.Claimed
	read   time.Time     // when job.Now was read, by our own clock
	reach  time.Duration // how long a node may take to answer
	check  func() error
	req    *job.Request
	log    zerolog.Logger
	inline time.Duration // left of the waits in place
	queue  string        // of the act; empty for the watch
	slot   bool          // a launch slot was held in this drive

	interrupt *interrupt // ends the work under way when the user cancels
}

func (w *Worker) newDriver(c *store.Claimed, check func() error) *driver {
	return &driver{
		w: w, job: c, read: time.Now(), reach: probeLimit, check: check, inline: inline,
		interrupt: newInterrupt(),
		log:       w.log.With().Int64("job", int64(c.ID)).Int("task", c.Cur).Int64("fence", c.Fence).Logger(),
	}
}

// clock is the store's clock as this drive has read it last.
func (d *driver) clock() clock { return clock{store: d.job.Now, read: d.read} }

func (d *driver) now() job.Time { return d.clock().now() }

// drive goes round until there is nothing to do but to wait, and gives the claim back with the last commit. The error is
// nil if the drive ended as it should, also when somebody else has taken the job over.
func (d *driver) drive(ctx context.Context) error {
	seen := job.Seen{}
	refresh := false // commit also without a change, to read what the user wrote meanwhile
	for range maxRounds {
		next, do := job.Decide(d.job.Record, seen, d.w.rules, d.now())
		wait, stay := d.staysFor(next, do)
		if do.Kind == job.DoEnd || do.Kind == job.DoWait && !stay {
			next.Due = do.Until
			return d.finish(ctx, next)
		}
		if d.queue == QueueControl && next.Step == job.StepLaunch { // which has places of its own
			next.Due = 0
			return d.finish(ctx, next)
		}
		if refresh || store.Changes(d.job, &next) {
			if err := d.commit(ctx, next, true); err != nil {
				return d.quietly(err)
			}
			// A wish that came meanwhile is honoured before anything else is done (G7).
			if refresh || d.job.Cancel != nil && next.Cancel == nil {
				seen, refresh = job.Seen{Slot: seen.Slot}, false
				continue
			}
		}
		switch do.Kind {
		case job.DoNext:
			seen = job.Seen{Slot: seen.Slot, Survey: seen.Survey, Probe: seen.Probe}
			continue
		case job.DoWait:
			d.inline -= wait
		}
		err := d.work(ctx, do, wait, &seen)
		switch {
		case errors.Is(err, errCancelled):
			seen, refresh = job.Seen{Slot: seen.Slot}, true
		case err != nil:
			return d.quietly(err)
		case do.Kind == job.DoWait:
			seen = job.Seen{Slot: seen.Slot}
		}
	}
	return d.fault(ctx, fmt.Errorf("%d rounds without an end at step %s", maxRounds, d.job.Step))
}

// work waits or does one thing; a cancel ends it early.
func (d *driver) work(ctx context.Context, do job.Do, wait time.Duration, seen *job.Seen) error {
	ctx, done := d.interrupt.work(ctx)
	defer done()
	if do.Kind == job.DoWait {
		return sleep(ctx, wait)
	}
	return d.perform(ctx, do, seen)
}

// staysFor says how long to wait in place, if at all.
func (d *driver) staysFor(next job.Record, do job.Do) (time.Duration, bool) {
	if do.Kind != job.DoWait || do.Leave || !next.Step.Acts() || next.Wait.For.Code == job.CodeRateLimit {
		return 0, false // in a long line even short waits would take the places of those whose turn it is
	}
	wait := max(do.Until.Sub(d.now()), 0)
	return wait, wait <= d.inline
}

// commit writes a decision.
func (d *driver) commit(ctx context.Context, next job.Record, keep bool) error {
	d.w.at("before commit")
	results, err := d.w.store.Commit(ctx, d.w.store.ShardOf(d.job.ID), store.Commit{From: d.job, Next: next, Keep: keep})
	d.w.at("after commit")
	if err != nil {
		return err
	}
	d.w.metrics.commit(results[0])
	if results[0] != nil {
		return results[0]
	}
	d.read = time.Now()
	d.w.told(d.log, &next)
	return nil
}

// finish commits the last decision of a drive and gives back the claim, and the launch slot if the job needs none now.
func (d *driver) finish(ctx context.Context, next job.Record) error {
	act := d.callAct(&next)
	if err := d.commit(ctx, next, false); err != nil {
		return d.quietly(err)
	}
	d.releaseSlot(ctx, &next)
	if next.Step == job.StepDone {
		d.w.cfg.Journal.ended(next.ID)
	}
	if !act {
		return nil
	}
	return d.w.queue.Dispatch(ctx, actOf(&next)) // if that fails, the watch finds it missing
}

// callAct makes the act of a job that the watch can drive no further, or another kind of act, and reports whether there is one.
// An act that ends in a wait has no need of it: it is made when the wait is over.
func (d *driver) callAct(next *job.Record) bool {
	if !next.Step.Acts() || d.queue == queueOf(next.Step, next.Priority) || d.queue != "" && next.Due > d.now() {
		return false
	}
	next.Dispatch++
	next.Due = d.now().Add(actGrace)
	return true
}

// releaseSlot lets the next job launch. A release that gets lost is made good by the fleet's tick ([Worker.takeBack]).
func (d *driver) releaseSlot(ctx context.Context, rec *job.Record) {
	waits := rec.Step == job.StepLaunch && rec.Wait.For.Code == job.CodeLaunchSlot
	if rec.HoldsSlot() || waits || !d.slot && rec.Step != job.StepDone {
		return
	}
	granted, err := d.w.store.Release(ctx, d.w.caps, rec.ID, rec.Step == job.StepDone)
	if err != nil {
		d.log.Debug().Err(err).Msg("cannot give back the launch slot; it is taken back later")
		return
	}
	d.w.callAll(ctx, granted)
}

// quietly turns "somebody else drives the job now" into a quiet end.
func (d *driver) quietly(err error) error {
	if errors.Is(err, store.ErrStale) {
		d.log.Debug().Msg("somebody else drives this job now")
		return nil
	}
	return err
}

// fault counts an error of our own against the job's budget and gives the claim back.
func (d *driver) fault(ctx context.Context, why error) error {
	line := d.log.Error().Err(why)
	var panicked *panicError
	if errors.As(why, &panicked) {
		line = line.Bytes("stack", panicked.stack)
	}
	line.Msg("an error inside outlast; the job is looked at again later")
	d.w.metrics.faults.Inc()
	return d.finish(ctx, job.Faulted(d.job.Record, why.Error(), d.w.rules, d.now()))
}

// pause gives the claim back with a wait that counts against nothing.
func (d *driver) pause(ctx context.Context, why error) error {
	d.log.Warn().Err(why).Msg("the job is left to another worker")
	return d.finish(ctx, job.Paused(d.job.Record, why.Error(), d.now()))
}

// guarded runs f and turns a panic into an error, so that one damaged job cannot take others down.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return f()
}

type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/planted"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	claimBatch = 200                    // jobs in one claim: about a millisecond of Redis
	lineGrace  = 15 * time.Second       // until the next look at a job that stands in the line for a slot
	commitWait = 10 * time.Millisecond  // how long a decision waits for others to be committed with it
	tickWait   = 300 * time.Millisecond // how long a tick waits for slow bodies; they go on without it
)

// watch is one tick of a shard: claim what is due, look, decide, commit.
func (w *Worker) watch(ctx context.Context, chain string) (time.Duration, error) {
	shard, err := watchShard(chain)
	if err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		due, err := w.store.Take(ctx, shard, claimBatch, w.every/2, w.claim, lineGrace)
		if err != nil {
			return w.every, err
		}
		claimed := time.Now()
		w.tellCorrupt(due.Corrupt)
		err = errors.Join(w.redispatch(ctx, due.Acts), w.askAll(ctx, shard, due, claimed), w.lookAll(ctx, shard, due.Jobs, claimed))
		if err != nil || due.Len() < claimBatch {
			return w.every, err
		}
	}
	return w.every, context.Cause(ctx)
}

func (w *Worker) tellCorrupt(records []*store.CorruptError) {
	for _, corrupt := range records {
		w.metrics.corrupt.Inc()
		w.log.Error().Err(corrupt).Msg("a record is damaged and its job is left alone")
	}
}

// redispatch makes the acts that are missing: that the queue lost, whose worker died, or whose wait is over.
func (w *Worker) redispatch(ctx context.Context, acts []store.Overdue) error {
	var inLine []job.ID
	for _, o := range acts {
		if o.Step == job.StepLaunch && !o.Over && (o.Slot || o.Ran == 0) {
			inLine = append(inLine, o.ID)
		}
	}
	waiting, err := w.store.StandInLine(ctx, inLine)
	if err != nil {
		return err
	}
	for _, o := range acts {
		if waiting[o.ID] {
			continue // it is woken when its turn has come
		}
		if err := w.redispatchOne(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) redispatchOne(ctx context.Context, o store.Overdue) error {
	if o.Ran != o.N {
		found, err := w.queue.look(o.Act)
		switch {
		case err != nil:
			return err
		case found == queuedWaiting || planted.On(planted.G1):
			return nil // only a long queue: no reason for another act
		case found == queuedMissing:
			w.metrics.redispatched.WithLabelValues("lost").Inc()
			return w.queue.Dispatch(ctx, o.Act)
		}
	}
	n, err := w.store.Redispatch(ctx, o, actGrace)
	if err != nil || n == 0 {
		return err
	}
	w.metrics.redispatched.WithLabelValues("due").Inc()
	o.N = n
	return w.queue.Dispatch(ctx, o.Act)
}

// errBusy ends a look that never began: all places were taken for too long.
var errBusy = errors.New("this worker has no place for another look")

// look is a job on its way through one look.
type look struct {
	d    *driver
	next job.Record
	err  error
	act  bool
}

// lookAll looks at the claimed jobs, several at a time, and commits what was decided in batches. It returns when most
// are done: a slow one goes on by itself, so that it delays nobody.
func (w *Worker) lookAll(ctx context.Context, shard int, jobs []store.Claimed, claimed time.Time) error {
	if len(jobs) == 0 {
		return nil
	}
	results := make(chan look, len(jobs))
	queueing, done := context.WithDeadlineCause(ctx, claimed.Add(w.claim/3), errBusy) // later looks would not be in time
	defer done()
	for i := range jobs {
		leave, err := w.places.enter(queueing)
		if err != nil {
			results <- look{d: w.newDriver(&jobs[i], nil), err: err}
			continue
		}
		w.bodies.Go(func() {
			defer leave()
			results <- w.lookAt(ctx, &jobs[i], claimed)
		})
	}
	return w.patiently(func() error { return w.commitLooks(ctx, shard, results, len(jobs)) })
}

// patiently waits for something, but not for long: it goes on by itself.
func (w *Worker) patiently(f func() error) error {
	done := make(chan error, 1)
	w.bodies.Go(func() { done <- f() })
	patience := time.NewTimer(tickWait)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return nil
	}
}

// lookAt observes one job and decides, as far as that goes without an act. It commits nothing.
func (w *Worker) lookAt(tick context.Context, c *store.Claimed, claimed time.Time) look {
	end := claimed.Add(w.claim * 4 / 5) // a look ends before its claim can
	// The tick may end before a slow body does; the worker's stop must still reach it.
	ctx, done := context.WithDeadline(context.WithoutCancel(tick), end)
	defer done()
	defer context.AfterFunc(w.stopping, done)()
	w.metrics.looks.Inc()
	w.looked.Add(1)
	d := w.newDriver(c, func() error {
		if !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		return nil
	})
	d.read = claimed
	w.metrics.lateness.Observe(max(d.now().Sub(c.Due), 0).Seconds())
	d.reach = min(d.reach, time.Until(end)/2) // a node that hangs leaves time to ask its provider
	l := look{d: d}
	l.err = guarded(func() error {
		seen := job.Seen{}
		rec := c.Record
		for range maxRounds {
			next, do := job.Decide(rec, seen, w.rules, d.now())
			l.next = carry(rec, next)
			if next.Step.Acts() || do.Kind == job.DoWait || do.Kind == job.DoEnd {
				l.next.Due = do.Until
				l.act = d.callAct(&l.next)
				return nil
			}
			rec = l.next
			if do.Kind == job.DoNext {
				continue
			}
			if err := d.perform(ctx, do, &seen); err != nil {
				return err
			}
		}
		return errors.New("a look without an end")
	})
	return l
}

// carry keeps what several decisions in one look have put into the outbox.
func carry(before, next job.Record) job.Record {
	next.Events = append(before.Events[:len(before.Events):len(before.Events)], next.Events...)
	next.Past = append(before.Past[:len(before.Past):len(before.Past)], next.Past...)
	return next
}

// commitLooks commits n looks as they come in, in batches.
func (w *Worker) commitLooks(ctx context.Context, shard int, in <-chan look, n int) error {
	ctx = context.WithoutCancel(ctx) // what was seen is committed also when this worker stops
	var failed error
	for n > 0 {
		group := gather(in, n)
		n -= len(group)
		failed = errors.Join(failed, w.commitGroup(ctx, shard, group))
	}
	return failed
}

// gather takes what comes in together, at least one and at most n.
func gather[T any](in <-chan T, n int) []T {
	group := []T{<-in}
	wait := time.NewTimer(commitWait)
	defer wait.Stop()
	for len(group) < n && len(group) < claimBatch {
		select {
		case one := <-in:
			group = append(group, one)
		case <-wait.C:
			return group
		}
	}
	return group
}

func (w *Worker) commitGroup(ctx context.Context, shard int, group []look) error {
	var commits []store.Commit
	var looks []look
	var failed error
	for _, l := range group {
		if l.err != nil {
			failed = errors.Join(failed, w.concludeLook(ctx, l))
			continue
		}
		commits = append(commits, store.Commit{From: l.d.job, Next: l.next})
		looks = append(looks, l)
	}
	if len(commits) == 0 {
		return failed
	}
	w.at("before commit")
	results, err := w.store.Commit(ctx, shard, commits...)
	w.at("after commit")
	if err != nil {
		return errors.Join(failed, err) // their claims run out, and they are looked at again
	}
	for i, err := range results {
		w.metrics.commit(err)
		if err != nil {
			continue // somebody else drives that job now
		}
		w.told(looks[i].d.log, &looks[i].next)
		if looks[i].act {
			failed = errors.Join(failed, w.queue.Dispatch(ctx, actOf(&looks[i].next)))
		}
	}
	return failed
}

// concludeLook ends a look that did not come to a decision.
func (w *Worker) concludeLook(ctx context.Context, l look) error {
	switch {
	case w.stopping.Err() != nil, errors.Is(l.err, errBusy):
		return w.handOver(l.d)
	case errors.Is(l.err, store.ErrUnavailable) || errors.Is(l.err, context.DeadlineExceeded) || errors.Is(l.err, context.Canceled):
		return nil // the claim runs out, and somebody looks again: slowness is no fault of the job
	case errors.Is(l.err, errNotServed):
		return l.d.pause(ctx, l.err)
	default:
		return l.d.fault(ctx, l.err)
	}
}

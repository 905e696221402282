package tasks

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
	"github.com/oklog/ulid/v2"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/lease"
)

// errCancelled interrupts what an act is doing when the user has cancelled: the act goes on, with the cancel.
var errCancelled = errors.New("the user has cancelled")

// handleAct carries out launch, recover and cleanup: they differ only in where the record stands.
func (w *Worker) handleAct(ctx context.Context, t *asynq.Task) error {
	taskID, _ := asynq.GetTaskID(ctx)
	step, id, n, err := parseActID(taskID)
	if err != nil {
		w.log.Error().Err(err).Msg("dropped a task")
		return nil
	}
	w.metrics.acts.WithLabelValues(string(step)).Inc()
	w.busy.Add(1)
	defer w.busy.Add(-1)
	return w.act(ctx, step, id, n)
}

func (w *Worker) act(ctx context.Context, step job.Step, id job.ID, n int64) error {
	began, token := time.Now(), ulid.Make().String()
	agreed, err := w.cfg.Quorum.Take(ctx, w.store.LeaseKey(id), token)
	if err != nil {
		return err // before anything has begun: the task comes again
	}
	defer agreed.Release()
	claimed, err := w.store.Begin(ctx, id, step, n, token, w.leases.TTL())
	var corrupt *store.CorruptError
	switch {
	case errors.Is(err, store.ErrStale):
		return nil
	case errors.As(err, &corrupt):
		w.log.Error().Err(err).Msg("a record is damaged and its job is left alone")
		return nil
	case err != nil:
		return err // the store is away; what this act was for is due again when the claim ends
	}
	work, fence := newInterrupt(), claimed.Fence // the claim itself belongs to the driver
	work.arrived = claimed.Cancel != nil         // a cancel that is known already has nothing to interrupt
	held, lock := w.leases.Keep(ctx, w.store.LeaseKey(id), claimed.Token, began, func(ctx context.Context) error {
		cancelled, err := w.store.Beat(ctx, id, fence, w.leases.TTL())
		if errors.Is(err, store.ErrStale) {
			return lease.ErrLost
		}
		if cancelled {
			work.fire()
		}
		return cmp.Or(err, agreed.Extend(ctx))
	})
	defer lock.Release()
	d := w.newDriver(&claimed, lock.Check)
	d.queue = queueOf(step, claimed.Priority)
	d.interrupt = work
	err = guarded(func() error { return d.drive(held) })
	return w.conclude(held, d, err)
}

// conclude ends a drive that did not end by itself.
func (w *Worker) conclude(ctx context.Context, d *driver, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lease.ErrLost) || errors.Is(context.Cause(ctx), lease.ErrLost):
		w.metrics.lost.Inc()
		d.log.Warn().Msg("the lease was lost: this driver stops and touches nothing more")
		return nil
	case ctx.Err() != nil: // this worker stops: somebody else takes the job at once
		return w.handOver(d)
	case errors.Is(err, store.ErrUnavailable):
		d.log.Warn().Err(err).Msg("the store does not answer; the job is driven on when it does")
		return err
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if errors.Is(err, errNotServed) {
		return d.pause(end, err)
	}
	return d.fault(end, err)
}

// handOver gives the claim back unfinished.
func (w *Worker) handOver(d *driver) error {
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	epoch, err := w.store.Handover(ctx, d.job)
	if err != nil {
		return err
	}
	return w.queue.RunWatch(ctx, w.store.ShardOf(d.job.ID), epoch)
}

package main

import (
	"context"
	"syscall"
	"time"

	"github.com/hibiken/asynq"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/tasks"
)

// slowBoot are zones whose machines take longer to come up than anybody waits here, so that jobs stay in their launches.
const slowBoot = `launches: 64
local:
  zones:
    - {name: a, capacity: 64, boot: 60s}
    - {name: b, capacity: 64, boot: 60s}
`

// actsAtOnce is how many acts are under way at one kill. One worker has room for 32.
const actsAtOnce = 25

// actTakeover: a worker is killed with kill -9 in the middle of acts while another one stands by; the time until
// something is committed to each of those jobs again.
func actTakeover(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, slowBoot)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for i := 0; len(samples) < b.n; i++ {
		more, err := f.killActing(ctx, i)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	return samples, nil
}

// killActing is one kill.
func (f *fleet) killActing(ctx context.Context, i int) ([]float64, error) {
	victim := f.workers[0]
	standby, err := f.startWorker(ctx)
	if err != nil {
		return nil, err
	}
	// Frozen for about a second, so that all jobs begin with the victim.
	if err := standby.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	ids, err := f.submitAll(ctx, "true", actsAtOnce)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "the acts to be under way", func() bool { return len(f.held(ctx, ids)) == len(ids) }); err != nil {
		return nil, err
	}
	if err := pause(ctx, i, time.Second); err != nil {
		return nil, err
	}
	began := time.Now()
	f.kill(victim)
	if err := standby.Process.Signal(syscall.SIGCONT); err != nil {
		return nil, err
	}
	var samples []float64
	dead := f.held(ctx, ids) // with the last commits of the victim
	if err := until(ctx, "the jobs to be driven again", func() bool {
		for id, seq := range dead {
			if rec, err := f.store.Load(ctx, id); err == nil && rec.Seq != seq {
				samples = append(samples, time.Since(began).Seconds())
				delete(dead, id)
			}
		}
		return len(dead) == 0
	}); err != nil {
		return nil, err
	}
	return samples, f.cancelAll(ctx, ids)
}

// held are the jobs of which an act that has created a machine holds the claim, with the number of their last commit.
func (f *fleet) held(ctx context.Context, ids []job.ID) map[job.ID]int64 {
	held := map[job.ID]int64{}
	for _, id := range ids {
		rec, err := f.store.Load(ctx, id)
		if err == nil && rec.HeldTo != 0 && rec.Status() == job.Starting {
			held[id] = rec.Seq
		}
	}
	return held
}

// watchedJobs is how many jobs run quietly while workers are killed. They lie on shards of their own.
const watchedJobs = 25

// watchTakeover: one of two workers is killed with kill -9 in the middle of its ticks while jobs run quietly; each is
// woken at once, and the time until it is looked at is measured. Only those on the shards of those ticks take long.
func watchTakeover(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, roomy)
	if err != nil {
		return nil, err
	}
	defer f.close()
	ids, err := f.submitAll(ctx, traced+"sleep 3600", watchedJobs)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := f.running(ctx, id, 1); err != nil {
			return nil, err
		}
	}
	var samples []float64
	for len(samples) < b.n {
		if _, err := f.startWorker(ctx); err != nil {
			return nil, err
		}
		more, err := f.killWatching(ctx, ids)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	return samples, nil
}

// killWatching is one kill.
func (f *fleet) killWatching(ctx context.Context, ids []job.ID) ([]float64, error) {
	inspect := asynq.NewInspectorFromRedisClient(f.clients[1])
	if err := until(ctx, "ticks to be under way", func() bool {
		ticks, err := inspect.ListActiveTasks(tasks.QueueWatch)
		return err == nil && len(ticks) > 0
	}); err != nil {
		return nil, err
	}
	began := time.Now()
	f.kill(f.workers[0])
	fences := map[job.ID]int64{}
	for _, id := range ids {
		rec, err := f.store.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		fences[id] = rec.Fence
		if err := f.wake(ctx, id); err != nil {
			return nil, err
		}
	}
	var samples []float64
	err := until(ctx, "the jobs to be looked at", func() bool {
		for id, fence := range fences {
			if rec, err := f.store.Load(ctx, id); err == nil && rec.Fence != fence {
				samples = append(samples, time.Since(began).Seconds())
				delete(fences, id)
			}
		}
		return len(fences) == 0
	})
	return samples, err
}

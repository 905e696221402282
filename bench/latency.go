package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// launchLatency: a user submits one job; its first line of code runs.
func launchLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for range b.n {
		began := time.Now()
		id, err := f.submit(ctx, traced)
		if err != nil {
			return nil, err
		}
		started, err := f.start(ctx, id, 1)
		if err != nil {
			return nil, err
		}
		samples = append(samples, millis(started.Sub(began)))
		if err := f.done(ctx, id); err != nil { // one job at a time: it is latency that is measured
			return nil, err
		}
	}
	return samples, nil
}

// cancelLatency: a user cancels a job that runs two processes; its status is CANCELLED and no process of its machine is left.
func cancelLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for len(samples) < b.n {
		var ids []job.ID
		for range 10 {
			id, err := f.submit(ctx, traced+"sleep 1000 & sleep 1000")
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			if err := f.running(ctx, id, 1); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			m, err := f.machineOf(ctx, id)
			if err != nil {
				return nil, err
			}
			began := time.Now()
			if err := f.cancel(ctx, id); err != nil {
				return nil, err
			}
			if err := f.until(ctx, "CANCELLED", func() bool {
				rec, err := f.store.Load(ctx, id)
				return err == nil && rec.Status() == job.Cancelled && !alive(m.ID)
			}); err != nil {
				return nil, err
			}
			samples = append(samples, millis(time.Since(began)))
		}
	}
	return samples, nil
}

// alive reports whether a process of that machine is there.
func alive(machine string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(env, []byte("OUTLAST_INSTANCE="+machine)) {
			return true
		}
	}
	return false
}

// running waits until an attempt's code runs and the record says so.
func (f *fleet) running(ctx context.Context, id job.ID, attempt int) error {
	if _, err := f.start(ctx, id, attempt); err != nil {
		return err
	}
	return f.until(ctx, "RUNNING", func() bool {
		rec, err := f.store.Load(ctx, id)
		return err == nil && rec.Status() == job.Running && rec.Step == job.StepWatch
	})
}

// recoveryLatency: the machine of a job that has run quietly is killed without notice; its code runs on the next one.
func recoveryLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for len(samples) < b.n {
		id, err := f.submit(ctx, traced+"sleep 1000")
		if err != nil {
			return nil, err
		}
		for attempt := 1; attempt <= 10; attempt++ {
			if err := f.running(ctx, id, attempt); err != nil {
				return nil, err
			}
			if err := f.quiet(ctx, attempt); err != nil {
				return nil, err
			}
			m, err := f.machineOf(ctx, id)
			if err != nil {
				return nil, err
			}
			began := time.Now()
			if err := f.local.Preempt(ctx, m.Region, m.ID, 0); err != nil {
				return nil, err
			}
			started, err := f.start(ctx, id, attempt+1)
			if err != nil {
				return nil, err
			}
			samples = append(samples, millis(started.Sub(began)))
		}
		if err := f.cancel(ctx, id); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// quiet lets a while pass that is different each time, so that kills do not follow the rhythm of the ticks.
func (f *fleet) quiet(ctx context.Context, i int) error {
	t := time.NewTimer(time.Duration(300+i*137%1000) * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// takeoverLatency: the worker that drives jobs, each in the middle of an act or under a claim, is killed with kill -9 while another
// one stands by; the time until something is committed to each of them again.
func takeoverLatency(ctx context.Context, b *bench) ([]float64, error) {
	const together = 25 // jobs under way at one kill
	f, err := newFleet(ctx, b, "launches: 64\nlocal:\n  zones:\n    - {name: a, capacity: 64, boot: 60s}\n    - {name: b, capacity: 64, boot: 60s}\n")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for len(samples) < b.n {
		victim := f.workers[len(f.workers)-1]
		var ids []job.ID
		for range together {
			id, err := f.submit(ctx, "true")
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		last := map[job.ID]int64{}
		if err := f.until(ctx, "the acts to be under way", func() bool {
			for _, id := range ids {
				rec, err := f.store.Load(ctx, id)
				if err != nil || rec.HeldTo == 0 || rec.Status() != job.Starting {
					return false
				}
				last[id] = rec.Seq
			}
			return true
		}); err != nil {
			return nil, err
		}
		f.kill(victim)
		began := time.Now()
		for _, id := range ids { // what it still committed
			rec, err := f.store.Load(ctx, id)
			if err != nil {
				return nil, err
			}
			last[id] = rec.Seq
		}
		if err := f.startWorker(ctx); err != nil {
			return nil, err
		}
		if err := f.until(ctx, "the jobs to be driven again", func() bool {
			for id, seq := range last {
				rec, err := f.store.Load(ctx, id)
				if err == nil && rec.Seq != seq {
					samples = append(samples, time.Since(began).Seconds())
					delete(last, id)
				}
			}
			return len(last) == 0
		}); err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := f.cancel(ctx, id); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			if err := f.done(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	return samples, nil
}

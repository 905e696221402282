package main

import (
	"context"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// roomy is a fleet in which no job has to look for room twice.
const roomy = `local:
  zones:
    - {name: a, capacity: 64}
    - {name: b, capacity: 64}
    - {name: c, capacity: 64}
`

// launchLatency: a user submits one job to an idle fleet; its first line of code runs.
func launchLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for i := range b.n {
		if err := pause(ctx, i, 100*time.Millisecond); err != nil {
			return nil, err
		}
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

// cancelTogether is how many jobs run while one of them is cancelled.
const cancelTogether = 10

// cancelLatency: a user cancels a job that runs two processes; its status is CANCELLED and no process of its machine is left.
func cancelLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer f.close()
	var samples []float64
	for len(samples) < b.n {
		ids, err := f.submitAll(ctx, traced+"sleep 1000 & sleep 1000", cancelTogether)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := f.running(ctx, id, 1); err != nil {
				return nil, err
			}
		}
		for i, id := range ids {
			if err := pause(ctx, i, 100*time.Millisecond); err != nil {
				return nil, err
			}
			took, err := f.cancelOne(ctx, id)
			if err != nil {
				return nil, err
			}
			samples = append(samples, millis(took))
		}
	}
	return samples, nil
}

func (f *fleet) cancelOne(ctx context.Context, id job.ID) (time.Duration, error) {
	a, err := f.machineOf(ctx, id)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f.cancel(ctx, id); err != nil {
		return 0, err
	}
	err = until(ctx, "CANCELLED", func() bool {
		rec, err := f.store.Load(ctx, id)
		return err == nil && rec.Status() == job.Cancelled && !alive(a.Nodes[0].ID)
	})
	return time.Since(began), err
}

// runningQuietly is how many jobs lose their machines in turn, so that each has been quiet for some seconds when it does.
const runningQuietly = 10

// recoveryLatency: the machine of a job that has run quietly is killed without notice; its code runs on the next one.
func recoveryLatency(ctx context.Context, b *bench) ([]float64, error) {
	f, err := newFleet(ctx, b, roomy)
	if err != nil {
		return nil, err
	}
	defer f.close()
	ids, err := f.submitAll(ctx, traced+"sleep 3600", runningQuietly)
	if err != nil {
		return nil, err
	}
	var samples []float64
	for i := range b.n {
		id, attempt := ids[i%len(ids)], 1+i/len(ids)
		if err := f.running(ctx, id, attempt); err != nil {
			return nil, err
		}
		if err := pause(ctx, i, time.Second); err != nil {
			return nil, err
		}
		took, err := f.preempt(ctx, id, attempt)
		if err != nil {
			return nil, err
		}
		samples = append(samples, millis(took))
	}
	return samples, nil
}

// preempt takes the machine of an attempt away and returns how long it took until the next one ran the code.
func (f *fleet) preempt(ctx context.Context, id job.ID, attempt int) (time.Duration, error) {
	a, err := f.machineOf(ctx, id)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f.local.Preempt(ctx, a.Offer.Region, a.Nodes[0].ID, 0); err != nil {
		return 0, err
	}
	started, err := f.start(ctx, id, attempt+1)
	return started.Sub(began), err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// blow is a fault of the plan.
type blow struct {
	at    time.Duration // since the begin
	fault *fault
	seed  uint64 // of its own dice: what it hits and for how long
}

// planned throws the plan of a round: which faults, when, in which order.
func planned(seed uint64, lasts, every time.Duration, table []*fault) []blow {
	d := newDice(seed, "plan")
	var weights []int
	for _, f := range table {
		weights = append(weights, f.weight)
	}
	var plan []blow
	if len(table) == 0 {
		return nil
	}
	for at := d.between(every/2, every); at < lasts; at += d.between(every/2, every*3/2) {
		plan = append(plan, blow{at, table[d.weighted(weights)], d.Uint64()})
	}
	return plan
}

// possible are the faults that this round can have, of those that are asked for.
func (r *round) possible() []*fault {
	var table []*fault
	for i := range faults {
		f := &faults[i]
		if (len(r.opts.faults) == 0 || slices.Contains(r.opts.faults, f.name)) && (f.needs == nil || f.needs(r)) {
			table = append(table, f)
		}
	}
	return table
}

// injury is a fault that was begun.
type injury struct {
	history.Fault
	holds string        // what nobody else may break meanwhile
	lasts time.Duration // until it is healed
	heal  func() error  // nil: there is nothing to heal
	after func() error  // what is put in order when it is healed, and holds up nobody's work; may be nil
}

// wounds are what is broken at the moment.
type wounds struct {
	mu    sync.Mutex
	held  map[string]bool
	n     int
	going sync.WaitGroup
}

// take takes a thing to break, unless somebody else has broken it already.
func (w *wounds) take(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "" {
		return true
	}
	if w.held[name] {
		return false
	}
	w.held[name] = true
	return true
}

func (w *wounds) give(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, name)
}

func (w *wounds) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return w.n
}

// errTaken says that what a fault would break is broken already, or not there.
var errTaken = errors.New("nothing left to break")

// breakAll carries the plan out until ctx ends. When it returns, all is healed that was healed by itself.
func (r *round) breakAll(ctx context.Context) {
	plan := planned(r.seed, r.lasts, r.size.blows, r.possible())
	begun := time.Now()
	for _, b := range plan {
		r.detail("plan: %6.1fs %s", b.at.Seconds(), b.fault.name)
	}
	for _, b := range plan {
		if !pause(ctx, time.Until(begun.Add(b.at))) {
			break
		}
		r.strike(ctx, b)
	}
	pause(ctx, time.Until(begun.Add(r.lasts)))
	r.wounds.going.Wait()
}

// strike begins a fault and sees to its end.
func (r *round) strike(ctx context.Context, b blow) {
	in, err := b.fault.inject(r, newDice(b.seed, b.fault.name))
	if errors.Is(err, errTaken) {
		r.detail("%6.1fs %s: %v", r.since(), b.fault.name, err)
		return
	}
	in.Name = b.fault.name
	if in.ID == 0 {
		in.ID, in.At = r.wounds.next(), now()
	}
	if err != nil {
		in.Failed = err.Error()
	}
	r.detail("%6.1fs %s %s %s %s", r.since(), in.Name, in.Target, in.Detail, in.Failed)
	if in.heal == nil {
		in.Healed = now()
	}
	r.out.Add(in.Fault)
	r.struck(in.Fault)
	if in.heal == nil {
		r.wounds.give(in.holds)
		return
	}
	r.wounds.going.Go(func() {
		defer r.wounds.give(in.holds)
		pause(ctx, in.lasts)
		err := in.heal()
		r.out.Add(history.Heal{ID: in.ID, At: now()})
		r.detail("%6.1fs %s %s is healed", r.since(), in.Name, in.Target)
		if err == nil && in.after != nil {
			err = in.after()
		}
		if err != nil {
			r.trouble(fmt.Errorf("heal %s %s: %w", in.Name, in.Target, err))
		}
	})
}

// struck counts a fault.
func (r *round) struck(f history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally[f.Name]++
	if f.Failed != "" {
		r.troubles = append(r.troubles, fmt.Errorf("begin %s %s: %s", f.Name, f.Target, f.Failed))
	}
}

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// look is what a poll sees: a machine, its run, and the faults that there are, all at one time.
type look struct {
	at     int64
	m      record
	there  bool // the machine is known
	run    *run
	faults map[string]faultRecord
}

// looks collects the polls of one process: those that come while others are under way go out together, in one pipeline. One
// that is alone goes out at once.
type looks struct {
	cloud   *Cloud
	mu      sync.Mutex
	waiting []*waiter
	flights int
}

type waiter struct {
	id   string
	done chan struct{} // closed when the rest is filled
	look look
	err  error
}

const (
	mostFlights = 4   // pipelines under way
	mostLooks   = 500 // in one of them
	// flightTime bounds a pipeline: it is not bound to any of its callers, who go away when they like.
	flightTime = 5 * time.Second
)

// at looks at a machine.
func (l *looks) at(ctx context.Context, id string) (look, error) {
	w := &waiter{id: id, done: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	if l.flights < mostFlights {
		l.flights++
		go l.fly()
	}
	l.mu.Unlock()
	select {
	case <-w.done:
		return w.look, w.err
	case <-ctx.Done():
		return look{}, context.Cause(ctx)
	}
}

// fly sends pipelines until nobody waits.
func (l *looks) fly() {
	for {
		l.mu.Lock()
		n := min(len(l.waiting), mostLooks)
		all := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		if n == 0 {
			l.waiting = nil
			l.flights--
		}
		l.mu.Unlock()
		if n == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), flightTime)
		err := l.cloud.lookAt(ctx, all)
		cancel()
		for _, w := range all {
			if err != nil {
				w.err = err
			}
			close(w.done)
		}
	}
}

// lookAt reads the machines of all waiters in one round trip.
func (c *Cloud) lookAt(ctx context.Context, all []*waiter) error {
	type group struct {
		waiters       []*waiter
		machines, run *redis.SliceCmd
	}
	groups := map[string]*group{}
	for _, w := range all {
		home := homeOf(w.id)
		if groups[home] == nil {
			groups[home] = &group{}
		}
		groups[home].waiters = append(groups[home].waiters, w)
	}
	var at *redis.TimeCmd
	var faults *redis.MapStringStringCmd
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		// The time comes first: what is read afterwards may be newer, and a state at an earlier time is still right.
		at, faults = pipe.Time(ctx), pipe.HGetAll(ctx, c.key("faults"))
		for home, g := range groups {
			ids := make([]string, len(g.waiters))
			for i, w := range g.waiters {
				ids[i] = w.id
			}
			g.machines, g.run = pipe.HMGet(ctx, c.key("m:"+home), ids...), pipe.HMGet(ctx, c.key("r:"+home), ids...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	now := at.Val().UnixMilli()
	c.saw(now)
	met := map[string]faultRecord{}
	for id, text := range faults.Val() {
		var f faultRecord
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return fmt.Errorf("the record of a fault is damaged: %w", err)
		}
		if f.Op == OpDial && (f.Until == 0 || f.Until > now) {
			met[id] = f
		}
	}
	for _, g := range groups {
		for i, w := range g.waiters {
			w.look = look{at: now, faults: met}
			w.err = w.look.read(w.id, g.machines.Val()[i], g.run.Val()[i])
		}
	}
	return nil
}

// read fills in what was found of a machine.
func (l *look) read(id string, machine, played any) error {
	text, ok := machine.(string)
	if !ok {
		return nil
	}
	var err error
	if l.m, err = parseRecord(id, text); err != nil {
		return err
	}
	l.there = true
	text, ok = played.(string)
	if !ok {
		return nil
	}
	r, err := parseRun(text)
	l.run = &r
	return err
}

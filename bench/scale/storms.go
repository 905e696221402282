package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// storm is much that happens at once.
type storm struct {
	name, what string
	// raise lets it happen and returns how many jobs run more, or less, when it is over.
	raise func(f *fleet, ctx context.Context) (more int, err error)
	// over waits until it is; nil waits until the right number of jobs runs.
	over func(f *fleet, ctx context.Context) error
}

// calmWithin is how long a storm may last.
const calmWithin = 20 * time.Minute

var storms = []storm{
	{name: "submit", what: "%d submissions at once", raise: (*fleet).raiseSubmit},
	{name: "cancel", what: "%d cancels at once", raise: (*fleet).raiseCancel},
	{name: "zone", what: "a zone with %d machines lost", raise: (*fleet).raiseZone, over: (*fleet).allHaveMachines},
	{name: "restart", what: "all workers restarted at once", raise: (*fleet).raiseRestart, over: (*fleet).allLooked},
}

func stormNames() []string {
	var names []string
	for _, s := range storms {
		names = append(names, s.name)
	}
	return names
}

// storm raises one storm while somebody submits an urgent job each second.
func (f *fleet) storm(ctx context.Context, name string, r *report) error {
	var s storm
	for _, one := range storms {
		if one.name == name {
			s = one
		}
	}
	size := f.options.storm
	if name != "submit" {
		size /= 2
	}
	what := s.what
	if name != "restart" {
		what = fmt.Sprintf(s.what, size)
	}
	say("storm: %s", what)
	if err := f.forget(ctx); err != nil {
		return err
	}
	before, err := f.usage(ctx)
	if err != nil {
		return err
	}
	around := f.watch(ctx)
	stop := f.profile(ctx, "storm-"+name)
	began := time.Now()
	more, err := s.raise(f, ctx)
	if err == nil && s.over != nil {
		err = s.over(f, ctx)
	} else if err == nil {
		err = f.calmAround(ctx, around, f.live+more)
	}
	took := time.Since(began)
	ids := around.stop()
	stop()
	if err != nil {
		return err
	}
	f.live += more + len(ids)
	if err := f.calm(ctx, calmWithin, f.live); err != nil {
		return err
	}
	waits, err := f.waits(ctx, ids)
	if err != nil {
		return err
	}
	after, err := f.usage(ctx)
	if err != nil {
		return err
	}
	out := weather{
		Name: name, What: what, Live: f.live, Calm: took.Seconds(), Urgent: len(ids), UrgentP50: waits.quantile(.5), UrgentMax: waits.quantile(1),
		PeakCalls: around.peak, Limit: f.rate + max(f.rate/10, 1),
		RedisCores: (after.redis - before.redis).Seconds() / took.Seconds(),
	}
	if name != "restart" { // else they are others
		out.WorkerCores, out.LateMax = (after.workers-before.workers).Seconds()/took.Seconds(), after.late.since(before.late).most()
	} else {
		out.LateMax = after.late.most()
	}
	r.Storms = append(r.Storms, out)
	say("  calm after %.1f s; urgent jobs waited %.2f s, at most %.2f s; at most %.0f calls a second", out.Calm, out.UrgentP50, out.UrgentMax, out.PeakCalls)
	return nil
}

// calmAround waits until a storm is over: so many jobs run, and those that were submitted meanwhile.
func (f *fleet) calmAround(ctx context.Context, a *around, running int) error {
	last := time.Now()
	return until(ctx, calmWithin, "calm", func() (bool, error) {
		by, err := f.store.Statuses(ctx)
		if err != nil {
			return false, err
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			say("  %d run, %d wait, %d start, %d recover, %d are being cancelled", by[job.Running], by[job.Pending], by[job.Starting], by[job.Recovering], by[job.Cancelling])
		}
		moving := by[job.Pending] + by[job.Starting] + by[job.Recovering] + by[job.Cancelling]
		if moving > 2 { // but for urgent ones on their way
			return false, nil
		}
		n := int(by[job.Running])
		return n >= running && n <= running+a.count(), nil
	})
}

// The storm of submissions has jobs of two names, so that half of them can be cancelled at once.
func (f *fleet) raiseSubmit(ctx context.Context) (int, error) {
	for i, name := range []string{"storm-a", "storm-b"} {
		part := f.options.storm / 2
		for left := part; left > 0; left -= min(left, batch) {
			if _, err := f.submit(ctx, name, min(left, batch), 0); err != nil {
				return 0, fmt.Errorf("part %d: %w", i, err)
			}
		}
	}
	return f.options.storm, nil
}

func (f *fleet) raiseCancel(ctx context.Context) (int, error) {
	name := "storm-a"
	ids, woken, err := f.store.CancelWhere(ctx, &name, "bench", 30*time.Second)
	if err != nil {
		return 0, err
	}
	for _, w := range woken {
		if err := f.queue.RunWatch(ctx, w.Shard, w.Epoch); err != nil {
			return 0, err
		}
	}
	return -len(ids), nil
}

func (f *fleet) raiseZone(ctx context.Context) (int, error) {
	n, err := f.world.LoseZone(ctx, doomedZone)
	if err != nil {
		return 0, err
	}
	say("  %d machines are lost", n)
	return 0, until(ctx, 2*time.Minute, "anybody to notice", func() (bool, error) { // else it would look calm
		by, err := f.store.Statuses(ctx)
		return int(by[job.Recovering]) > n/20, err
	})
}

// allHaveMachines waits until as many machines live as jobs run: a job whose loss nobody has noticed yet looks calm, too.
func (f *fleet) allHaveMachines(ctx context.Context) error {
	return until(ctx, calmWithin, "all jobs to have machines", func() (bool, error) {
		by, err := f.store.Statuses(ctx)
		if err != nil || by[job.Recovering]+by[job.Starting] > 2 {
			return false, err
		}
		nodes, err := f.world.Machines(ctx)
		living := int64(0)
		for _, n := range nodes {
			if !n.State.Ended() {
				living++
			}
		}
		return living >= by[job.Running], err
	})
}

func (f *fleet) raiseRestart(ctx context.Context) (int, error) {
	if err := f.stopWorkers(); err != nil {
		return 0, err
	}
	return 0, f.startWorkers(ctx)
}

// allLooked waits until no look is late by more than a second.
func (f *fleet) allLooked(ctx context.Context) error {
	return until(ctx, calmWithin, "all to be looked at", func() (bool, error) {
		now, err := f.store.Now(ctx)
		if err != nil {
			return false, err
		}
		pipe := f.redis.rdb.Pipeline()
		var late []*redis.IntCmd
		for shard := range f.store.Shards() {
			late = append(late, pipe.ZCount(ctx, fmt.Sprintf("ol:{s%02d}:due", shard), "-inf", strconv.FormatInt(int64(now)-1000, 10)))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return false, err
		}
		n := int64(0)
		for _, c := range late {
			n += c.Val()
		}
		return n == 0, nil
	})
}

// around is what goes on during a storm: an urgent submission each second, and a look at how many calls there were.
type around struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
	mu     sync.Mutex
	ids    []job.ID
	peak   float64 // calls a second that change machines
}

// urgentEvery is how often somebody submits a job of the highest priority.
const urgentEvery = time.Second

func (f *fleet) watch(ctx context.Context) *around {
	a := &around{}
	ctx, a.cancel = context.WithCancel(ctx)
	a.loops.Go(func() {
		for pause(ctx, urgentEvery) == nil {
			ids, err := f.submit(ctx, "urgent", 1, job.MaxPriority)
			if err != nil {
				continue
			}
			a.mu.Lock()
			a.ids = append(a.ids, ids...)
			a.mu.Unlock()
		}
	})
	a.loops.Go(func() { a.count1(ctx, f) })
	return a
}

// count1 looks each second how many calls there were.
func (a *around) count1(ctx context.Context, f *fleet) {
	seen, at := map[string]float64{}, map[string]time.Time{} // by worker
	for pause(ctx, time.Second) == nil {
		sum := 0.0
		for _, w := range f.workers {
			u := usage{calls: map[string]float64{}}
			if w.url == "" || w.scrape(ctx, &u) != nil {
				continue
			}
			now := time.Now()
			if last, known := at[w.url]; known {
				sum += (u.changes() - seen[w.url]) / now.Sub(last).Seconds()
			}
			seen[w.url], at[w.url] = u.changes(), now
		}
		a.mu.Lock()
		a.peak = max(a.peak, sum)
		a.mu.Unlock()
	}
}

func (a *around) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

// stop ends it and returns the jobs that were submitted.
func (a *around) stop() []job.ID {
	a.cancel()
	a.loops.Wait()
	return a.ids
}

// waits are the times from submission to the start of the user's code, in seconds.
func (f *fleet) waits(ctx context.Context, ids []job.ID) (sorted, error) {
	records, _, err := f.store.LoadMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, r := range records {
		out = append(out, r.Tasks[0].StartedAt.Sub(r.SubmittedAt).Seconds())
	}
	return sortedOf(out), nil
}

// holds reports whether a fleet is looked at in time.
func (q quiet) holds() bool { return q.LateP99 < 1 }

// search doubles the fleet, and then halves the step, until it is known how many jobs hold.
func (f *fleet) search(ctx context.Context, r *report) error {
	held := f.live
	for n := min(f.live*2, f.options.search); ; {
		if err := f.grow(ctx, n, r); err != nil {
			return err
		}
		if err := f.quietly(ctx, r); err != nil {
			return err
		}
		if !r.Quiet[len(r.Quiet)-1].holds() {
			break
		}
		held = n
		if n == f.options.search {
			break
		}
		n = min(n*3/2, f.options.search)
	}
	r.Largest = held
	return nil
}

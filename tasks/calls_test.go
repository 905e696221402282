package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/lease"
)

// once is a rate that lets so many calls through, and no more while a test runs.
func once(burst float64) store.Rate { return store.Rate{PerSecond: 1.0 / 3600, Burst: burst} }

// TestG9_CallsWaitInTheRecord ensures that acts of all workers which find no turn for their calls wait in their records, and
// that neither a place of a worker nor a launch slot is held meanwhile; and that those with the higher priority come first.
func TestG9_CallsWaitInTheRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	offer := job.Offer{Provider: "far", Region: "r", Zone: "r", Type: "t", Price: 1}
	var mu sync.Mutex
	var created []job.ID
	var machines []cloud.Node
	far := &rented{
		name: "far", regions: func(context.Context) ([]string, error) { return []string{"r"}, nil },
		offers: func(context.Context) ([]job.Offer, error) { return []job.Offer{offer}, nil },
		list: func(context.Context, string) ([]cloud.Node, error) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(machines), nil
		},
		create: func(r cloud.Request) ([]cloud.Node, error) {
			mu.Lock()
			defer mu.Unlock()
			created = append(created, r.Job)
			machines = append(machines, cloud.Node{Identity: r.Identity, ID: "m" + r.Token, Provider: "far", Region: "r", State: cloud.Booting})
			return machines[len(machines)-1:], nil
		},
	}
	caps := store.Caps{Launches: 8}
	ids := b.submit(8)
	if _, err := b.store.Join(t.Context(), caps, 0, ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := b.queue.Dispatch(t.Context(), store.Act{ID: id, Step: job.StepLaunch, N: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var workers []*Worker
	for _, name := range []string{"one", "two"} {
		w := b.worker(func(c *Config) {
			c.Name, c.Acts, c.Caps, c.Rules = name, 2, caps, job.DefaultRules
			c.Sites = Sites{"far": site(far, hangs)}
			c.Sites["far"].Limits = Limits{Write: once(3)}
		})
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
	}
	waits := func() int {
		return len(slices.DeleteFunc(slices.Clone(ids), func(id job.ID) bool {
			rec := b.load(id)
			return rec.Wait.For.Code != job.CodeRateLimit || rec.HoldsSlot() || rec.HeldTo != 0
		}))
	}
	b.until("five of eight to wait for their turn", func() bool { return waits() == 5 })
	mu.Lock()
	made := slices.Clone(created)
	mu.Unlock()
	if len(made) != 3 {
		t.Errorf("%d machines were made, of three that were allowed", len(made))
	}
	for _, id := range made {
		if rec := b.load(id); len(rec.Live) != 1 || rec.Live[0].Number != 1 {
			t.Errorf("job %d has the attempts %+v", id, rec.Live)
		}
	}
	if busy := workers[0].busy.Load() + workers[1].busy.Load(); busy > 3 { // the three wait in place for their machines to boot
		t.Errorf("%d places for acts are taken", busy)
	}
	if n, err := b.store.Redis().ZCard(t.Context(), "ol:{d}:slots").Result(); err != nil || n > 3 {
		t.Errorf("%d launch slots are held (%v)", n, err)
	}
}

// TestG8_ThrottledAnswersSlowAllWorkersDown ensures that a provider that says it is asked too much is asked less by everybody,
// and that calls which were not made are not counted as calls or errors of it.
func TestG8_ThrottledAnswersSlowAllWorkersDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var asked atomic.Int64
	far := &rented{name: "far", list: func(context.Context, string) ([]cloud.Node, error) {
		asked.Add(1)
		return nil, &cloud.Error{Op: "list", Class: job.Throttled, Err: errors.New("slow down")}
	}}
	list := func(worker string) error {
		w := b.worker(func(c *Config) {
			c.Name, c.Sites = worker, Sites{"far": site(far, nil)}
			c.Sites["far"].Limits = Limits{Read: store.Rate{PerSecond: 0.01, Burst: 1000}}
		})
		_, err := w.sites["far"].Provider.List(t.Context(), "r")
		return err
	}
	if err := list("one"); cloud.ClassOf(err) != job.Throttled || waitOf(err) != 0 {
		t.Fatalf("the answer of the provider became %v", err)
	}
	err := list("two")
	if cloud.ClassOf(err) != job.Throttled || waitOf(err) < time.Second || asked.Load() != 1 {
		t.Errorf("another worker was let through at once: %v, %d calls", err, asked.Load())
	}
}

// TestG10_NoStoreIsNoVerdictOnACall ensures that a call is not made, and is not taken for one that failed, when the store
// does not tell whether its turn has come.
func TestG10_NoStoreIsNoVerdictOnACall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", terminate: func(cloud.Match) error { t.Error("it was called"); return nil }}
	w := b.worker(func(c *Config) {
		c.Sites = Sites{"far": site(far, nil)}
		c.Sites["far"].Limits = Limits{Write: once(1)}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.sites["far"].Provider.Terminate(ctx, "r", cloud.Match{}); waitOf(err) <= 0 || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestG2_LeaseIsLostWhileTheTurnIsAsked ensures that a driver which loses its lease while it asks for the turn of a call, as one
// does whose Redis hangs just then, does not make that call.
func TestG2_LeaseIsLostWhileTheTurnIsAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := 0
	far := &rented{
		name:      "far",
		create:    func(cloud.Request) ([]cloud.Node, error) { made++; return nil, nil },
		terminate: func(cloud.Match) error { made++; return nil },
	}
	for _, limits := range []Limits{{}, {Write: once(9)}} {
		w := b.worker(func(c *Config) {
			c.Sites = Sites{"far": site(far, nil)}
			c.Sites["far"].Limits = limits
		})
		ids := b.submit(1)
		d := b.begun(w, ids[0], job.PhaseIntent)
		checks := 0
		d.check = func() error {
			if checks++; checks > 1 {
				return lease.ErrLost
			}
			return nil
		}
		for _, kind := range []job.DoKind{job.DoCreate, job.DoTerminate} {
			checks = 0
			d.job.Live = []job.Attempt{{Number: 1, Offer: job.Offer{Provider: "far", Region: "r"}}}
			var seen job.Seen
			if err := d.perform(t.Context(), job.Do{Kind: kind, Attempt: 1}, &seen); err != nil || made > 0 {
				t.Errorf("%s: made %d calls, %v", kind, made, err)
			}
		}
	}
}

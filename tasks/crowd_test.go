package tasks

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a provider whose creates hang takes no place from what is to be done elsewhere: another provider is called, and a
// cancel comes to its end, however many launches wait for the one that hangs. Those that found no place wait in the record (G9).
func TestG9_HangingCreatesDelayNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var near, far atomic.Int64
	provider := func(name string, create func(context.Context) ([]cloud.Node, error)) *Site {
		s := site(&rented{
			name:    name,
			regions: func(context.Context) ([]string, error) { return []string{"r"}, nil },
			offers: func(context.Context) ([]job.Offer, error) {
				return []job.Offer{{Provider: name, Region: "r", Type: "t", Price: 1}}, nil
			},
			list:      func(context.Context, string) ([]cloud.Node, error) { return []cloud.Node{}, nil },
			terminate: func(cloud.Match) error { return nil },
		}, hangs)
		s.Provider = creates{s.Provider, create}
		return s
	}
	w := b.worker(func(c *Config) {
		c.Acts, c.Rules, c.Caps = 4, job.DefaultRules, store.Caps{Launches: 64}
		c.Archive, _ = b.files()
		c.Sites = Sites{
			"far": provider("far", func(ctx context.Context) ([]cloud.Node, error) {
				far.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}),
			"near": provider("near", func(context.Context) ([]cloud.Node, error) {
				near.Add(1)
				return nil, &cloud.Error{Op: "create", Class: job.Capacity, Err: context.Canceled}
			}),
		}
	})
	w.crowd.patience = 20 * time.Millisecond
	at := func(name string) func(*job.TaskRequest) {
		return func(r *job.TaskRequest) { r.Resources.Any = []job.Want{{Provider: name}} }
	}
	waiting := b.submit(12, at("far"))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("launches that hang", func() bool { return far.Load() >= 2 })
	b.until("a launch that found no place to wait in its record", func() bool {
		for _, id := range waiting {
			if b.load(id).Wait.For.Code == job.CodeRateLimit {
				return true
			}
		}
		return false
	})
	b.submit(1, at("near"))
	b.until("the other provider to be called", func() bool { return near.Load() > 0 })
	for _, id := range waiting {
		if rec := b.load(id); rec.Wait.For.Code == job.CodeRateLimit {
			if _, err := b.store.Cancel(t.Context(), id, "test", 0); err != nil {
				t.Fatal(err)
			}
			b.until("the cancel to be honoured", func() bool { rec := b.load(id); return rec.Status() == job.Cancelled })
			return
		}
	}
}

// creates is a provider whose create calls do what a test says, as long as it lets them.
type creates struct {
	cloud.Provider
	create func(context.Context) ([]cloud.Node, error)
}

func (c creates) Create(ctx context.Context, _ cloud.Request) ([]cloud.Node, error) {
	return c.create(ctx)
}

// Ensure that only calls that are slow count, and only as long as they last.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := newCrowd(2)
	c.patience = time.Millisecond
	_, quick, full := c.enter(t.Context(), "a")
	if full != nil {
		t.Fatal(full)
	}
	quick()
	var leave []func()
	for range 2 {
		_, f, full := c.enter(t.Context(), "a")
		if full != nil {
			t.Fatal(full)
		}
		leave = append(leave, f)
	}
	b := &bench{T: t}
	b.until("two slow calls", func() bool {
		_, f, full := c.enter(t.Context(), "a")
		f()
		return full != nil && full.Class == job.Throttled && full.Wait > 0
	})
	if _, f, full := c.enter(t.Context(), "b"); full != nil {
		t.Errorf("another kind is full: %+v", full)
	} else {
		f()
	}
	leave[0]()
	leave[0]() // once is enough
	_, f, full := c.enter(t.Context(), "a")
	if full != nil {
		t.Errorf("it is still full: %+v", full)
	}
	f()
	leave[1]()
	if c.slow["a"] != 0 {
		t.Errorf("%d calls are slow for ever", c.slow["a"])
	}
}

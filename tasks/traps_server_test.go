package tasks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/store"
)

// farewell is how a handler sees the end of its server.
type farewell struct {
	told      bool // that this worker stops
	givenAway bool // its task was out of its hands while it still ran
}

// Ensure the trap of the shutdown: asynq pushes the tasks of handlers back that it has never told to stop; and with a
// BaseContext that ends, it gives them away the moment it does, while their handlers are still ending. Ours are told,
// and keep their tasks until they return, so that no other worker begins what this one is about to hand over.
func TestTrap_Shutdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings func(*Worker, *asynq.Config)
		ours     bool
		want     farewell
	}{
		"open: as asynq comes": {settings: func(*Worker, *asynq.Config) {}, want: farewell{givenAway: true}},
		"open: with a BaseContext": {
			settings: func(w *Worker, c *asynq.Config) { c.BaseContext = func() context.Context { return w.stopping } },
			want:     farewell{told: true, givenAway: true},
		},
		"closed": {ours: true, want: farewell{told: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w, id := b.worker(), b.act(1)
			running, ended := make(chan struct{}), make(chan farewell, 1)
			h := asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
				close(running)
				ended <- b.takeLeave(ctx, id)
				return nil
			})
			queues := map[string]int{QueueControl: 1}
			if c.ours {
				if err := w.serve(h, 1, queues); err != nil {
					t.Fatal(err)
				}
			} else {
				cfg := w.serverConfig(1, queues)
				cfg.ShutdownTimeout = 500 * time.Millisecond
				c.settings(w, &cfg)
				s := asynq.NewServerFromRedisClient(w.cfg.Queue, cfg)
				if err := s.Start(h); err != nil {
					t.Fatal(err)
				}
				w.servers = append(w.servers, s)
			}
			<-running
			w.Stop()
			if c.ours && len(ended) == 0 {
				t.Error("the worker has stopped before its handler")
			}
			have := <-ended
			if have != c.want {
				t.Errorf("have %+v, want %+v", have, c.want)
			}
			if c.ours && b.task(QueueControl, id) != nil {
				t.Error("the end of the handler was not written")
			}
		})
	}
}

// takeLeave works until ctx ends, and then takes some time to end, as a driver does that hands its job over. All along
// it looks whether its task is still its own.
func (b *bench) takeLeave(ctx context.Context, id string) farewell {
	givenAway := func() bool { return !b.is(QueueControl, id, asynq.TaskStateActive) }
	poll(benchPatience, func() bool { return ctx.Err() != nil || givenAway() })
	told := errors.Is(context.Cause(ctx), ErrStopping) // asynq's own way is to cancel, after it has pushed back
	return farewell{told: told, givenAway: poll(time.Second, givenAway)}
}

// stuck is a provider that answers nothing.
type stuck struct {
	cloud.Provider
	asked chan struct{}
}

func (s *stuck) Name() string                              { return "stuck" }
func (s *stuck) Regions(context.Context) ([]string, error) { return nil, nil }

func (s *stuck) Support() place.Support { return nil }

func (s *stuck) Offers(ctx context.Context) ([]job.Offer, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// counter counts the calls about the watch of shard 0.
type counter struct {
	keepWrites // for the hooks that change nothing
	n          atomic.Int64
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.ContainsFunc(cmd.Args(), func(a any) bool { k, ok := a.(string); return ok && strings.HasSuffix(k, "{s00}:chain") }) {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

// Ensure the trap of the full server: acts that wait for a provider fill all places of a server, and what is behind them
// waits, however urgent. The watch has a server of its own.
func TestTrap_FullServer(t *testing.T) {
	t.Parallel()
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.act(1)
		full, end := make(chan struct{}, 1), make(chan struct{})
		b.serve(b.redis.Client(t), func(context.Context, *asynq.Task) error {
			full <- struct{}{}
			<-end
			return nil
		}, func(c *asynq.Config) { c.Concurrency, c.Queues[QueueWatch] = 1, 100 })
		t.Cleanup(func() { close(end) })
		<-full
		if err := b.queue.beginChain(t.Context(), "watch-0", 1); err != nil {
			t.Fatal(err)
		}
		if poll(time.Second, func() bool { return !b.is(QueueWatch, "watch-0:1", asynq.TaskStatePending) }) {
			t.Error("asynq has found a place: the trap is gone")
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		ids, err := b.store.Submit(t.Context(), store.Submission{Request: job.Request{Tasks: []job.TaskRequest{{
			Run: "true", Resources: job.Resources{Any: []job.Want{{Provider: "stuck"}}},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		calls, provider := &counter{}, &stuck{asked: make(chan struct{}, 8)}
		b.store.Redis().AddHook(calls)
		w := b.worker(func(c *Config) {
			c.Acts, c.Sites = 1, Sites{"stuck": {Provider: provider, ViewEvery: time.Second}}
			c.Caps = store.Caps{Launches: 1}
		})
		if _, err := b.store.Join(t.Context(), w.caps, 0, ids); err != nil {
			t.Fatal(err)
		}
		if err := b.queue.Dispatch(t.Context(), store.Act{ID: ids[0], Step: job.StepLaunch, N: 1}); err != nil {
			t.Fatal(err)
		}
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-provider.asked // by the act and by the chain that tells the offers
		<-provider.asked
		before := calls.n.Load()
		b.until("ticks while the only place for acts is taken", func() bool { return calls.n.Load() > before+4 })
		if w.busy.Load() != 1 {
			t.Error("the act did not last")
		}
	})
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// benchPatience is how long anything may take before a test gives up on it. It is no measurement: the machine may be busy.
const benchPatience = 30 * time.Second

// bench is a Redis with a deployment and its queues, for one test.
type bench struct {
	*testing.T
	redis *redistest.Server
	store *store.Store
	queue *Dispatcher
	tasks *asynq.Client // asynq's own, to do what ours would not
}

func newBench(t *testing.T) *bench {
	t.Helper()
	srv := redistest.Start(t)
	s, err := store.Found(t.Context(), srv.Client(t), store.Deployment{ID: "test", Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	client := srv.Client(t)
	KeepWrites(client)
	return &bench{T: t, redis: srv, store: s, queue: NewDispatcher(client), tasks: asynq.NewClientFromRedisClient(client)}
}

// worker makes a worker that is stopped at the end of the test. It is not started.
func (b *bench) worker(change ...func(*Config)) *Worker {
	b.Helper()
	client := b.redis.Client(b)
	KeepWrites(client)
	cfg := Config{Name: "test", Store: b.store, Queue: client, Log: zerolog.Nop()}
	for _, f := range change {
		f(&cfg)
	}
	w := New(cfg)
	b.Cleanup(w.Stop)
	return w
}

// serve runs an asynq server with the settings of our worker, but quicker, and with those that a test changes.
func (b *bench) serve(client redis.UniversalClient, h asynq.HandlerFunc, change ...func(*asynq.Config)) *asynq.Server {
	b.Helper()
	cfg := b.worker().serverConfig(4, map[string]int{QueueWatch: 1, QueueControl: 1, QueueLaunch: 1, QueueFleet: 1})
	cfg.TaskCheckInterval = 20 * time.Millisecond
	cfg.DelayedTaskCheckInterval = 50 * time.Millisecond
	cfg.LogLevel = asynq.FatalLevel // what goes wrong here is meant to
	for _, f := range change {
		f(&cfg)
	}
	s := asynq.NewServerFromRedisClient(client, cfg)
	if err := s.Start(h); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Shutdown)
	return s
}

// act makes act n of job 1's clean-up, which nothing but the test handles.
func (b *bench) act(n int64) string {
	b.Helper()
	if err := b.queue.Dispatch(b.Context(), store.Act{ID: 1, Step: job.StepCleanup, N: n}); err != nil {
		b.Fatal(err)
	}
	return actID(job.StepCleanup, 1, n)
}

// task is what the queue knows of a task; nil if nothing.
func (b *bench) task(queue, id string) *asynq.TaskInfo {
	b.Helper()
	info, err := b.queue.inspect.GetTaskInfo(queue, id)
	if err != nil && !errors.Is(err, asynq.ErrTaskNotFound) && !errors.Is(err, asynq.ErrQueueNotFound) {
		b.Fatal(err)
	}
	return info
}

// is reports whether a task is in a state.
func (b *bench) is(queue, id string, s asynq.TaskState) bool {
	b.Helper()
	info := b.task(queue, id)
	return info != nil && info.State == s
}

// until waits until a condition holds.
func (b *bench) until(what string, holds func() bool) {
	b.Helper()
	if !poll(benchPatience, holds) {
		b.Fatalf("waited too long for %s", what)
	}
}

// poll reports whether a condition holds within some time.
func poll(limit time.Duration, holds func() bool) bool {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	end := time.After(limit)
	for !holds() {
		select {
		case <-look.C:
		case <-end:
			return false
		}
	}
	return true
}

// Ensure that a task carries nothing but its name, is never archived, and leaves nothing behind.
func TestDispatchedTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.act(7)
	if err := b.queue.beginChain(t.Context(), "watch-1", 3); err != nil {
		t.Fatal(err)
	}
	type options struct {
		ID, Queue, Kind, Payload string
		MaxRetry                 int
		Timeout, Retention       time.Duration
	}
	have := []options{}
	for _, info := range []*asynq.TaskInfo{b.task(QueueControl, id), b.task(QueueWatch, "watch-1:3")} {
		if info == nil {
			t.Fatal("a task is missing")
		}
		have = append(have, options{info.ID, info.Queue, info.Type, string(info.Payload), info.MaxRetry, info.Timeout, info.Retention})
	}
	want := []options{
		{"cleanup:1:7", QueueControl, "cleanup", "", math.MaxInt32, actTimeout, 0},
		{"watch-1:3", QueueWatch, "watch", "", math.MaxInt32, tickTimeout, 0},
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

// Ensure that the watch can tell an act that the queue lost from one that waits and from one that a worker took.
func TestLook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	see := func(when string, want queued) {
		t.Helper()
		if have, err := b.queue.look(store.Act{ID: 1, Step: job.StepCleanup, N: 1}); err != nil || have != want {
			t.Errorf("%s: have %d, %v, want %d", when, have, err, want)
		}
	}
	see("no queue yet", queuedMissing)
	b.act(2)
	see("another act only", queuedMissing)
	id := b.act(1)
	see("pending", queuedWaiting)

	running, next := make(chan struct{}), make(chan error)
	b.serve(b.redis.Client(t), func(ctx context.Context, _ *asynq.Task) error {
		if got, _ := asynq.GetTaskID(ctx); got != id {
			return nil
		}
		running <- struct{}{}
		return <-next
	})
	<-running
	see("active", queuedTaken)
	next <- errors.New("failed")
	b.until("the retry", func() bool { return b.is(QueueControl, id, asynq.TaskStateRetry) })
	see("in retry", queuedWaiting)
	<-running
	next <- nil
	b.until("the end", func() bool { return b.task(QueueControl, id) == nil })
	see("done", queuedMissing)
}

// Ensure that an unreachable queue is an error, not an act that is missing: the watch would make it again.
func TestLookDuringAnOutage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.act(1)
	o := b.redis.Options()
	o.MaxRetries, o.DialerRetries = -1, 1 // an outage is an outage
	client := redis.NewClient(o)
	defer client.Close()
	b.queue = NewDispatcher(client)
	b.redis.Kill9()
	if have, err := b.queue.look(store.Act{ID: 1, Step: job.StepCleanup, N: 1}); err == nil {
		t.Errorf("have %d, want an error", have)
	}
	if err := b.queue.Dispatch(t.Context(), store.Act{ID: 1, Step: job.StepCleanup, N: 2}); err == nil {
		t.Error("Dispatch says that it made a task")
	}
	if err := b.queue.RunChain(t.Context(), "watch-1", 1); err == nil {
		t.Error("RunChain says that it ran a tick")
	}
}

// Ensure that running a tick is no error if there is none to run: it never began, is gone, waits already, or is under way.
func TestRunChainOfNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := func(when string, epoch int64) {
		t.Helper()
		if err := b.queue.RunWatch(t.Context(), 1, epoch); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	run("never began", 0)
	run("no queue", 1)
	if err := b.queue.beginChain(t.Context(), "watch-1", 1); err != nil {
		t.Fatal(err)
	}
	run("pending", 1)
	run("another epoch", 2)
	running, end := make(chan struct{}), make(chan struct{})
	b.serve(b.redis.Client(t), func(context.Context, *asynq.Task) error { close(running); <-end; return nil })
	<-running
	run("active", 1)
	close(end)
}

// Ensure which errors of a handler count as failures.
func TestIsFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{again{time.Second}, false},
		{fmt.Errorf("tick: %w", again{}), false},
		{asynq.ErrLeaseExpired, false},
		{fmt.Errorf("probe: %w", context.Canceled), false},
		{context.DeadlineExceeded, true}, // a handler that hangs is a fault of ours
		{store.ErrUnavailable, true},
		{errors.New("any other"), true},
	} {
		if have := isFailure(c.err); have != c.want {
			t.Errorf("isFailure(%v) = %v, want %v", c.err, have, c.want)
		}
	}
}

// Ensure that what failed is repeated with a growing, capped delay, and what a dead worker left at once.
func TestRetryDelayOfFailures(t *testing.T) {
	t.Parallel()
	var have []time.Duration
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 1000, math.MaxInt32} {
		have = append(have, retryDelay(n, errors.New("failed"), nil))
	}
	s := time.Second
	if d := cmp.Diff([]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, 30 * s}, have); d != "" {
		t.Error(d)
	}
	for _, err := range []error{asynq.ErrLeaseExpired, again{}, again{-s}} {
		if have := retryDelay(3, err, nil); have != 0 {
			t.Errorf("retryDelay(%v) = %v, want 0", err, have)
		}
	}
}

// asynqRuns is when asynq runs what it retries now with that delay: it keeps whole seconds, and truncates.
func asynqRuns(delay time.Duration) time.Time { return time.Unix(time.Now().Add(delay).Unix(), 0) }

// Ensure the trap of early ticks: asynq's whole seconds make a tick up to a second early, so that a period
// of one second has ticks twice in one. Rounding keeps the second that the store has chosen, however late in the current
// one a tick ends, and though some time passes between the store's answer and asynq's reckoning.
func TestTrap_EarlyTicks(t *testing.T) {
	t.Parallel()
	t.Run("open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			<-time.After(900 * time.Millisecond)
			due := time.Now().Add(1050 * time.Millisecond)
			if early := due.Sub(asynqRuns(1050 * time.Millisecond)); early < 900*time.Millisecond {
				t.Errorf("asynq runs it %v early, want 950 ms: the trap is gone", early)
			}
		})
	})
	rapid.Check(t, func(rt *rapid.T) {
		into := time.Duration(rapid.IntRange(0, 999).Draw(rt, "ms into the second")) * time.Millisecond
		late := time.Duration(rapid.IntRange(0, 499).Draw(rt, "ms until asynq reckons")) * time.Millisecond
		every := time.Duration(rapid.IntRange(1, 30).Draw(rt, "period in s")) * time.Second
		var due, runs time.Time
		synctest.Test(t, func(t *testing.T) {
			<-time.After(into)
			due = time.Now().Truncate(time.Second).Add(every) // the store's rule for whole periods
			in := time.Until(due)
			<-time.After(late)
			runs = asynqRuns(retryDelay(0, again{in}, nil))
		})
		if !runs.Equal(due) {
			rt.Fatalf("runs at %v, due at %v", runs, due)
		}
	})
}

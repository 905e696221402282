package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// These are the traps of asynq that would lose or double a tick or an act. Each is shown open, with asynq as it comes, and
// closed, with what this package does about it: a new version of asynq that closes one makes its cure superfluous,
// and a test fails.

// outage is a short outage at the worst time: it fails the first write that ends a task, and reports how the later
// attempts of that write go.
type outage struct {
	keepWrites // for the hooks that change nothing
	failed     atomic.Bool
	repeats    chan error
}

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !slices.ContainsFunc(cmd.Args(), func(a any) bool { k, ok := a.(string); return ok && strings.HasSuffix(k, ":processed") }) {
			return next(ctx, cmd)
		}
		if o.failed.CompareAndSwap(false, true) {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		err := next(ctx, cmd)
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			o.repeats <- err
		}
		return err
	}
}

// Ensure the trap of the end that is never written: asynq repeats a Done that failed with a context that has ended, so a task
// that succeeded stays active, and is run again when its lease has run out.
func TestTrap_FailedDone(t *testing.T) {
	t.Parallel()
	for name, cured := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			client, o := b.redis.Client(t), &outage{repeats: make(chan error, 8)}
			if cured {
				KeepWrites(client)
			}
			client.AddHook(o)
			id := b.act(1)
			b.serve(client, func(context.Context, *asynq.Task) error { return nil })
			var err error
			select {
			case err = <-o.repeats: // asynq tries again every 5 s
			case <-time.After(benchPatience):
				t.Fatal("asynq does not repeat it")
			}
			if !cured {
				if !errors.Is(err, context.Canceled) || !b.is(QueueControl, id, asynq.TaskStateActive) {
					t.Errorf("asynq's repetition gave %v: the trap is gone", err)
				}
				return
			}
			if err != nil || b.task(QueueControl, id) != nil {
				t.Errorf("the repetition gave %v, and the task is still there", err)
			}
		})
	}
}

// die makes a pending task one that a worker took before it died, so long ago that asynq's lease has run out.
func (b *bench) die(queue, id string) {
	b.Helper()
	c, key := b.redis.Client(b), func(of string) string { return "asynq:{" + queue + "}:" + of }
	_, err := c.TxPipelined(b.Context(), func(p redis.Pipeliner) error {
		p.LRem(b.Context(), key("pending"), 1, id)
		p.LPush(b.Context(), key("active"), id)
		p.ZAdd(b.Context(), key("lease"), redis.Z{Score: 1, Member: id})
		p.HSet(b.Context(), key("t:"+id), "state", "active")
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// interruptions are the ways in which a handler ends that are no failures of its task.
var interruptions = []struct {
	name string
	err  error // nil: its worker died
}{
	{"tick", again{}},
	{"cancelled", fmt.Errorf("look: %w", context.Canceled)},
	{"worker died", nil},
}

// interrupted runs a task whose handler is interrupted so, as often as one can be, and returns what became of it: it is run once
// more, or archived.
func (b *bench) interrupted(id string, err error, settings func(*asynq.Config)) *asynq.TaskInfo {
	b.Helper()
	times := 3
	if err == nil {
		times = 1 // asynq looks for dead workers at its start, and then once a minute
		b.die(QueueFleet, id)
	}
	var runs atomic.Int64
	last, end := make(chan struct{}, 1), make(chan struct{})
	b.serve(b.redis.Client(b), func(context.Context, *asynq.Task) error {
		if err != nil && runs.Add(1) <= int64(times) {
			return err
		}
		last <- struct{}{}
		<-end
		return nil
	}, func(c *asynq.Config) { c.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 0 } }, settings)
	b.Cleanup(func() { close(end) })
	b.until("the end of the interruptions", func() bool { return len(last) > 0 || b.is(QueueFleet, id, asynq.TaskStateArchived) })
	return b.task(QueueFleet, id)
}

// Ensure the trap of the counter: to asynq each tick is a failure, and so is the death of a worker. What it counts it will
// archive one day, and shows as errors until then.
func TestTrap_TicksAreCounted(t *testing.T) {
	t.Parallel()
	for _, c := range interruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, settings := range map[string]func(*asynq.Config){
				"open":   func(c *asynq.Config) { c.IsFailure = nil },
				"closed": func(*asynq.Config) {},
			} {
				b := newBench(t)
				if err := b.queue.beginChain(t.Context(), ChainAdmission, 1); err != nil {
					t.Fatal(err)
				}
				info := b.interrupted(chainID(ChainAdmission, 1), c.err, settings)
				if name == "open" && info.Retried == 0 {
					t.Error("asynq does not count it: the trap is gone")
				}
				if name == "closed" && info.Retried != 0 {
					t.Errorf("asynq has counted %d", info.Retried)
				}
			}
		})
	}
}

// Ensure the trap of the archive: asynq puts a task aside that was repeated too often, before it asks whether that was
// a failure, and its chain has ended.
func TestTrap_SmallMaxRetry(t *testing.T) {
	t.Parallel()
	failure := []struct {
		name string
		err  error
	}{{"failed", errors.New("failed")}}
	for _, c := range append(failure, interruptions...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			id := chainID(ChainAdmission, 1)
			if _, err := b.tasks.Enqueue(asynq.NewTask("fleet", nil), asynq.TaskID(id), asynq.Queue(QueueFleet), asynq.MaxRetry(0)); err != nil {
				t.Fatal(err)
			}
			if info := b.interrupted(id, c.err, func(*asynq.Config) {}); info.State != asynq.TaskStateArchived {
				t.Errorf("asynq lets it be %s: the trap is gone", info.State)
			}

			b = newBench(t)
			if err := b.queue.beginChain(t.Context(), ChainAdmission, 1); err != nil {
				t.Fatal(err)
			}
			if info := b.interrupted(id, c.err, func(*asynq.Config) {}); info.State != asynq.TaskStateActive {
				t.Errorf("the chain's task is %s, want active", info.State)
			}
		})
	}
}

// Ensure the trap of the blocked id: with Retention a task that is done is in the way of the next one of its name, and with
// Unique one job's act is in the way of another's. Ours make room at once.
func TestTrap_BlockedID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serve(b.redis.Client(t), func(context.Context, *asynq.Task) error { return nil }, func(c *asynq.Config) {
		c.Queues = map[string]int{QueueControl: 1}
	})
	enqueue := func(id, queue string, o ...asynq.Option) error {
		_, err := b.tasks.Enqueue(asynq.NewTask("cleanup", nil), append(o, asynq.TaskID(id), asynq.Queue(queue))...)
		return err
	}
	if err := enqueue("kept", QueueControl, asynq.Retention(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.until("the end of the task", func() bool { return b.is(QueueControl, "kept", asynq.TaskStateCompleted) })
	if err := enqueue("kept", QueueControl); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Errorf("Retention: %v: the trap is gone", err)
	}
	if err := enqueue("cleanup:1:1", "idle", asynq.Unique(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := enqueue("cleanup:2:1", "idle", asynq.Unique(time.Hour)); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("Unique: %v: the trap is gone", err)
	}

	for range 2 {
		id := b.act(1)
		b.until("the end of the act", func() bool { return b.task(QueueControl, id) == nil })
	}
	for id := range 3 { // no worker takes these: they wait side by side
		if err := b.queue.Dispatch(t.Context(), store.Act{ID: job.ID(id), Step: job.StepLaunch, N: 1}); err != nil {
			t.Fatal(err)
		}
		if !b.is(QueueLaunch, actID(job.StepLaunch, job.ID(id), 1), asynq.TaskStatePending) {
			t.Errorf("the act of job %d does not wait", id)
		}
	}
}

// Ensure the trap of the slash: asynqmon answers for a task whose id has one with its start page. It knows all of ours.
func TestTrap_SlashInID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	mon := asynqmon.New(asynqmon.Options{RootPath: "/queues", RedisConnOpt: asynq.RedisClientOpt{Network: "unix", Addr: b.redis.Options().Addr}})
	defer mon.Close()
	knows := func(queue, id string) bool {
		w := httptest.NewRecorder()
		mon.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/queues/api/queues/"+queue+"/tasks/"+id, nil))
		var task struct{ ID string }
		return json.Unmarshal(w.Body.Bytes(), &task) == nil && task.ID == id
	}
	if _, err := b.tasks.Enqueue(asynq.NewTask("cleanup", nil), asynq.TaskID("cleanup/1/1"), asynq.Queue(QueueControl)); err != nil {
		t.Fatal(err)
	}
	if knows(QueueControl, "cleanup/1/1") {
		t.Error("asynqmon knows an id with slashes: the trap is gone")
	}
	for _, step := range acts {
		if err := b.queue.Dispatch(ctx, store.Act{ID: 7, Step: step, N: 1}); err != nil {
			t.Fatal(err)
		}
		if id := actID(step, 7, 1); !knows(queueOf(step, 0), id) {
			t.Errorf("asynqmon does not know %s", id)
		}
	}
	for _, chain := range []string{store.WatchChain(3), ChainAdmission, ViewChain("local", "zone-a")} {
		if err := b.queue.beginChain(ctx, chain, 2); err != nil {
			t.Fatal(err)
		}
		if id := chainID(chain, 2); !knows(chainQueue(chain), id) {
			t.Errorf("asynqmon does not know %s", id)
		}
	}
}

// forgetful is a connection that breaks after the server has carried out a command, before the answer is here.
type forgetful struct {
	net.Conn
	of     []byte       // what the command has in it
	once   *atomic.Bool // of all connections, one breaks
	breaks bool
	broken bool
}

func (f *forgetful) Write(p []byte) (int, error) {
	f.breaks = bytes.Contains(p, f.of) && f.once.CompareAndSwap(false, true)
	return f.Conn.Write(p)
}

func (f *forgetful) Read(p []byte) (int, error) {
	if f.broken {
		return 0, io.EOF
	}
	n, err := f.Conn.Read(p)
	if f.breaks {
		f.broken = true
		return 0, io.EOF
	}
	return n, err
}

// Ensure the trap of the lost reply: go-redis asks again, and asynq says that the task which this very call has made is
// in its way. To us a task that exists is made, whoever made it.
func TestTrap_LostReply(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.act(100) // Redis knows the script from now on
	lossy := func(of string) (*redis.Client, *atomic.Bool) {
		o, once := b.redis.Options(), &atomic.Bool{}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &forgetful{Conn: c, of: []byte(of), once: once}, err
		}
		c := redis.NewClient(o)
		t.Cleanup(func() { _ = c.Close() })
		return c, once
	}
	client, _ := lossy(":t:cleanup:1:1")
	_, err := asynq.NewClientFromRedisClient(client).Enqueue(asynq.NewTask("cleanup", nil), asynq.TaskID("cleanup:1:1"), asynq.Queue(QueueControl))
	if !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Errorf("asynq's answer is %v: the trap is gone", err)
	}

	client, lost := lossy(":t:cleanup:2:1")
	KeepWrites(client)
	queue := NewDispatcher(client)
	for range 2 { // the second time it is there plainly
		if err := queue.Dispatch(t.Context(), store.Act{ID: 2, Step: job.StepCleanup, N: 1}); err != nil {
			t.Error(err)
		}
	}
	if !lost.Load() || !b.is(QueueControl, "cleanup:2:1", asynq.TaskStatePending) {
		t.Error("no reply was lost, or no act made")
	}
}

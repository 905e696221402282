package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
)

// withReplicas is a store whose clients wait for so many replicas.
func withReplicas(t *testing.T, rdb redis.UniversalClient, replicas int) *bench {
	t.Helper()
	s, err := Found(t.Context(), rdb, Deployment{ID: "test", Shards: 4, Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Store: s, rdb: rdb, ctx: t.Context()}
}

// failover is a client that asks Sentinels for the master.
func failover(t *testing.T, w *redistest.Watched) *redis.Client {
	t.Helper()
	var addrs []string
	for _, s := range w.Sentinels {
		addrs = append(addrs, s.Address())
	}
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: addrs, SentinelPassword: redistest.SentinelPassword, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Ensure that what is accepted without a word survives a real failover, whenever that comes, and that a submission and a
// cancel which no replica has yet are told to be unsafe: that is what a failover then loses (G1, G7).
func TestG1_ReplicatedJobsOutliveAFailover(t *testing.T) {
	t.Parallel()
	w := redistest.StartSentinel(t, 1)
	b := withReplicas(t, failover(t, w), 1)
	var mu sync.Mutex
	safe := map[job.ID]bool{}
	var stop atomic.Bool
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for !stop.Load() {
				if ids, err := b.Submit(b.ctx, Submission{Request: typical(1), Count: 3}); err == nil {
					mu.Lock()
					for _, id := range ids {
						if safe[id] {
							t.Errorf("job %d was accepted twice", id)
						}
						safe[id] = true
					}
					mu.Unlock()
				}
			}
		})
	}
	accepted := func() int { mu.Lock(); defer mu.Unlock(); return len(safe) }
	eventually(t, "some jobs are accepted", func() bool { return accepted() > 30 })
	old := w.Current()
	old.Kill9()
	w.AwaitFailover(old)
	before := accepted()
	eventually(t, "the new master, which has no replica, leaves them unsafe", func() bool {
		_, err := b.Submit(b.ctx, Submission{Request: typical(1)})
		var unsafe *UnsafeError
		return errors.As(err, &unsafe) && unsafe.Have == 0 && unsafe.Want == 1
	})
	stop.Store(true)
	clients.Wait()
	t.Logf("%d jobs were accepted before the failover", before)
	for id := range safe {
		if rec, err := b.Load(b.ctx, id); err != nil || rec.Status() != job.Pending {
			t.Errorf("job %d was accepted and is lost: %v", id, err)
		}
	}
}

// Ensure that a replica which hangs makes what is accepted unsafe and not refused, that it really is lost by a failover then, and
// that everything is safe again when it is back.
func TestUnsafeIsNotRefused(t *testing.T) {
	t.Parallel()
	w := redistest.StartSentinel(t, 1)
	b := withReplicas(t, w.Master.Client(t), 1)
	ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1)}))
	w.Replicas[0].Freeze()
	var unsafe *UnsafeError
	late, err := b.Submit(b.ctx, Submission{Request: typical(1)})
	if !errors.As(err, &unsafe) || len(late) != 1 {
		t.Errorf("a submission with a frozen replica: %v, %v", late, err)
	}
	for name, do := range map[string]func() error{
		"cancel":     func() error { _, err := b.Cancel(b.ctx, ids[0], "ada", 0); return err },
		"preempt":    func() error { _, err := b.Preempt(b.ctx, ids[0], 0); return err },
		"cancel all": func() error { _, _, err := b.CancelWhere(b.ctx, nil, "ada", 0); return err },
	} {
		if err := do(); !errors.As(err, &unsafe) {
			t.Errorf("%s: %v, want it unsafe", name, err)
		}
	}
	if rec := must[job.Record](t)(b.Load(b.ctx, ids[0])); rec.Cancel == nil {
		t.Error("what is unsafe was not done")
	}
	w.Replicas[0].Thaw()
	must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1)}))
	must[Woken](t)(b.Cancel(b.ctx, late[0], "ada", 0))
}

// loses is a hook that plays a failover right after the first call of a script: the master is another one, and the call's effect
// is lost.
type loses struct {
	lose func()
	once sync.Once
}

func (*loses) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *loses) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && cmd.Name() == "evalsha" {
			l.once.Do(l.lose)
		}
		return err
	}
}

func (l *loses) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil && cmds[0].Name() == "evalsha" {
			l.once.Do(l.lose)
		}
		return err
	}
}

// Ensure that a failover between the write and the question for the replicas, which lost the write, is noticed, and that what
// was lost is done again, once.
func TestWriteLostByAFailoverIsDoneAgain(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"with a key": "mine", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := redistest.StartSentinel(t, 1, redistest.Set("--enable-debug-command", "yes"))
			admin := w.Master.Client(t)
			rdb := w.Master.Client(t)
			b := withReplicas(t, rdb, 1)
			must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1)})) // the scripts are known
			rdb.AddHook(&loses{lose: func() {
				for _, part := range []string{"*:job:*", "*:due", "*:made:*", "*:st:*"} {
					for _, k := range admin.Keys(b.ctx, part).Val() {
						admin.Del(b.ctx, k)
					}
				}
				if err := admin.Do(b.ctx, "DEBUG", "CHANGE-REPL-ID").Err(); err != nil {
					t.Error(err)
				}
			}})
			ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1), Key: key, Count: 5}))
			for _, id := range ids {
				must[job.Record](t)(b.Load(b.ctx, id))
			}
			if page := must[Page](t)(b.Find(b.ctx, Query{})); len(page.Jobs) != len(ids) {
				t.Errorf("there are %d jobs, want %d", len(page.Jobs), len(ids))
			}
		})
	}
}

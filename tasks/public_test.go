package tasks

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// The tests of this file and of public_life_test.go are named after what users of other systems have reported;
// docs/public-reports.md has them all.

// Ensure that an act which reaches several workers several times at a time leads to one call that makes a machine (G2, G4).
//
// skypilot #8564: two controllers were started for one service.
func TestG2_ActDeliveredManyTimesMakesOneMachine(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 2, 4} {
		b := newBench(t)
		made := make(chan cloud.Request, 2*times)
		delivered := make(chan struct{})
		far := &rented{
			name: "far",
			offers: func(context.Context) ([]job.Offer, error) {
				return []job.Offer{{Provider: "far", Region: "r", Type: "t"}}, nil
			},
			list: func(context.Context, string) ([]cloud.Node, error) { return nil, nil },
			create: func(q cloud.Request) ([]cloud.Node, error) {
				made <- q
				<-delivered // it takes until all the others have had their say
				return []cloud.Node{{ID: "n1", Identity: q.Identity, State: cloud.Booting}}, nil
			},
		}
		far.regions = func(context.Context) ([]string, error) { return []string{"r"}, nil }
		id := b.submit(1)[0]
		var all, others sync.WaitGroup
		others.Add(2*times - 1) // the one that makes the machine ends later
		for range 2 {           // workers
			w := b.worker(func(c *Config) {
				c.Sites, c.Rules, c.Caps = Sites{"far": site(far, hangs)}, job.DefaultRules, store.Caps{Launches: 8}
				c.Archive, _ = b.files()
			})
			for range times {
				all.Go(func() {
					if err := w.act(t.Context(), job.StepLaunch, id, 1); err != nil {
						t.Error(err)
					}
					select {
					case <-delivered:
					default:
						others.Done()
					}
				})
			}
		}
		others.Wait()
		close(delivered)
		all.Wait()
		if len(made) != 1 {
			t.Errorf("delivered %d times to each of two workers, it made %d machines", times, len(made))
		}
		if rec := b.load(id); rec.Tasks[0].Attempts != 1 || rec.Status() != job.Starting {
			t.Errorf("%s after %d attempts", rec.Status(), rec.Tasks[0].Attempts)
		}
	}
}

// Ensure that an act which the queue says is under way, and which no worker has, is made again: asynq finds a dead worker's
// task by its lease, and never without (G1).
//
// asynq #1144, #420: a task stayed active for ever, since its lease had been lost.
func TestG1_ActiveTaskThatNobodyHasIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ended := &rented{name: "far", regions: nowhere, offers: func(context.Context) ([]job.Offer, error) { return nil, nil }}
	w := b.worker(func(c *Config) {
		c.Sites, c.Rules, c.Caps = Sites{"far": site(ended, hangs)}, job.DefaultRules, store.Caps{Launches: 8}
		c.Claim, c.Silence = time.Second, time.Second
	})
	id := b.submit(1)[0]
	if err := b.queue.Dispatch(t.Context(), store.Act{ID: id, Step: job.StepLaunch, N: 1}); err != nil {
		t.Fatal(err)
	}
	act := actID(job.StepLaunch, id, 1)
	b.die(QueueLaunch, act)
	rdb := b.redis.Client(t)
	if n, err := rdb.ZRem(t.Context(), "asynq:{"+QueueLaunch+"}:lease", act).Result(); err != nil || n != 1 {
		t.Fatalf("the lease of the task: %d, %v", n, err)
	}
	rdb.ZAdd(t.Context(), "ol:{s01}:due", redis.Z{Score: 1, Member: int64(id)}) // the time of its grace is over
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rec job.Record
	b.until("somebody to drive the job", func() bool { rec = b.load(id); return rec.Status() == job.FailedPrechecks })
	if rec.Dispatch < 2 {
		t.Errorf("act %d was lost, and the record asks for act %d", 1, rec.Dispatch)
	}
}

// Ensure that how long a job has run is no matter to the time after which a dead worker is replaced (G1).
//
// river #682, #347: the time after which a job counts as lost had to be longer than the longest job.
func TestG1_TakeoverOfAJobThatHasRunForDays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", regions: nowhere, terminate: func(cloud.Match) error { return nil }}
	far.list = func(context.Context, string) ([]cloud.Node, error) { return nil, nil }
	w := b.worker(func(c *Config) {
		c.Rules = job.DefaultRules
		c.Archive, _ = b.files()
		log := []byte("the end\n")
		c.Sites = Sites{"far": site(far, func(ctx context.Context, args []string) (agent.Status, error) {
			st, err := printed(agent.Exited, &log)(ctx, args)
			st.Exit = &agent.Exit{Stage: "run"}
			return st, err
		})}
	})
	id := b.running(w, 1)[0]
	due, err := b.store.Claim(t.Context(), b.store.ShardOf(id), 10, 0, time.Second, time.Second) // by a worker that dies now
	if err != nil || len(due.Jobs) != 1 {
		t.Fatalf("claimed %d jobs: %v", due.Len(), err)
	}
	next := due.Jobs[0].Clone()
	next.Tasks[0].StartedAt = next.Tasks[0].StartedAt.Add(-10 * 24 * time.Hour)
	if _, err := b.store.Commit(t.Context(), b.store.ShardOf(id), store.Commit{From: &due.Jobs[0], Next: next, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("another worker to see its end", func() bool { rec := b.load(id); return rec.Status() == job.Succeeded })
}

package tasks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// TestCalmLooks ensures that looks at a job that only runs read no record, and that whatever happens to it is noticed as by
// any other look: an exit, a log that grows, an agent that falls silent, a cancel.
func TestCalmLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		news func(*agent.Status) error
		wake bool
		done func(job.Record) bool
	}{
		"exit": {
			news: func(s *agent.Status) error { s.State, s.Exit = agent.Exited, &agent.Exit{Stage: "run"}; return nil },
			done: func(r job.Record) bool { return r.Status() == job.Succeeded },
		},
		"log": {
			news: func(s *agent.Status) error { s.LogSize, s.Log = 9, []byte("a line.\n\n"); return nil },
			done: func(r job.Record) bool { return r.Look.Tail == 9 },
		},
		"silence": {
			news: func(*agent.Status) error { return errors.New("no route to host") },
			done: func(r job.Record) bool { return r.Look.Fails > 0 },
		},
		"notice": {
			news: func(s *agent.Status) error { s.Notice = &agent.Notice{At: 1, Deadline: 60_001}; return nil },
			done: func(r job.Record) bool { return r.Live[0].Notice != nil },
		},
		"cancel": {
			wake: true,
			done: func(r job.Record) bool { return r.Status() == job.Cancelling || r.Status() == job.Cancelled },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			var mu sync.Mutex
			polls, news := 0, func(*agent.Status) error { return nil }
			var machine cloud.Node
			far := &rented{
				name: "far", regions: func(context.Context) ([]string, error) { return []string{"r"}, nil },
				list: func(context.Context, string) ([]cloud.Node, error) { return []cloud.Node{machine}, nil },
			}
			w := b.worker(func(c *Config) {
				c.Archive, _ = b.files()
				c.Rules = job.DefaultRules
				c.Rules.Quiet = c.Rules.Quick
				c.Sites = Sites{"far": site(far, func(_ context.Context, _ []string) (agent.Status, error) {
					mu.Lock()
					defer mu.Unlock()
					s := agent.Status{State: agent.Running}
					err := news(&s)
					polls++
					return s, err
				})}
			})
			id := b.running(w, 1)[0]
			rec := b.load(id)
			machine = cloud.Node{
				Identity: cloud.Identity{Deployment: "test", Job: id, Nonce: rec.Nonce, Attempt: 1},
				ID:       rec.Live[0].Nodes[0].ID, Provider: "far", Region: "r", State: cloud.Running, Address: "x",
			}
			if err := w.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.until("the job to be calm", func() bool { return b.load(id).Calm })
			before := b.load(id)
			mu.Lock()
			seen := polls
			mu.Unlock()
			b.until("three more looks", func() bool { mu.Lock(); defer mu.Unlock(); return polls >= seen+3 })
			if now := b.load(id); now.Fence > before.Fence+1 || now.Seq > before.Seq+1 { // one may have been under way
				t.Errorf("looks at a calm job have touched its record: fence %d to %d, commits %d to %d", before.Fence, now.Fence, before.Seq, now.Seq)
			}
			if c.wake {
				if _, err := b.store.Cancel(t.Context(), id, "test", time.Second); err != nil {
					t.Fatal(err)
				}
			} else {
				mu.Lock()
				news = c.news
				mu.Unlock()
			}
			b.until("the news to arrive", func() bool { return c.done(b.load(id)) })
		})
	}
}

// TestCalmLooksAreSpread ensures that the looks at calm jobs which were all due at once are even over the period from the next
// one on, none later than a period, that each then comes once in a period, and that ticks which are a little early or late
// change nothing.
func TestCalmLooksAreSpread(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.worker(func(*Config) {})
	shards := b.store.Shards()
	for _, every := range []time.Duration{time.Second, 2500 * time.Millisecond, 15 * time.Second, time.Minute} {
		began, seconds := job.Time(1_700_000_000_123), max(int(every/time.Second), 1)
		at := map[job.Time]int{}
		for i := range 100 * seconds {
			calm := &store.Calm{ID: job.ID(i*shards + 1), Every: every}
			due := w.nextLook(asked{job: calm, at: began})
			if wait := due.Sub(began); wait < 500*time.Millisecond || wait > every+500*time.Millisecond {
				t.Fatalf("the next look after %s, of %s", wait, every)
			}
			at[due]++
			for _, off := range []time.Duration{-500 * time.Millisecond, 0, 300 * time.Millisecond, 499 * time.Millisecond} {
				if got := w.nextLook(asked{job: calm, at: due.Add(off)}); got != due.Add(every) {
					t.Fatalf("looked at %s off its time, it is next looked at after %s", off, got.Sub(due))
				}
			}
		}
		for due, n := range at {
			if n != 100 {
				t.Errorf("every %s: %d looks of %d at %d", every, n, 100*seconds, due)
			}
		}
	}
}

// TestG4_CollectorKnowsTheMachinesOfCalmJobs ensures that a machine on which a calm job runs is left alone without a look at
// the record, and that any other machine of that job is ended.
func TestG4_CollectorKnowsTheMachinesOfCalmJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ended []string
	far := &rented{name: "far", terminate: func(m cloud.Match) error { ended = append(ended, m.NodeID); return nil }}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far, nil)} })
	id := b.submit(1)[0]
	d := b.begun(w, id, job.PhaseStarted)
	next := d.job.Clone()
	next.Step, next.Calm, next.Due, next.Look.Every = job.StepWatch, true, d.now().Add(time.Hour), 15_000
	next.Tasks[0].Status, next.Tasks[0].Attempts = job.Running, 2
	next.Live[0].Number = 2
	if err := d.commit(t.Context(), next, false); err != nil {
		t.Fatal(err)
	}
	node := func(id string, job job.ID, attempt int) cloud.Node {
		return cloud.Node{
			Identity: cloud.Identity{Deployment: "test", Job: job, Nonce: d.job.Nonce, Attempt: attempt},
			ID:       id, Provider: "far", Region: "r", State: cloud.Running, CreatedAt: time.Unix(1, 0),
		}
	}
	nodes := []cloud.Node{node(next.Live[0].Nodes[0].ID, id, 2), node("older", id, 1), node("nobody's", 4711, 1)}
	strangers, err := w.strangers(t.Context(), nodes)
	if err != nil || len(strangers) != 2 {
		t.Fatalf("records are read for %+v: %v", strangers, err)
	}
	if err := w.collect(t.Context(), w.sites["far"], "r", strangers, d.now()); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 2 || ended[0] != "older" || ended[1] != "nobody's" {
		t.Errorf("ended %v", ended)
	}
}

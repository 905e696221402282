package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// submitAs submits jobs of a priority and calls those whose turn it is, as the client does.
func (b *bench) submitAs(priority, count int, caps store.Caps) []job.ID {
	b.Helper()
	ids, err := b.store.Submit(b.Context(), store.Submission{Count: count, Request: job.Request{Priority: priority, Tasks: []job.TaskRequest{{
		Run: "true", Resources: job.Resources{Any: []job.Want{{}}},
	}}}})
	if err != nil {
		b.Fatal(err)
	}
	granted, err := b.store.Join(b.Context(), caps, priority, ids)
	if err := errors.Join(err, b.queue.Call(b.Context(), b.store, granted)); err != nil {
		b.Fatal(err)
	}
	return ids
}

// TestG9_AnUrgentJobDoesNotStandBehindOthers ensures that an urgent job gets to its machine while launches of others take all
// their places, and more of them wait.
func TestG9_AnUrgentJobDoesNotStandBehindOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	offer := job.Offer{Provider: "far", Region: "r", Type: "t", CPUs: 1}
	var mu sync.Mutex
	var created []job.ID
	open := make(chan struct{})
	defer close(open)
	far := &rented{
		name: "far", regions: func(context.Context) ([]string, error) { return []string{"r"}, nil },
		offers: func(context.Context) ([]job.Offer, error) { return []job.Offer{offer}, nil },
		list:   func(context.Context, string) ([]cloud.Node, error) { return nil, nil },
		create: func(r cloud.Request) ([]cloud.Node, error) {
			mu.Lock()
			created = append(created, r.Job)
			mu.Unlock()
			<-open
			return nil, &cloud.Error{Op: "create", Class: job.Denied, Err: errors.New("no")}
		},
	}
	made := func() []job.ID {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(created)
	}
	caps := store.Caps{Launches: 16}
	others := b.submitAs(0, 8, caps)
	w := b.worker(func(c *Config) {
		c.Acts, c.Caps, c.Rules, c.Sites = 1, caps, job.DefaultRules, Sites{"far": site(far, hangs)}
	})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("a launch that takes the only place", func() bool { return len(made()) == 1 })
	urgent := b.submitAs(1, 1, caps)[0]
	b.until("the urgent job to have its turn", func() bool { return len(made()) == 2 })
	if got := made(); !slices.Contains(others, got[0]) || got[1] != urgent {
		t.Errorf("machines were made for %v, urgent is %d", got, urgent)
	}
}

// TestG9_AGrantLeadsToTheActAtOnce ensures that a launch slot that becomes free leads to the act of the job that gets it,
// urgent or not, and however often it has waited before, without a tick of the watch in between.
func TestG9_AGrantLeadsToTheActAtOnce(t *testing.T) {
	t.Parallel()
	for name, priority := range map[string]int{QueueLaunch: 0, QueueUrgent: job.MaxPriority} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			nothing := &rented{name: "far", regions: nowhere, offers: func(context.Context) ([]job.Offer, error) { return nil, nil }}
			caps := store.Caps{Launches: 1}
			w := b.worker(func(c *Config) { c.Sites, c.Rules, c.Caps = Sites{"far": site(nothing, hangs)}, job.DefaultRules, caps })
			ids := b.submitAs(priority, 3, caps)
			run := func(id job.ID, n int64) {
				if err := w.act(t.Context(), job.StepLaunch, id, n); err != nil {
					t.Fatal(err)
				}
			}
			run(ids[1], 1) // it stands in the line and has had an act already
			if rec := b.load(ids[1]); rec.Wait.For.Code != job.CodeLaunchSlot || rec.Ran != 1 {
				t.Fatalf("job %d waits for %q after act %d", ids[1], rec.Wait.For.Code, rec.Ran)
			}
			for i, n := range []int64{1, 2, 1} {
				act := actID(job.StepLaunch, ids[i], n)
				if !b.is(name, act, asynq.TaskStatePending) {
					t.Fatalf("there is no act %s in the queue %s", act, name)
				}
				run(ids[i], n) // ends without a machine, since nobody has any
				if rec := b.load(ids[i]); rec.Status() != job.FailedPrechecks {
					t.Fatalf("job %d is %s", ids[i], rec.Status())
				}
			}
		})
	}
}

// TestG9_CallsOfUrgentJobsComeFirst ensures that a machine for an urgent job is not made behind all those that are to be ended,
// as others are.
func TestG9_CallsOfUrgentJobsComeFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call     string
		priority int
		later    bool
	}{{"create", 0, true}, {"create", job.MinPriority, true}, {"create", 1, false}, {"terminate", 0, false}, {"terminate", 1, false}} {
		d := &driver{job: &store.Claimed{Record: job.NewRecord(job.Head{ID: 1, Priority: c.priority})}}
		by, _ := d.calling(t.Context(), c.call, &job.Attempt{Number: 1}).Value(callerKey{}).(caller)
		if by.Later != c.later || by.Priority != c.priority {
			t.Errorf("%s of a job with priority %d: %+v", c.call, c.priority, by.Caller)
		}
	}
}

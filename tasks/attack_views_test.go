package tasks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a record which cannot be read, of whatever kind, does not keep the collector from the machines of others (G4).
//
// ray #14264, karpenter-provider-gcp #616: one bad node or record took all others down.
func TestG4_CollectorPassesDamagedRecords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ended []cloud.Match
	far := &rented{name: "far", terminate: func(m cloud.Match) error { ended = append(ended, m); return nil }}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far, nil)} })
	const damaged, unknown = 3, 5
	if err := b.store.Redis().Set(t.Context(), "ol:{s01}:job:3", "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if b.store.ShardOf(damaged) != 1 {
		t.Fatal("the test looks at the wrong shard")
	}
	at := func(id job.ID) cloud.Node {
		return cloud.Node{ID: fmt.Sprint("n", id), Identity: cloud.Identity{Deployment: "test", Job: id, Attempt: 1}, State: cloud.Running}
	}
	if err := w.collect(t.Context(), w.sites["far"], "r", []cloud.Node{at(damaged), at(unknown)}, job.TimeOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 1 || ended[0].NodeID != "n5" {
		t.Errorf("ended %+v, want the machine of job %d alone", ended, unknown)
	}
}

// Ensure that a machine which cannot be ended keeps no other one of its region alive, and that it is told (G4).
func TestG4_CollectorPassesMachinesThatStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	refusal, asked := errors.New("denied"), 0
	far := &rented{name: "far", terminate: func(m cloud.Match) error {
		if asked++; m.Job == 3 {
			return refusal
		}
		return nil
	}}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far, nil)} })
	var nodes []cloud.Node
	for id := job.ID(1); id <= 5; id++ {
		nodes = append(nodes, cloud.Node{ID: fmt.Sprint("n", id), Identity: cloud.Identity{Deployment: "test", Job: id, Attempt: 1}, State: cloud.Running})
	}
	if err := w.collect(t.Context(), w.sites["far"], "r", nodes, job.TimeOf(time.Now())); !errors.Is(err, refusal) || asked != 5 {
		t.Errorf("%d machines of 5 were told to end: %v", asked, err)
	}
}

// Ensure that a view which cannot be read is replaced: it must not stop the collector of its region for ever (G4).
func TestG4_DamagedViewIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", list: func(context.Context, string) ([]cloud.Node, error) { return nil, nil }}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far, nil)} })
	if err := b.store.Redis().HSet(t.Context(), "ol:{d}:views", "far/r", "{").Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.view(t.Context(), w.sites["far"], "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.View(t.Context(), "far", "r"); err != nil {
		t.Error(err)
	}
}

// Ensure that a view says why it grows old, also if the provider took all the time of the tick.
func TestFailedViewIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", list: func(ctx context.Context, _ string) ([]cloud.Node, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far, nil)} })
	ctx, done := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer done()
	if err := w.view(ctx, w.sites["far"], "r"); err == nil {
		t.Error("the tick did not fail")
	}
	if v, err := b.store.View(t.Context(), "far", "r"); err != nil || v.Error == "" {
		t.Errorf("have %+v, %v", v, err)
	}
}

// Ensure that a list is new enough for whoever asks by what happened here, not by what two drivers' clocks show: they differ
// by what their answers took, and a view from before an order must not prove that it was carried out (G3, G6).
func TestViewsCompareMomentsNotClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		far := &rented{name: "far", list: func(context.Context, string) ([]cloud.Node, error) { lists++; return nil, nil }}
		v := newViews(Sites{"far": site(far, nil)})
		pass := func(d time.Duration) { _ = sleep(t.Context(), d) } // of fake time
		prompt := clock{store: job.TimeOf(time.Now()), read: time.Now()}
		late := clock{store: prompt.store, read: prompt.read.Add(500 * time.Millisecond)} // its answer took half a second
		pass(time.Second)
		ask := func(newer job.Time, c clock) job.Time {
			t.Helper()
			_, at, err := v.list(t.Context(), "far", "r", newer, c)
			if err != nil {
				t.Fatal(err)
			}
			if at < newer {
				t.Fatalf("a view of %d was asked for, have one of %d", newer, at)
			}
			return at
		}
		ask(prompt.now(), prompt)
		pass(100 * time.Millisecond)
		order := late.now() // after the list, though it shows an earlier time
		ask(order, late)
		if lists != 2 {
			t.Errorf("a list from before the order was taken for one after it")
		}
		ask(order, late)
		if lists != 2 {
			t.Error("a list that is new enough was made again")
		}
		// What a quicker driver has written down lies in the future of a late one: it waits, and asks once.
		ask(prompt.now()+1, late)
		if lists != 3 {
			t.Errorf("%d lists for one question", lists-2)
		}
		if _, _, err := v.list(t.Context(), "far", "r", late.now().Add(time.Hour), late); err == nil || lists != 3 {
			t.Error("a view of the far future was waited for")
		}
	})
}

// Ensure that a region which hangs costs a launch elsewhere a short while, and whoever waits for its list no more than he
// would wait himself.
func TestHangingRegionIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		far := &rented{
			name: "far", regions: func(context.Context) ([]string, error) { return []string{"r", "hung", "other"}, nil },
			list: func(ctx context.Context, region string) ([]cloud.Node, error) {
				if region == "hung" {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return []cloud.Node{{ID: region, Identity: cloud.Identity{Job: 1}}}, nil
			},
		}
		v := newViews(Sites{"far": site(far, nil)})
		c := clock{store: 1000, read: time.Now()}
		rec := job.Record{Head: job.Head{ID: 1}, Live: []job.Attempt{{Offer: job.Offer{Provider: "far", Region: "r"}}}}
		s := v.survey(t.Context(), &rec, job.Do{Newer: c.now(), Wide: true}, c)
		if took := time.Since(c.read); s.Fault != nil || len(s.Nodes) != 2 || took > wideLimit {
			t.Errorf("have %+v after %s", s, took)
		}
		go v.list(t.Context(), "far", "hung", c.now(), c) // it hangs until the end of the test
		synctest.Wait()
		ctx, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		before := time.Now()
		if _, _, err := v.list(ctx, "far", "hung", c.now(), c); err == nil || time.Since(before) > time.Second {
			t.Errorf("waited %s for somebody else's list: %v", time.Since(before), err)
		}
	})
}

package tasks

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// finding is a provider with many machines, that finds those of single jobs as well.
type finding struct {
	*rented
	find func([]job.ID) []cloud.Node
}

func (f *finding) Find(_ context.Context, _ string, jobs []job.ID) ([]cloud.Node, error) {
	return f.find(jobs), nil
}

// TestFindSharesCalls ensures that many who want to know of one job each, in a region with many machines, share few calls, that
// each gets an answer which is no older than its question, and that not all machines are listed for that.
func TestFindSharesCalls(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	b := newBench(t)
	var mu sync.Mutex
	var lists, finds, most, sought int
	begin := make(chan struct{})
	far := &finding{&rented{name: "far", list: func(context.Context, string) ([]cloud.Node, error) {
		mu.Lock()
		defer mu.Unlock()
		lists++
		return make([]cloud.Node, findFrom), nil
	}}, func(ids []job.ID) []cloud.Node {
		mu.Lock()
		sought += len(ids)
		mu.Unlock()
		<-begin
		mu.Lock()
		defer mu.Unlock()
		finds, most = finds+1, max(most, len(ids))
		var nodes []cloud.Node
		for _, id := range ids {
			nodes = append(nodes, cloud.Node{Identity: cloud.Identity{Job: id, Attempt: 1}, ID: fmt.Sprint("m", id), Provider: "far", Region: "r", State: cloud.Running})
		}
		return nodes
	}}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": {Provider: far, ViewEvery: time.Second}} })
	c := clock{store: 1_700_000_000_000, read: time.Now()}
	if _, _, err := w.views.list(t.Context(), "far", "r", c.now(), c); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range jobs {
		id := job.ID(i + 1)
		all.Go(func() {
			rec := job.Record{Head: job.Head{ID: id}, Live: []job.Attempt{{Number: 1, Offer: job.Offer{Provider: "far", Region: "r"}}}}
			asked := c.now()
			s := w.views.survey(t.Context(), &rec, job.Do{Newer: asked}, c)
			if s.Fault != nil || s.At < asked || len(s.Nodes) != 1 || s.Nodes[0].ID != fmt.Sprint("m", id) {
				t.Errorf("job %d, asked at %d: %+v", id, asked, s)
			}
		})
	}
	b.until("all to ask", func() bool {
		v := w.views.of("far", "r")
		v.search.mu.Lock()
		defer v.search.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		return len(v.search.waiting)+sought == jobs
	})
	close(begin)
	all.Wait()
	if lists != 1 || finds > 2*jobs/findMost || most > findMost {
		t.Errorf("%d lists, and %d calls of up to %d jobs", lists, finds, most)
	}
}

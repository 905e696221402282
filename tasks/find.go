package tasks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

const (
	// findFrom is the number of machines in a region from which on one job's are looked for instead of all being listed.
	findFrom = 500
	// findFresh is the age up to which the number of machines counts as known.
	findFresh = time.Minute
	// findMost bounds the jobs of one search: what a cloud takes as values of one filter.
	findMost = 200
)

// searches collects who asks for the machines of single jobs in one region: all that wait while one search is under way
// share the next one. So its calls do not grow with the jobs either, nor does what they bring with the machines.
type searches struct {
	turn    chan struct{} // held during a search
	mu      sync.Mutex
	waiting []*searching
}

type searching struct {
	id   job.ID
	done chan struct{} // closed when the rest is filled
	view found
}

// found is what came of a search.
type found struct {
	nodes []cloud.Node // also of the other jobs that were looked for
	asked time.Time    // by our own clock
	err   error
}

func newSearches() *searches { return &searches{turn: make(chan struct{}, 1)} }

// machinesOf are the machines of one job in a region, perhaps among others, as they were at or after newer, and when that
// was. Few machines are all listed, since that serves everybody.
func (v *views) machinesOf(ctx context.Context, where whereabouts, id job.ID, newer job.Time, c clock) ([]cloud.Node, job.Time, error) {
	site, err := v.sites.of(where.provider)
	if err != nil {
		return nil, 0, err
	}
	finder, ok := site.Provider.(cloud.Finder)
	w := v.of(where.provider, where.region)
	if !ok || !w.large() {
		return v.list(ctx, where.provider, where.region, newer, c)
	}
	if err := reached(ctx, newer, c); err != nil {
		return nil, 0, err
	}
	got := w.search.find(ctx, id, func(ctx context.Context, ids []job.ID) ([]cloud.Node, error) {
		return finder.Find(ctx, where.region, ids)
	})
	if got.err != nil {
		return nil, 0, fmt.Errorf("find in %s/%s: %w", where.provider, where.region, got.err)
	}
	return got.nodes, c.of(got.asked), nil
}

// large reports whether a region is known to hold many machines. It waits for no list that is under way.
func (w *view) large() bool {
	last := w.last.Load()
	return last != nil && last.count >= findFrom && time.Since(last.asked) < findFresh
}

// find waits for a search that began after it was called and is for this job, too, or makes it.
func (s *searches) find(ctx context.Context, id job.ID, search func(context.Context, []job.ID) ([]cloud.Node, error)) found {
	me := &searching{id: id, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, me)
	s.mu.Unlock()
	for {
		select {
		case <-me.done:
			return me.view
		case <-ctx.Done():
			return found{err: context.Cause(ctx)}
		case s.turn <- struct{}{}:
			s.search(ctx, search)
			<-s.turn
		}
	}
}

// search makes one search for all that wait, or as many as go into one.
func (s *searches) search(ctx context.Context, search func(context.Context, []job.ID) ([]cloud.Node, error)) {
	s.mu.Lock()
	n := min(len(s.waiting), findMost)
	group := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	s.mu.Unlock()
	if n == 0 {
		return
	}
	ids := make([]job.ID, n)
	for i, w := range group {
		ids[i] = w.id
	}
	got := found{asked: time.Now()}
	within(context.WithoutCancel(ctx), listLimit, func(ctx context.Context) { // it is for the others, too
		got.nodes, got.err = search(ctx, ids)
	})
	for _, w := range group {
		w.view = got
		close(w.done)
	}
}

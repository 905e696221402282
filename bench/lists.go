package main

import (
	"context"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/bench/plant"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// The lists are read from a store of its own, where the oldest jobs have a user and a name that no others have: to find
// them, a search has to pass all jobs. Besides the live ones it holds those that have ended (-ended), which are older.
const (
	pageSize  = 50
	rareCount = 60
	rareUser  = "nobody-else"
)

// lists fills a store with jobs, and measures how long each call of look takes, in milliseconds.
func lists(look func(context.Context, *store.Store) error) func(context.Context, *bench) ([]float64, error) {
	return func(ctx context.Context, b *bench) ([]float64, error) {
		s, err := b.listed(ctx)
		if err != nil {
			return nil, err
		}
		var samples []float64
		for range b.n {
			began := time.Now()
			if err := look(ctx, s); err != nil {
				return nil, err
			}
			samples = append(samples, float64(time.Since(began).Microseconds())/1000)
		}
		return samples, nil
	}
}

// listed makes the store of the lists when it is first asked for.
func (b *bench) listed(ctx context.Context) (*store.Store, error) {
	if b.lists == nil {
		r, err := newRecords(ctx, b)
		if err != nil {
			return nil, err
		}
		b.lists = r
		rare := typical(rareCount)
		rare.Request.User, rare.Request.Name = rareUser, "Rare"
		for _, sub := range []store.Submission{rare, typical(b.ended), typical(b.quiet - rareCount)} {
			if sub.Count == 0 {
				continue
			}
			ids, err := r.store.Submit(ctx, sub)
			if err != nil {
				return nil, err
			}
			if sub.Count == b.ended {
				if err := plant.End(ctx, r.store, ids); err != nil {
					return nil, err
				}
			}
		}
	}
	return b.lists.store, nil
}

// page measures one page of a list.
func page(q func(jobs int) store.Query) func(context.Context, *bench) ([]float64, error) {
	return func(ctx context.Context, b *bench) ([]float64, error) {
		want := q(b.quiet)
		want.Limit = pageSize
		return lists(func(ctx context.Context, s *store.Store) error {
			page, err := s.Find(ctx, want)
			if err == nil && len(page.Jobs) != pageSize {
				err = fmt.Errorf("%d jobs are on the page", len(page.Jobs))
			}
			return err
		})(ctx, b)
	}
}

var (
	firstPage  = page(func(int) store.Query { return store.Query{Live: true} })
	middlePage = page(func(jobs int) store.Query { return store.Query{Before: job.ID(jobs / 2)} })
	oldestLive = page(func(int) store.Query { return store.Query{Live: true, User: rareUser, Name: "rare"} })
	byUser     = page(func(int) store.Query { return store.Query{User: rareUser} })
	byName     = page(func(int) store.Query { return store.Query{Name: "rare"} })
	counts     = lists(func(ctx context.Context, s *store.Store) error {
		_, err := s.Statuses(ctx)
		return err
	})
)

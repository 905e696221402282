// Package plant brings jobs to where a benchmark wants them, without workers: by the decisions and commits of a worker, and as
// quickly as Redis takes them.
package plant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	driver = "bench"     // whose leases the claims are
	lease  = time.Minute // much longer than a launch takes here
	atOnce = 64          // launches, as many as keep Redis busy
	group  = 100         // jobs that end with one commit
)

// Launch says how jobs get from their submission to the watch.
type Launch struct {
	Rules job.Rules
	// See is what a launch sees of the world before it does anything.
	See func(*store.Claimed) job.Seen
	// Do does what was decided and adds what came of it; nil if See says it all.
	Do func(context.Context, *store.Claimed, job.Do, *job.Seen) error
	// Last changes the record that is given to the watch.
	Last func(next *job.Record, now job.Time)
}

// All launches new jobs.
func (l Launch) All(ctx context.Context, s *store.Store, ids []job.ID) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for _, id := range ids {
		all.Go(func() error {
			if err := l.one(ctx, s, id); err != nil {
				return fmt.Errorf("plant job %d: %w", id, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// one takes a job through its launch, as an act does when everything goes well.
func (l Launch) one(ctx context.Context, s *store.Store, id job.ID) error {
	c, err := s.Begin(ctx, id, job.StepLaunch, 1, driver, lease)
	if err != nil {
		return err
	}
	seen := l.See(&c)
	for c.Step != job.StepWatch {
		next, do := job.Decide(c.Record, seen, l.Rules, c.Now)
		launched := next.Step == job.StepWatch
		switch {
		case launched:
			l.Last(&next, c.Now)
		case do.Kind == job.DoWait:
			return fmt.Errorf("it waits: %+v", next.Wait)
		}
		results, err := s.Commit(ctx, s.ShardOf(id), store.Commit{From: &c, Next: next, Keep: !launched})
		if err = errors.Join(append(results, err)...); err != nil {
			return err
		}
		if l.Do != nil && !launched {
			if err := l.Do(ctx, &c, do, &seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// End ends new jobs, as if each had succeeded at once.
func End(ctx context.Context, s *store.Store, ids []job.ID) error {
	byShard := make([][]job.ID, s.Shards())
	for _, id := range ids {
		byShard[s.ShardOf(id)] = append(byShard[s.ShardOf(id)], id)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for shard, ids := range byShard {
		for part := range slices.Chunk(ids, group) {
			all.Go(func() error { return end(ctx, s, shard, part) })
		}
	}
	return all.Wait()
}

func end(ctx context.Context, s *store.Store, shard int, ids []job.ID) error {
	claims, commits := make([]store.Claimed, len(ids)), make([]store.Commit, len(ids))
	for i, id := range ids {
		var err error
		if claims[i], err = s.Begin(ctx, id, job.StepLaunch, 1, driver, lease); err != nil {
			return err
		}
		next := claims[i].Clone()
		next.Step, next.Tasks[0].Status, next.Tasks[0].EndedAt = job.StepDone, job.Succeeded, claims[i].Now
		commits[i] = store.Commit{From: &claims[i], Next: next}
	}
	results, err := s.Commit(ctx, shard, commits...)
	return errors.Join(append(results, err)...)
}

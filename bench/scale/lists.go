package main

import (
	"context"
	"time"

	"github.com/outlast-dev/outlast/bench/plant"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// listing is how long a list takes.
type listing struct {
	What  string  `json:"what"`
	Jobs  int     `json:"jobs"` // in Redis
	P50MS float64 `json:"p50_ms"`
	MaxMS float64 `json:"max_ms"`
}

const (
	pageSize  = 50
	listTimes = 20 // each list is asked for
	oddUser   = "nobody-else"
	oddName   = "rare"
)

// lists are what people look at, with half of all jobs before the middle.
var lists = []struct {
	what string
	ask  func(all int, now job.Time) store.Query
}{
	{"first page of live jobs", func(int, job.Time) store.Query { return store.Query{Live: true} }},
	{"first page of all jobs", func(int, job.Time) store.Query { return store.Query{} }},
	{"a page in the middle", func(all int, _ job.Time) store.Query { return store.Query{Before: job.ID(all / 2)} }},
	{"of a user who has the oldest ones only", func(int, job.Time) store.Query { return store.Query{User: oddUser} }},
	{"of a part of a name that only the oldest have", func(int, job.Time) store.Query { return store.Query{Name: oddName} }},
	{"of a user and a name that nobody has", func(int, job.Time) store.Query { return store.Query{User: oddUser, Name: "none"} }},
	{"of a status that no job has", func(int, job.Time) store.Query { return store.Query{Statuses: []job.Status{job.FailedSetup}} }},
	{"of the last minute", func(_ int, now job.Time) store.Query { return store.Query{Since: now.Add(-time.Minute)} }},
}

// counts is the row of the table that is no page.
const counts = "how many jobs have each status"

// measureLists adds ended jobs to the fleet, and asks for pages while it lives on.
func (f *fleet) measureLists(ctx context.Context, r *report) error {
	if err := f.plantEnded(ctx); err != nil {
		return err
	}
	all := f.live + f.ended
	say("asking for lists of %d live and %d ended jobs", f.live, f.ended)
	for _, l := range lists {
		err := f.ask(ctx, r, l.what, all, func(now job.Time) error {
			q := l.ask(all, now)
			q.Limit = pageSize
			_, err := f.store.Find(ctx, q)
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.ask(ctx, r, counts, all, func(job.Time) error {
		_, err := f.store.Statuses(ctx)
		return err
	})
}

// plantEnded makes the ended jobs, with a few among them that are like no others.
func (f *fleet) plantEnded(ctx context.Context) error {
	say("planting %d ended jobs", f.ended)
	if err := f.stopWorkers(); err != nil { // else they would launch them
		return err
	}
	odd := f.submission(oddName, min(f.ended, pageSize), 0)
	odd.Request.User = oddUser
	ids, err := f.store.Submit(ctx, odd)
	if err != nil {
		return err
	}
	if err := plant.End(ctx, f.store, ids); err != nil {
		return err
	}
	err = f.batches(ctx, "ended", f.ended-len(ids), func(ids []job.ID) error { return plant.End(ctx, f.store, ids) })
	if err != nil {
		return err
	}
	return f.startWorkers(ctx)
}

func (f *fleet) ask(ctx context.Context, r *report, what string, jobs int, list func(now job.Time) error) error {
	var samples []float64
	for range listTimes {
		now, err := f.store.Now(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := list(now); err != nil {
			return err
		}
		samples = append(samples, float64(time.Since(began).Microseconds())/1000)
	}
	s := sortedOf(samples)
	r.Lists = append(r.Lists, listing{What: what, Jobs: jobs, P50MS: s.quantile(.5), MaxMS: s.quantile(1)})
	return nil
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

func queueCommand(a *app) *cobra.Command {
	var filter queueFilter
	var watch time.Duration
	c := &cobra.Command{
		Use:     "queue",
		Aliases: []string{"ls"},
		Short:   "List jobs",
		Long: `List the jobs that have not ended, newest first; with -a also those that have, with -s those of
some statuses. A job's status is that of its first task that has not succeeded. Jobs that ended
long ago are in the archive: --archived lists those.

With --watch the list is drawn again every two seconds, in a pipe under the time of each look;
with -o json each look is a line.`,
		Example: `  enqueue queue
  enqueue queue -a --limit 20
  enqueue queue -s failed,failed_setup --since 2d --user ada
  enqueue queue -a --after 2026-01-01 --before 2026-01-31 --name train
  enqueue queue --watch=5s -o wide
  enqueue queue -a -o json | jq '.[] | select(.status == "FAILED").id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := filter.query(time.Local)
			if err != nil {
				return err
			}
			if c.Flags().Changed("watch") && watch < leastWatch {
				return usagef("--watch=%s: it must be %s or more", watch, leastWatch)
			}
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			if watch > 0 {
				return a.watchQueue(c.Context(), d, q, watch)
			}
			l, err := d.list(c.Context(), q)
			if err != nil {
				return err
			}
			return errors.Join(a.print(l.jobs, func() error { return a.queueTable(l) }), errors.Join(l.bad...))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	filter.add(f)
	f.DurationVarP(&watch, "watch", "w", 0, "draw the list again and again, every 2s or as often as `TIME` says (--watch=5s)")
	f.Lookup("watch").NoOptDefVal = usualWatch.String()
	return c
}

// listing is the jobs that a query found, and how many there are in each status. A damaged record is told beside the
// others, which are not lost for it.
type listing struct {
	jobs   []account.Job
	counts map[job.Status]int64
	bad    []error
	next   job.ID // there may be more below it; zero if not
	live   bool   // only jobs that have not ended were asked for
	now    job.Time
}

func (d *deployment) list(ctx context.Context, q queueQuery) (listing, error) {
	now, err := d.store.Now(ctx)
	if err != nil {
		return listing{}, err
	}
	page, err := d.find(ctx, q, now)
	if err != nil {
		return listing{}, err
	}
	l := listing{jobs: make([]account.Job, len(page.Jobs)), bad: page.Damaged, next: page.Next, live: q.Live, now: now}
	for i := range page.Jobs {
		l.jobs[i] = account.Of(&page.Jobs[i], now)
	}
	l.counts, err = d.store.Statuses(ctx)
	return l, err
}

// find reads a page of jobs, from Redis or from the archive, where a page may be put together of several.
func (d *deployment) find(ctx context.Context, q queueQuery, now job.Time) (store.Page, error) {
	want := q.at(now)
	if !q.archived {
		return d.store.Find(ctx, want)
	}
	var all store.Page
	for {
		page, err := d.jobs.FindArchived(ctx, want)
		if err != nil {
			return all, err
		}
		all.Jobs, all.Damaged = append(all.Jobs, page.Jobs...), append(all.Damaged, page.Damaged...)
		all.Next = page.Next
		if page.Next == 0 || q.Limit > 0 && len(all.Jobs) >= q.Limit {
			return all, nil
		}
		want.Before, want.Limit = page.Next, max(q.Limit-len(all.Jobs), 0)
	}
}

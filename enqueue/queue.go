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
	var q store.Query
	var all bool
	var watch time.Duration
	c := &cobra.Command{
		Use:     "queue",
		Aliases: []string{"ls"},
		Short:   "List jobs",
		Long: `List the jobs that have not ended, newest first; with -a also those that have.

With --watch the list is drawn again every two seconds, in a pipe under the time of each look;
with -o json each look is a line.`,
		Example: `  enqueue queue
  enqueue queue -a --limit 20
  enqueue queue --watch=5s -o wide
  enqueue queue -a -o json | jq '.[] | select(.status == "FAILED").id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return usagef("--limit must not be negative")
			}
			if c.Flags().Changed("watch") && watch < leastWatch {
				return usagef("--watch=%s: it must be %s or more", watch, leastWatch)
			}
			q.Live = !all
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
	f.BoolVarP(&all, "all", "a", false, "also jobs that have ended")
	f.IntVarP(&q.Limit, "limit", "l", 50, "at most `N`, 0 for all")
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
	full   bool // there may be more
	now    job.Time
}

func (d *deployment) list(ctx context.Context, q store.Query) (listing, error) {
	now, err := d.store.Now(ctx)
	if err != nil {
		return listing{}, err
	}
	page, err := d.store.Find(ctx, q)
	if err != nil {
		return listing{}, err
	}
	l := listing{jobs: make([]account.Job, len(page.Jobs)), bad: page.Damaged, full: page.Next != 0, now: now}
	for i := range page.Jobs {
		l.jobs[i] = account.Of(&page.Jobs[i], now)
	}
	l.counts, err = d.store.Statuses(ctx)
	return l, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

func eventsCommand(a *app) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "events ID",
		Short: "Show the history of a job",
		Long: `Show the history of a job, a line for each thing that happened to it: changes of
status, machines, and notes such as a webhook that could not be delivered. With
-o json each line is an object, with -o yaml each is an item of a list.`,
		Example: "  enqueue events 7\n  enqueue events 7 --follow",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			return a.events(c.Context(), d, id, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job has ended")
	return c
}

// events prints a job's history as far as it goes, or until the job has ended.
func (a *app) events(ctx context.Context, d *deployment, id job.ID, follow bool) error {
	var last job.Event
	look := time.NewTicker(waitEvery)
	defer look.Stop()
	for first := true; ; first = false {
		r, now, events, err := d.happened(ctx, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return errInterrupted
		case errors.Is(err, store.ErrUnavailable) && !first: // a store that does not answer is a pause
		case err != nil:
			return err
		default:
			if err := a.printEvents(after(events, last), len(r.Tasks) > 1, now); err != nil {
				return err
			}
			if !follow || r.Ended() {
				return nil
			}
			if len(events) > 0 {
				last = events[len(events)-1]
			}
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-look.C:
		}
	}
}

// happened reads a job's record and then its history, which tells all that led to the record.
func (d *deployment) happened(ctx context.Context, id job.ID) (job.Record, job.Time, []job.Event, error) {
	r, err := d.jobs.Load(ctx, id)
	if err != nil {
		return r, 0, nil, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return r, 0, nil, err
	}
	events, err := d.jobs.Events(ctx, id)
	return r, now, events, err
}

// printEvents prints events with when they happened, by the clock and seen from now.
func (a *app) printEvents(events []job.Event, chain bool, now job.Time) error {
	for _, e := range events {
		var shape any = account.EventOf(e)
		if a.flags.output == formYAML {
			shape = []any{shape} // one list in all
		}
		err := a.print(shape, func() error {
			at := account.Time(e.At)
			mark := a.onOut.dim(a.clock(at, now) + fmt.Sprintf("  %9s  ", ago(at, now)))
			_, err := fmt.Fprintln(a.out, a.hang(mark, a.onOut.status(job.Status(e.To), account.EventLine(e, chain))))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

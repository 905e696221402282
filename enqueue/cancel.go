package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

func cancelCommand(a *app) *cobra.Command {
	var name string
	var all bool
	grace := time.Duration(-1)
	c := &cobra.Command{
		Use:   "cancel ID... | -n NAME | --all",
		Short: "End jobs",
		Long: `End jobs: the user's code gets TERM, after the grace KILL, and the machines are closed.

A cancel is kept in the job's record and holds whatever fails meanwhile. A job
that has ended stays as it is.`,
		Example: `  enqueue cancel 7 8
  enqueue cancel -n train --grace 2m
  enqueue cancel --all`,
		Args: usage(func(c *cobra.Command, args []string) error {
			ways := 0
			for _, given := range []bool{len(args) > 0, c.Flags().Changed("name"), all} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return errors.New("which jobs? Give their numbers, or -n NAME, or --all")
			}
			if c.Flags().Changed("grace") && grace < 0 {
				return errors.New("--grace must not be negative")
			}
			return nil
		}),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all:
				return a.cancelWhere(c, nil, grace)
			case len(args) == 0:
				return a.cancelWhere(c, &name, grace)
			default:
				return a.cancelIDs(c, args, grace)
			}
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&name, "name", "n", "", "all live jobs with this `NAME`")
	f.BoolVar(&all, "all", false, "all live jobs")
	f.DurationVar(&grace, "grace", grace, "`TIME` between TERM and KILL (default: 30s)")
	f.Lookup("grace").DefValue = "0s" // cobra shows no zero
	return c
}

// cancelIDs cancels jobs one by one. One that is unknown does not spare the others.
func (a *app) cancelIDs(c *cobra.Command, args []string, grace time.Duration) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	ctx := c.Context()
	d, err := a.deployment(ctx)
	if err != nil {
		return err
	}
	cancelled, unknown := []job.ID{}, error(nil)
	for _, id := range ids {
		woken, err := d.store.Cancel(ctx, id, userName(), grace)
		switch err = a.unsafe(err); {
		case errors.Is(err, store.ErrNotFound):
			if _, err := d.jobs.Load(ctx, id); err != nil {
				unknown = errors.Join(unknown, err)
				continue
			}
			a.say("job %d has ended already", id) // and is in the archive
		case err != nil:
			return err
		case !woken.Live:
			a.say("job %d has ended already", id)
		default:
			cancelled = append(cancelled, id)
			a.hurry(d.wake(ctx)(woken, nil))
		}
	}
	return errors.Join(a.tellCancelled(cancelled), unknown)
}

// cancelWhere cancels all live jobs, or those with a name.
func (a *app) cancelWhere(c *cobra.Command, name *string, grace time.Duration) error {
	ctx := c.Context()
	d, err := a.deployment(ctx)
	if err != nil {
		return err
	}
	ids, woken, err := d.store.CancelWhere(ctx, name, userName(), grace)
	if err = a.unsafe(err); err != nil {
		return err
	}
	for _, w := range woken {
		a.hurry(d.wake(ctx)(w, nil))
	}
	if len(ids) == 0 && name != nil {
		return fmt.Errorf("no live job is named %s: %w", render.Text(*name), store.ErrNotFound)
	}
	return a.tellCancelled(ids)
}

// hurry tells why something that was accepted takes effect a little later.
func (a *app) hurry(err error) {
	if err != nil {
		a.say("this takes effect a little later: %v%s", err, advice(err))
	}
}

// unsafe tells that something was done of which a failover may lose what was done: that is no failure. Any other error it
// returns.
func (a *app) unsafe(err error) error {
	var unsafe *store.UnsafeError
	if !errors.As(err, &unsafe) {
		return err
	}
	if a.structured() {
		return a.encode(a.errs, map[string]failure{"warning": {Code: "not_replicated", Message: unsafe.Error()}})
	}
	a.say("warning: %v", unsafe)
	return nil
}

// advice is what can be done about Redis, behind an error that is only told.
func advice(err error) string {
	if trouble, ok := store.TroubleOf(err); ok {
		return "; " + trouble.Advice
	}
	return ""
}

func (a *app) tellCancelled(ids []job.ID) error {
	if ids == nil {
		ids = []job.ID{}
	}
	return a.print(map[string][]job.ID{"ids": ids}, func() error {
		switch len(ids) {
		case 0:
			a.say("nothing to cancel")
			return nil
		case 1:
			_, err := fmt.Fprintf(a.out, "job %d is being cancelled\n", ids[0])
			return err
		}
		_, err := fmt.Fprintf(a.out, "%d jobs are being cancelled: %s\n", len(ids), joinIDs(ids))
		return err
	})
}

// joinIDs lists ids, the first few of many.
func joinIDs(ids []job.ID) string {
	text := ""
	for i, id := range ids {
		if i == 20 {
			return text + ", ..."
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(id)
	}
	return text
}

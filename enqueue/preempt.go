package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// preempted is what was asked for.
type preempted struct {
	ID     job.ID  `json:"id"`
	Notice float64 `json:"notice_s"`
}

func preemptCommand(a *app) *cobra.Command {
	var notice time.Duration
	c := &cobra.Command{
		Use:   "preempt ID",
		Short: "Take a job's machine away, to see that the job survives it",
		Long: `Have the provider take the machine of a job, as it might do any time with a spot machine.

With --notice the user's code is told that long before. Works with providers that can do it, such as local.`,
		Example: "  enqueue preempt 7\n  enqueue preempt 7 --notice 30s",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			if notice < 0 {
				return usagef("--notice must not be negative")
			}
			ctx := c.Context()
			d, err := a.deployment(ctx)
			if err != nil {
				return err
			}
			woken, err := d.store.Preempt(ctx, id, notice)
			err = a.unsafe(err)
			if err != nil {
				return err
			}
			if !woken.Live {
				return fmt.Errorf("job %d has ended: it has no machine to lose", id)
			}
			a.hurry(d.wake(ctx)(woken, nil))
			return a.print(preempted{id, notice.Seconds()}, func() error {
				after := "at once"
				if notice > 0 {
					after = "after a notice of " + render.Duration(notice)
				}
				_, err := fmt.Fprintf(a.out, "the machine of job %d is taken %s\n", id, after)
				return err
			})
		},
	}
	c.Flags().DurationVar(&notice, "notice", 0, "tell the user's code that `TIME` before, such as 30s")
	return c
}

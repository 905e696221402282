package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

func resumeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume ID...",
		Short: "Let jobs that failed or were cancelled go again",
		Long: `Let jobs that failed or were cancelled go again, under the same number, from the
task that did not succeed. Attempts are counted on, so no log is written over;
restarts after errors are counted anew. Secrets are those of the submission.

A job that succeeded stays so: submit it again with launch.`,
		Example: `  enqueue resume 7
  enqueue resume 7 && enqueue logs 7`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("which jobs? Give their numbers")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.resume(c, ids)
		},
	}
}

// resume resumes jobs one by one. One that is refused does not spare the others.
func (a *app) resume(c *cobra.Command, ids []job.ID) error {
	ctx := c.Context()
	d, err := a.deployment(ctx)
	if err != nil {
		return err
	}
	resumed, refused := []job.ID{}, error(nil)
	for _, id := range ids {
		woken, err := d.resume(ctx, id)
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		resumed = append(resumed, id)
		a.hurry(d.wake(ctx)(woken, nil))
	}
	err = a.print(map[string][]job.ID{"ids": resumed}, func() error {
		for _, id := range resumed {
			fmt.Fprintf(a.out, "job %d goes again\n", id)
		}
		return nil
	})
	return errors.Join(err, refused)
}

// closingPatience is how long a resume waits for the machines of a job that has just ended.
const closingPatience = time.Minute

// resume lets a job go again. One whose machines are still being closed, as just after its end, is waited for.
func (d *deployment) resume(ctx context.Context, id job.ID) (store.Woken, error) {
	look := time.NewTicker(waitEvery)
	defer look.Stop()
	for until := time.Now().Add(closingPatience); ; {
		woken, err := d.jobs.Resume(ctx, id, userName())
		err = d.app.unsafe(err)
		var refused *job.NotResumableError
		if !errors.As(err, &refused) || !refused.Closing || time.Now().After(until) {
			return woken, err
		}
		select {
		case <-ctx.Done():
			return woken, errInterrupted
		case <-look.C:
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

func logsCommand(a *app) *cobra.Command {
	sel := follow.Selection{Task: follow.AllTasks}
	c := &cobra.Command{
		Use:   "logs ID [TASK]",
		Short: "Show the output of a job",
		Long: `Show the output of a job: of all its tasks and machines in their order, or of one task, given by
its number (from 0) or name.

Standard output is exactly that of the job. The exit code tells how the job fares; without -f
it is 101 for a job that has not ended.`,
		Example: `  enqueue logs 7
  enqueue logs 7 -f --tail 20
  enqueue logs 7 train --attempt 2`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if sel.Tail < 0 || sel.Attempt < 0 {
				return usagef("--tail and --attempt must not be negative")
			}
			var err error
			if sel.Job, err = parseID(args[0]); err != nil {
				return err
			}
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if sel.Task, err = d.taskNamed(c.Context(), sel.Job, args[1]); err != nil {
					return err
				}
			}
			return a.followJob(c.Context(), d, sel)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&sel.Follow, "follow", "f", false, "go on until the job has ended")
	f.IntVar(&sel.Attempt, "attempt", 0, "only of this attempt (see: enqueue show)")
	f.IntVar(&sel.Tail, "tail", 0, "begin with the last N lines of the newest attempt")
	return c
}

// taskNamed finds a task by its number or its name.
func (d *deployment) taskNamed(ctx context.Context, id job.ID, name string) (int, error) {
	r, err := d.jobs.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	for i, t := range r.Head.Tasks {
		if t.Name == name {
			return i, nil
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(r.Head.Tasks) {
		return n, nil
	}
	return 0, usagef("job %d has no task %s: it has %d, numbered from 0", id, render.Text(name), len(r.Head.Tasks))
}

// selectAll is the whole output of a job.
func selectAll(id job.ID, follows bool) follow.Selection {
	return follow.Selection{Job: id, Task: follow.AllTasks, Follow: follows}
}

// followJob shows the output of a job, with what happens to it on standard error, and returns how it fares.
func (a *app) followJob(ctx context.Context, d *deployment, sel follow.Selection) error {
	out, flush := a.output()
	n := &narrator{d: d, id: sel.Job, say: a.say, status: a.status, quiet: !sel.Follow}
	f := &follow.Follower{
		Store: d.jobs, Out: &follow.Printer{W: out}, Archive: d.logs(ctx),
		Begin:   func(at job.Attempt) { a.say("%s", beginLine(at)) },
		Seen:    n.look,
		Beat:    func(ctx context.Context) { n.complain(d.wake(ctx)(d.store.Follow(ctx, sel.Job))) },
		Broken:  n.complain,
		Removed: func(n archive.Notice) { a.say("%s", n) },
	}
	rec, err := f.Run(ctx, sel)
	a.status.set("")
	err = errors.Join(err, flush())
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		a.say("\njob %d goes on. Follow it: enqueue logs -f %d   End it: enqueue cancel %d", sel.Job, sel.Job, sel.Job)
		return errInterrupted
	case err != nil:
		return err
	}
	status := rec.Status()
	if sel.Task != follow.AllTasks {
		status = rec.Tasks[sel.Task].Status
	}
	n.end(status, &rec)
	return outcome(status)
}

// logs is the archive, or nil if it cannot be opened: then the live tails have to do.
func (d *deployment) logs(ctx context.Context) follow.Archive {
	files, err := d.archive(ctx)
	if err != nil {
		d.app.say("only the newest output can be shown: %v", err)
		return nil
	}
	return files
}

// output is standard output for a job's output: raw into pipes and files, harmless on a terminal.
func (a *app) output() (io.Writer, func() error) {
	if !a.terminal {
		return a.out, func() error { return nil }
	}
	t := render.NewTerminal(a.status.beside(a.out))
	return t, t.Close
}

// beginLine stands between the output of two attempts.
func beginLine(a job.Attempt) string {
	line := fmt.Sprintf("── attempt %d", a.Number)
	if a.Task > 0 {
		line = fmt.Sprintf("── task %d, attempt %d", a.Task, a.Number)
	}
	if a.Offer.Provider != "" {
		line += " on " + account.Place(a.Offer)
	}
	return line + " ──"
}

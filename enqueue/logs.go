package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

// logsFlags say what of a job's output is shown, and how.
type logsFlags struct {
	sel        follow.Selection
	noFollow   bool
	name       string
	stamp      bool
	marks      bool
	controller bool
	folder     string
}

func logsCommand(a *app) *cobra.Command {
	flags := logsFlags{sel: follow.Selection{Task: follow.AllTasks}}
	c := &cobra.Command{
		Use:   "logs ID [TASK]",
		Short: "Show the output of a job",
		Long: `Show the output of a job: of all its tasks and machines in their order, or of one task, given by
its number (from 0) or name.

Standard output is exactly that of the job, unless times or marks are asked for; on a terminal
a line tells where setup and run begin. The exit code tells how the job fares; without -f it
is 101 for a job that has not ended.`,
		Example: `  enqueue logs 7
  enqueue logs 7 -f --tail 20
  enqueue logs 7 train --attempt 2 -t
  enqueue logs -n nightly -f
  enqueue logs 7 --sync-down`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error { return a.logs(c.Context(), &flags, args) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&flags.sel.Follow, "follow", "f", false, "go on until the job has ended")
	f.BoolVar(&flags.noFollow, "no-follow", false, "show what there is and end, which is what happens without -f")
	f.IntVar(&flags.sel.Attempt, "attempt", 0, "only of this attempt (see: enqueue show)")
	f.IntVar(&flags.sel.Tail, "tail", 0, "begin with the last N lines of the newest attempt; 0 means all of all attempts")
	f.BoolVarP(&flags.stamp, "timestamps", "t", false, "the time before each line, in UTC by the deployment's clock")
	f.BoolVar(&flags.marks, "marks", false, "tell where setup and run begin, also in a pipe")
	f.StringVarP(&flags.name, "name", "n", "", "the newest live job of this name, instead of ID")
	f.BoolVar(&flags.controller, "controller", false, "what the workers have logged about the job, instead of its output")
	f.StringVarP(&flags.folder, "sync-down", "s", "", "write all logs into a new folder below this one (default: here)")
	f.Lookup("sync-down").NoOptDefVal = "."
	return c
}

// check refuses flags that contradict each other.
func (f *logsFlags) check(args []string) error {
	switch {
	case f.sel.Tail < 0 || f.sel.Attempt < 0:
		return usagef("--tail and --attempt must not be negative")
	case f.sel.Follow && f.noFollow:
		return usagef("-f and --no-follow contradict each other")
	case f.name == "" && len(args) == 0:
		return usagef("which job? give its ID, or -n NAME for the newest live one of a name")
	case (f.controller || f.folder != "") && (f.sel.Follow || f.sel.Tail > 0):
		return usagef("--controller and --sync-down take all there is, without -f and --tail")
	}
	return nil
}

// logs shows, follows or downloads.
func (a *app) logs(ctx context.Context, f *logsFlags, args []string) error {
	if f.name != "" {
		args = append([]string{""}, args...) // TASK is the second one
	}
	if err := f.check(args); err != nil {
		return err
	}
	if len(args) > 2 {
		return usagef("give either ID or -n NAME, and at most one TASK")
	}
	d, err := a.deployment(ctx)
	if err != nil {
		return err
	}
	if f.name != "" {
		f.sel.Job, err = d.newestNamed(ctx, f.name)
	} else {
		f.sel.Job, err = parseID(args[0])
	}
	if err != nil {
		return err
	}
	if len(args) == 2 {
		if f.sel.Task, err = d.taskNamed(ctx, f.sel.Job, args[1]); err != nil {
			return err
		}
	}
	switch {
	case f.folder != "":
		return a.syncDown(ctx, d, f.sel.Job, f.folder)
	case f.controller:
		return a.showJournal(ctx, d, f.sel.Job)
	}
	return a.followOutput(ctx, d, f.sel, f.printer(a))
}

// printer writes a job's output as the flags want it. W is left open.
func (f *logsFlags) printer(a *app) *follow.Printer {
	p := &follow.Printer{Stamp: f.stamp}
	if a.terminal || f.marks {
		p.Stage = func(stage job.MarkKind) error {
			_, err := fmt.Fprintln(p.W, a.onOut.dim(stageLine(stage)))
			return err
		}
	}
	if f.stamp {
		p.Skew = func(ahead time.Duration) { a.say("%s", skewLine(ahead)) }
	}
	return p
}

func stageLine(stage job.MarkKind) string {
	if stage == job.MarkSetup {
		return "── setup ──"
	}
	return "── run ──"
}

// skewLine tells how a machine's clock differs from the deployment's, by which the times are.
func skewLine(ahead time.Duration) string {
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	return fmt.Sprintf("the clock of the machine is %s %s the deployment's; the times are by the deployment's", ahead.Abs().Round(100*time.Millisecond), way)
}

// newestNamed finds the newest live job of a name.
func (d *deployment) newestNamed(ctx context.Context, name string) (job.ID, error) {
	page, err := d.store.Find(ctx, store.Query{Live: true, Name: name})
	if err != nil {
		return 0, err
	}
	for _, r := range page.Jobs {
		if r.Name == name {
			return r.ID, nil
		}
	}
	return 0, fmt.Errorf("no live job is named %s: %w", render.Text(name), store.ErrNotFound)
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
	return a.followOutput(ctx, d, sel, (&logsFlags{}).printer(a))
}

// followOutput is followJob with a printer.
func (a *app) followOutput(ctx context.Context, d *deployment, sel follow.Selection, p *follow.Printer) error {
	out, flush := a.output()
	p.W = out
	n := &narrator{d: d, id: sel.Job, say: a.say, status: a.status, quiet: !sel.Follow}
	f := &follow.Follower{
		Store: d.jobs, Out: p, Archive: d.logs(ctx),
		Begin:   func(at job.Attempt) { a.say("%s", account.BeginLine(at)) },
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

// tellRemoved says why the output of a job is not there any more, if it was removed.
func (d *deployment) tellRemoved(ctx context.Context, id job.ID, out follow.Out) error {
	files, err := d.archive(ctx)
	if err != nil {
		return nil //nolint:nilerr // it was told before
	}
	notice, err := files.Notice(ctx, id)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return out.Note(notice.String() + "\n")
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

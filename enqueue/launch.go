package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// launchFlags are the flags of `enqueue launch`.
type launchFlags struct {
	jobFlags
	detach bool
	dryRun bool
	count  int
	key    string
}

func launchCommand(a *app) *cobra.Command {
	var flags launchFlags
	c := &cobra.Command{
		Use:                   "launch [FLAGS] FILE | -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Submit a job and follow its output",
		Long: `Submit a job file, or a command, and follow the output until the job has ended.

Standard output is that of the job. Ctrl-C ends the following, not the job.`,
		Example: `  enqueue launch train.yaml
  enqueue launch train.yaml -d --env EPOCHS=5 --secret WANDB_API_KEY
  enqueue launch -n hello -- echo hello
  cat train.yaml | enqueue launch -`,
		Args: jobArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.launch(c, args, &flags)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&flags.detach, "detach", "d", false, "do not follow the output")
	f.BoolVar(&flags.dryRun, "dry-run", false, "only show where it would run, like enqueue plan")
	f.IntVar(&flags.count, "num-jobs", 1, "so many jobs of this kind; OUTLAST_JOB_RANK tells them apart")
	f.StringVar(&flags.key, "key", "", "submit only once: the same key again gives the same jobs")
	flags.add(f)
	return c
}

// launch submits a job and follows it.
func (a *app) launch(c *cobra.Command, args []string, flags *launchFlags) error {
	if flags.count < 1 || flags.count > maxCount {
		return usagef("--num-jobs %d: it must be from 1 to %d", flags.count, maxCount)
	}
	if flags.dryRun {
		return a.plan(c, args, &flags.jobFlags)
	}
	j, err := a.readJob(args, c.ArgsLenAtDash() == 0, &flags.jobFlags)
	if err != nil {
		return err
	}
	d, err := a.deployment(c.Context())
	if err != nil {
		return err
	}
	if err := d.foresee(c.Context(), j, flags.key); err != nil {
		return err
	}
	ids, err := d.submit(c.Context(), j, flags.count, flags.key)
	if err != nil {
		return err
	}
	if flags.detach || len(ids) > 1 {
		return a.announce(ids, j.Request.Name)
	}
	if a.structured() { // standard output is the job's
		if err := a.encode(a.errs, map[string][]job.ID{"ids": ids}); err != nil {
			return err
		}
	}
	a.say("job %d (%s) submitted", ids[0], render.Text(j.Request.Name))
	return a.followJob(c.Context(), d, selectAll(ids[0], true))
}

// maxCount bounds the jobs of one submission.
const maxCount = 100_000

// announce prints the ids of what was submitted, one a line.
func (a *app) announce(ids []job.ID, name string) error {
	if a.structured() {
		return a.encode(a.out, map[string][]job.ID{"ids": ids})
	}
	for _, id := range ids {
		if _, err := fmt.Fprintln(a.out, id); err != nil {
			return err
		}
	}
	if len(ids) == 1 {
		a.say("job %d (%s) submitted. Follow it: enqueue logs -f %d", ids[0], render.Text(name), ids[0])
	} else {
		a.say("%d jobs (%s) submitted. See them: enqueue queue", len(ids), render.Text(name))
	}
	return nil
}

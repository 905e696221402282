package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
)

// launchFlags are the flags of `enqueue launch`.
type launchFlags struct {
	detach       bool
	name         string
	envs         []string
	secrets      []string
	workdir      string
	priority     int
	count        int
	key          string
	withPriority bool
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
		Args: usage(func(c *cobra.Command, args []string) error {
			switch dash := c.ArgsLenAtDash(); {
			case dash > 0:
				return errors.New("either a job file or, after --, a command")
			case len(args) == 0:
				return errors.New("what is to be run? Name a job file, or write a command after --")
			case dash < 0 && len(args) > 1:
				return errors.New("one job file at a time; write a command after --")
			}
			return nil
		}),
		RunE: func(c *cobra.Command, args []string) error {
			flags.withPriority = c.Flags().Changed("priority")
			return a.launch(c, args, flags)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&flags.detach, "detach", "d", false, "do not follow the output")
	f.StringVarP(&flags.name, "name", "n", "", "name of the job")
	f.StringArrayVar(&flags.envs, "env", nil, "environment variable K=V, or K to take it from here (repeatable)")
	f.StringArrayVar(&flags.secrets, "secret", nil, "the same for a secret, which is stored sealed (repeatable)")
	f.StringVarP(&flags.workdir, "workdir", "w", "", "folder to take along, instead of the file's workdir")
	f.IntVar(&flags.priority, "priority", 0, "from -1000 to 1000, higher first")
	f.IntVar(&flags.count, "num-jobs", 1, "so many jobs of this kind; OUTLAST_JOB_RANK tells them apart")
	f.StringVar(&flags.key, "key", "", "submit only once: the same key again gives the same jobs")
	return c
}

// launch submits a job and follows it.
func (a *app) launch(c *cobra.Command, args []string, flags launchFlags) error {
	if flags.count < 1 || flags.count > maxCount {
		return usagef("--num-jobs %d: it must be from 1 to %d", flags.count, maxCount)
	}
	j, err := a.readJob(args, c.ArgsLenAtDash() == 0, flags)
	if err != nil {
		return err
	}
	d, err := a.deployment(c.Context())
	if err != nil {
		return err
	}
	ids, err := d.submit(c.Context(), j, flags.count, flags.key)
	if err != nil {
		return err
	}
	if flags.detach || len(ids) > 1 {
		return a.announce(ids, j.Request.Name)
	}
	if a.json() { // standard output is the job's
		if err := json.NewEncoder(a.errs).Encode(map[string][]job.ID{"ids": ids}); err != nil {
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
	if a.json() {
		return a.printJSON(map[string][]job.ID{"ids": ids})
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

// readJob reads what is to be run from a file, from standard input or from the command line.
func (a *app) readJob(args []string, command bool, flags launchFlags) (spec.Job, error) {
	opt, err := flags.options()
	if err != nil {
		return spec.Job{}, err
	}
	var j spec.Job
	switch {
	case command:
		j, err = spec.FromCommand(args, opt)
	case args[0] == "-":
		j, err = readStream(a.in, opt)
	default:
		j, err = spec.ParseFile(args[0], opt)
	}
	if err == nil && flags.workdir != "" {
		for i := range j.Workdirs {
			j.Workdirs[i] = flags.workdir
		}
	}
	return j, err
}

// maxFile is a little more than spec accepts, which then says so.
const maxFile = 1<<20 + 1

func readStream(in io.Reader, opt spec.Options) (spec.Job, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return spec.Job{}, fmt.Errorf("read the job file from standard input: %w", err)
	}
	return spec.Parse("stdin", data, opt)
}

// options are what the command line says about the job itself.
func (f launchFlags) options() (spec.Options, error) {
	opt := spec.Options{Name: f.name, User: userName()}
	if f.withPriority {
		opt.Priority = &f.priority
	}
	var err error
	if opt.Env, err = variables("--env", f.envs); err != nil {
		return opt, err
	}
	opt.Secret, err = variables("--secret", f.secrets)
	return opt, err
}

// variables reads K=V, or K with the value from our own environment. Values are not quoted in errors: they may be secret.
func variables(flag string, pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if !given {
			if value, given = os.LookupEnv(name); !given {
				return nil, usagef("%s %s: it has no value, and there is no such variable here", flag, render.Text(name))
			}
		}
		if name == "" {
			return nil, usagef("%s: write NAME=VALUE, or NAME to take it from the environment", flag)
		}
		out[name] = value
	}
	return out, nil
}

// userName is who submits or cancels, for people only.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

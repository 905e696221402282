package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
)

// newRoot is the command tree.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "enqueue",
		Short: "Run batch jobs that outlast their machines",
		Long: `Run batch jobs on machines that can be taken away at any moment, and bring each
of them to its end anyway.

Exit codes of launch, logs and wait: 0 the job succeeded, 100 it failed,
101 it has not finished, 102 there is no such job, 103 it was cancelled.
Of all commands: 2 the command line or job file is wrong, 1 anything else.`,
		Example: `  enqueue launch train.yaml           submit a job and follow its output
  enqueue queue                       see how jobs fare
  enqueue show 7                      see all about job 7
  enqueue cancel 7                    end it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				return usagef("there is no command %q: did you mean %s?", args[0], near[0])
			}
			return usagef("there is no command %q", args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.prepare() }

	f := root.PersistentFlags()
	f.SortFlags = false
	a.addSettings(f)
	f.StringVarP(&a.flags.output, "output", "o", "table", "table, or json for programs")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (so does NO_COLOR)")

	root.AddCommand(
		launchCommand(a), queueCommand(a), showCommand(a), logsCommand(a), waitCommand(a), cancelCommand(a),
		preemptCommand(a), machinesCommand(a), workersCommand(a), versionCommand(a),
	)
	return root
}

// usage turns the errors of a check of arguments into usage errors.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// parseID reads the number of a job.
func parseID(s string) (job.ID, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil || n <= 0 {
		return 0, usagef("%q is not the number of a job", s)
	}
	return job.ID(n), nil
}

func parseIDs(args []string) ([]job.ID, error) {
	ids := make([]job.ID, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = parseID(arg); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

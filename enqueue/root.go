package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/job"
)

// newRoot is the command tree.
func newRoot(a *app) *cobra.Command {
	cobra.EnableCommandSorting = false // in the order of their use
	root := &cobra.Command{
		Use:   "enqueue",
		Short: "Run batch jobs that outlast their machines",
		Long: `Run batch jobs on machines that can be taken away at any moment, and bring each
of them to its end anyway.

Exit codes of launch, logs and wait: 0 the job succeeded, 100 it failed,
101 it has not finished, 102 there is no such job, 103 it was cancelled.
Of all commands: 2 the command line or job file is wrong, 1 anything else.`,
		Example: `  enqueue launch train.yaml           # submit a job and follow its output
  enqueue queue                       # see how jobs fare
  enqueue show 7                      # see all about job 7
  enqueue cancel 7                    # end it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(c, args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{err: flagError(c, err)} })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.prepare() }

	f := root.PersistentFlags()
	f.SortFlags = false
	a.addSettings(f)
	f.StringVarP(&a.flags.output, "output", "o", formTable, "`FORM` of results: table, wide (all there is to tell), json or yaml")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (so does NO_COLOR)")

	addGroup(root, "jobs", "Jobs:",
		launchCommand(a), checkCommand(a), planCommand(a), queueCommand(a), showCommand(a), logsCommand(a), waitCommand(a), cancelCommand(a), resumeCommand(a),
		eventsCommand(a), preemptCommand(a))
	addGroup(root, "deployment", "The deployment:",
		machinesCommand(a), workersCommand(a), dashboardCommand(a))
	addGroup(root, "other", "This program:",
		configCommand(a), schemaCommand(a), completionCommand(a), versionCommand(a))
	root.AddCommand(manCommand())
	root.SetHelpCommandGroupID("other")
	root.CompletionOptions.DisableDefaultCmd = true // ours is among the others
	a.addCompletions(root)
	return root
}

// addGroup adds commands that the help lists together, in this order.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// flagError names the flag that was probably meant instead of one that there is not.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	given := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		given = "-" + unknown.GetSpecifiedName()
	}
	if near := didyoumean.Nearest(unknown.GetSpecifiedName(), names); near != "" && strings.HasPrefix(given, "--") {
		return fmt.Errorf("there is no flag %s: did you mean --%s?", given, near)
	}
	return fmt.Errorf("there is no flag %s", given)
}

// unknownCommand names the command that was probably meant.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	if near := didyoumean.Nearest(name, names); near != "" {
		return usagef("there is no command %q: did you mean %s?", name, near)
	}
	return usagef("there is no command %q", name)
}

// noArguments refuses any argument.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{err: fmt.Errorf("%s takes no arguments, and %q is one", c.CommandPath(), args[0])}
	}
	return nil
}

// oneJob asks for the number of one job.
func oneJob(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("which job? Give its number")
	case 1:
		return nil
	default:
		return usagef("one job at a time: %q is one too many", args[1])
	}
}

// usage turns the errors of a check of arguments into usage errors.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &usageError{err: err}
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

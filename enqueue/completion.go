package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

func completionCommand(a *app) *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands, flags and jobs in a shell",
		Long: `Print a script for bash, zsh, fish or powershell. With it the shell completes commands, flags, statuses
and the numbers of the jobs that fit: those that have not ended for cancel, for example.`,
		Example: `  source <(enqueue completion bash)                      # now, or in ~/.bashrc
  enqueue completion zsh > "${fpath[1]}/_enqueue"
  enqueue completion fish > ~/.config/fish/completions/enqueue.fish
  enqueue completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: names,
		Args: usage(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return fmt.Errorf("for which shell? Name one: %s", strings.Join(names, ", "))
			}
			return nil
		}),
		RunE: func(c *cobra.Command, args []string) error { return shells[args[0]](c.Root(), a.out) },
	}
}

const (
	completeWithin = time.Second // somebody has pressed a key and waits
	completeMost   = 100         // jobs, the newest
)

// completing completes words with what a deployment holds. It is silent when there is none: an error in the middle of a
// command line helps nobody.
type completing func(ctx context.Context, d *deployment) ([]cobra.Completion, error)

// completes makes a completion for arguments or for the value of a flag.
func (a *app) completes(most int, with func(args []string) completing) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, done := context.WithTimeout(c.Context(), completeWithin)
		defer done()
		d, err := a.deployment(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, _ := with(args)(ctx, d)
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeJobs completes the numbers of jobs that fit, each described by its name and status. most is how many there may
// be on a line, 0 for any number.
func (a *app) completeJobs(most int, fits func(job.Status) bool) cobra.CompletionFunc {
	return a.completes(most, func(args []string) completing {
		return func(ctx context.Context, d *deployment) ([]cobra.Completion, error) {
			page, _ := d.store.Find(ctx, store.Query{Statuses: statusesThat(fits), Limit: completeMost})
			var out []cobra.Completion
			for i := range page.Jobs {
				r := &page.Jobs[i]
				id := fmt.Sprint(r.ID)
				if !slices.Contains(args, id) {
					out = append(out, cobra.CompletionWithDesc(id, inShell(r.Name)+" "+string(r.Status())))
				}
			}
			return out, nil
		}
	})
}

// statusesThat are the statuses that fit; nil, which means all, if it does not matter.
func statusesThat(fit func(job.Status) bool) []job.Status {
	if fit == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(job.Statuses), func(s job.Status) bool { return !fit(s) })
}

// completeNames completes the names of jobs that fit.
func (a *app) completeNames(fits func(job.Status) bool) cobra.CompletionFunc {
	return a.completes(0, func([]string) completing {
		return func(ctx context.Context, d *deployment) ([]cobra.Completion, error) {
			page, _ := d.store.Find(ctx, store.Query{Statuses: statusesThat(fits), Limit: completeMost})
			var out []cobra.Completion
			for _, r := range page.Jobs {
				if name := r.Name; name == inShell(name) && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
			return out, nil
		}
	})
}

// completeTasks completes the tasks of the job that is named before them.
func (a *app) completeTasks() cobra.CompletionFunc {
	jobs := a.completeJobs(1, nil)
	tasks := a.completes(2, func(args []string) completing {
		return func(ctx context.Context, d *deployment) ([]cobra.Completion, error) {
			id, err := parseID(args[0])
			if err != nil {
				return nil, err
			}
			r, err := d.jobs.Load(ctx, id)
			var out []cobra.Completion
			for i, t := range r.Tasks {
				out = append(out, cobra.CompletionWithDesc(strconv.Itoa(i), inShell(r.Head.Tasks[i].Name)+" "+string(t.Status)))
			}
			return out, err
		}
	})
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return jobs(c, args, word)
		}
		return tasks(c, args, word)
	}
}

// addCompletions tells the shell what may stand after the commands and flags that need a deployment or a table to know.
func (a *app) addCompletions(root *cobra.Command) {
	arguments := map[string]cobra.CompletionFunc{
		"cancel": a.completeJobs(0, live), "wait": a.completeJobs(0, live), "preempt": a.completeJobs(1, live),
		"show": a.completeJobs(1, nil), "events": a.completeJobs(1, nil), "logs": a.completeTasks(), "resume": a.completeJobs(1, ended),
		"view": cobra.FixedCompletions(settingNames(), cobra.ShellCompDirectiveNoFileComp),
	}
	statuses := make([]cobra.Completion, len(job.Statuses))
	for i, s := range job.Statuses {
		statuses[i] = string(s)
	}
	flags := map[string]cobra.CompletionFunc{
		"output": cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp),
		"status": cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp),
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if complete := arguments[c.Name()]; complete != nil {
			c.ValidArgsFunction = complete
		}
		for name, complete := range flags {
			if f := c.Flag(name); f != nil {
				_ = c.RegisterFlagCompletionFunc(name, complete) // an error says that it was there already
			}
		}
		if c.Name() == "cancel" {
			_ = c.RegisterFlagCompletionFunc("name", a.completeNames(live))
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

func live(s job.Status) bool  { return !s.Terminal() }
func ended(s job.Status) bool { return s.Terminal() }

// notPlain is everything that a shell might understand.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9._ -]+|^-`)

// inShell is a name as it is handed to the scripts of a shell: they are many, and each has its own ways of taking text
// for code.
func inShell(name string) string { return notPlain.ReplaceAllString(name, "?") }

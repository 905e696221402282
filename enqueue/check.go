package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// checked is what was found in one job file.
type checked struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Judged   bool      `json:"judged"` // by what a deployment offers, not only by itself
	Problems []problem `json:"problems"`
	Notes    []string  `json:"notes"`

	plan account.Plan
	err  error // what kept the file from being judged
}

func checkCommand(a *app) *cobra.Command {
	var flags jobFlags
	var offline bool
	c := &cobra.Command{
		Use:                   "check [FLAGS] FILE...",
		DisableFlagsInUseLine: true,
		Short:                 "Find all that is wrong with job files, without starting anything",
		Long: `Read job files and tell all that is wrong with them at once. With a deployment at
hand the files are also judged by what its providers offer and honour: fields that
have no effect there are noted, and what nothing there could ever serve is wrong.
Without one, or with --offline, only the files themselves are checked.

The exit code is 2 if any file is wrong.`,
		Example: `  enqueue check train.yaml
  enqueue check jobs/*.yaml -o json
  enqueue check --offline train.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("which job files?")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.check(c.Context(), args, &flags, offline) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&offline, "offline", false, "ask no deployment: check only the files themselves")
	flags.add(f)
	return c
}

// check looks at all files before it says that one is wrong.
func (a *app) check(ctx context.Context, files []string, flags *jobFlags, offline bool) error {
	market, judged, err := a.marketAtHand(ctx, offline)
	if err != nil {
		return err
	}
	results := make([]checked, len(files))
	wrong := 0
	for i, file := range files {
		results[i] = a.checkFile(file, flags, market, judged)
		if !results[i].OK {
			wrong++
		}
	}
	if err := a.print(results, func() error { return a.showChecked(results) }); err != nil {
		return err
	}
	if wrong > 0 {
		return &outcomeError{exitUsage}
	}
	return nil
}

// marketAtHand is what a deployment offers, if one can be asked. That none can is said and is no error.
func (a *app) marketAtHand(ctx context.Context, offline bool) (place.Market, bool, error) {
	if offline {
		return place.Market{}, false, nil
	}
	d, err := a.deployment(ctx)
	var m place.Market
	if err == nil {
		m, err = tasks.ReadMarket(ctx, d.store)
	}
	switch {
	case errors.Is(err, errNoRedis), errors.Is(err, store.ErrNoDeployment), errors.Is(err, store.ErrUnavailable):
		a.say("only the files themselves are checked: %s", render.Text(err.Error()))
		return place.Market{}, false, nil
	case err != nil:
		return place.Market{}, false, err
	}
	for _, doubt := range m.Doubts {
		a.say("the files cannot be judged by all that there is: %s", render.Text(doubt))
	}
	return m, true, nil
}

func (a *app) checkFile(file string, flags *jobFlags, m place.Market, judged bool) checked {
	c := checked{File: file, OK: true, Judged: judged && m.Certain(), Problems: []problem{}, Notes: []string{}}
	j, err := a.readJob([]string{file}, false, flags)
	if err != nil {
		c.OK, c.err = false, err
		if c.Problems = problemsOf(err); c.Problems == nil {
			c.Problems = []problem{{File: file, Message: err.Error()}}
		}
		return c
	}
	c.plan = planOf(j, m)
	c.Notes = append(c.Notes, c.plan.Notes()...)
	if !judged {
		return c
	}
	if c.plan.Fits || !m.Certain() {
		return c
	}
	c.OK = false
	for _, why := range c.plan.Problems() {
		c.Problems = append(c.Problems, problem{File: file, Message: why, Hint: "see: enqueue plan " + file})
	}
	return c
}

func (a *app) showChecked(results []checked) error {
	for _, c := range results {
		var problems spec.Errors
		if errors.As(c.err, &problems) {
			tellProblems(a.out, a.onOut, problems)
		} else {
			for _, p := range c.Problems {
				fmt.Fprintln(a.out, a.onOut.red("error: ")+render.Text(c.File+": "+p.Message))
				if p.Hint != "" {
					fmt.Fprintln(a.out, a.onOut.dim("hint:  "+render.Text(p.Hint)))
				}
			}
		}
		for _, n := range c.Notes {
			fmt.Fprintln(a.out, a.onOut.yellow("note:  ")+render.Text(c.File)+": "+n)
		}
		if c.OK {
			fmt.Fprintln(a.out, a.onOut.green("ok:    ")+render.Text(c.File)+": "+prospect(c))
		}
	}
	return nil
}

// prospect is what a good file may expect, in few words.
func prospect(c checked) string {
	s := fmt.Sprintf("%d tasks", len(c.plan.Tasks))
	if len(c.plan.Tasks) == 1 {
		s = "1 task"
	}
	if !c.Judged {
		return s + ", not judged by what is on offer"
	}
	for _, t := range c.plan.Tasks {
		if len(t.Offers) == 0 {
			continue
		}
		best := t.Offers[0]
		return fmt.Sprintf("%s, begins on %s at %s per hour", s, account.Short(best.Offer), account.Price(best.Price))
	}
	return s + ", needs no machine"
}

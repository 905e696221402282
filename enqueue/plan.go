package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

func planCommand(a *app) *cobra.Command {
	var flags jobFlags
	c := &cobra.Command{
		Use:                   "plan [FLAGS] FILE | -- COMMAND [ARGUMENT...]",
		DisableFlagsInUseLine: true,
		Short:                 "Show where a job would run and what would happen after a loss",
		Long: `Show for each task of a job which machines would be tried, in which order and at
what price, what rules the others out, and where the task would go if it lost its
machine. Nothing is started and nothing is stored.

The exit code is 0 if every task can be served and 2 if one never can.`,
		Example: `  enqueue plan train.yaml
  enqueue plan train.yaml --gpus A100:8 --use-spot
  enqueue plan -o wide -- python train.py`,
		Args: jobArgs,
		RunE: func(c *cobra.Command, args []string) error { return a.plan(c, args, &flags) },
	}
	c.Flags().SortFlags = false
	flags.add(c.Flags())
	return c
}

// plan looks ahead for one job.
func (a *app) plan(c *cobra.Command, args []string, flags *jobFlags) error {
	j, err := a.readJob(args, c.ArgsLenAtDash() == 0, flags)
	if err != nil {
		return err
	}
	d, err := a.deployment(c.Context())
	if err != nil {
		return err
	}
	m, err := tasks.ReadMarket(c.Context(), d.store)
	if err != nil {
		return err
	}
	p := planOf(j, m)
	if err := a.print(p, func() error { return a.planTables(p) }); err != nil {
		return err
	}
	switch {
	case p.Fits:
		return nil
	case m.Certain():
		return &outcomeError{exitUsage}
	default:
		return fmt.Errorf("it is not known whether this can be served: %s", strings.Join(p.Doubts, "; "))
	}
}

// planOf looks ahead for a job as it was written.
func planOf(j spec.Job, m place.Market) account.Plan {
	p := account.PlanOf(j.Request, m)
	p.Unused = j.Unused
	return p
}

// foresee tells what of a job has no effect, and refuses what nothing could ever serve before anything is stored. What is
// not known for certain is no reason to refuse (G10): workers decide.
func (d *deployment) foresee(ctx context.Context, j spec.Job, key string) error {
	m, err := tasks.ReadMarket(ctx, d.store)
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	if err != nil {
		d.app.say("the job is not judged by what is on offer: %s", err)
		return d.app.tellNotes(j.Unused)
	}
	p := planOf(j, m)
	if err := d.app.tellNotes(p.Notes()); err != nil {
		return err
	}
	if p.Fits || !m.Certain() {
		return nil
	}
	if used, err := d.store.KeyUsed(ctx, key); used || err != nil {
		return err // it was accepted when there was something for it: the same key gives the same jobs
	}
	return &unservableError{p.Problems()}
}

// unservableError says that nothing could ever serve a job.
type unservableError struct{ problems []string }

func (e *unservableError) Error() string { return strings.Join(e.problems, "\n") }

func isUnservable(err error) bool {
	var unservable *unservableError
	return errors.As(err, &unservable)
}

// tellNotes tells on standard error what has no effect.
func (a *app) tellNotes(notes []string) error {
	if a.structured() {
		if len(notes) == 0 {
			return nil
		}
		return a.encode(a.errs, map[string][]string{"notes": notes})
	}
	for _, n := range notes {
		fmt.Fprintln(a.errs, a.onErrs.yellow("note: ")+n)
	}
	return nil
}

// shownOffers is how many offers of a task are shown; -o wide shows all.
const shownOffers = 20

// planTables shows a plan to people.
func (a *app) planTables(p account.Plan) error {
	for i, t := range p.Tasks {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if len(p.Tasks) > 1 {
			fmt.Fprintln(a.out, a.onOut.bold(t.Label()))
		}
		if err := a.planTask(t); err != nil {
			return err
		}
	}
	if err := a.tellNotes(p.Notes()); err != nil {
		return err
	}
	for _, doubt := range p.Doubts {
		fmt.Fprintln(a.errs, a.onErrs.yellow("note: ")+render.Text(doubt))
	}
	return nil
}

func (a *app) planTask(t account.PlannedTask) error {
	if t.Idle {
		fmt.Fprintln(a.out, "it has nothing to run: it succeeds at once and gets no machine")
		return nil
	}
	shown := t.Offers
	if !a.wide() {
		shown = shown[:min(len(shown), shownOffers)]
	}
	if len(shown) > 0 {
		if err := a.offerTable(shown); err != nil {
			return err
		}
	}
	if more := len(t.Offers) - len(shown); more > 0 {
		fmt.Fprintf(a.out, "... and %d more (-o wide shows all)\n", more)
	}
	for _, line := range t.Then {
		fmt.Fprintln(a.out, a.onOut.dim("then:")+" "+line)
	}
	if len(t.Offers) == 0 {
		fmt.Fprintln(a.out, a.onOut.red("nothing can serve it"))
	}
	return a.ruledOut(t.RuledOut)
}

func (a *app) offerTable(offers []account.PlannedOffer) error {
	columns := []render.Column{
		{Title: "TURN", Right: true}, {Title: "WHERE", Max: 40, Min: 10}, {Title: "KIND", Max: 40, Min: 10, Drop: 1},
		{Title: "PRICE/H", Right: true}, {Title: "CPUS", Right: true, Drop: 3}, {Title: "GB", Right: true, Drop: 4},
	}
	accelerated := slices.ContainsFunc(offers, func(o account.PlannedOffer) bool { return o.Accelerator != "" })
	if accelerated {
		columns = append(columns, render.Column{Title: "ACCELERATORS", Drop: 2})
	}
	var rows [][]string
	for i, o := range offers {
		row := []string{
			strconv.Itoa(i + 1), account.Place(o.Offer), account.Kind(o.Offer), account.Price(o.Price), amount(o.CPUs), amount(o.MemoryGB),
		}
		if accelerated {
			row = append(row, account.Accelerators(o.Offer))
		}
		rows = append(rows, row)
	}
	return a.table(columns, rows)
}

// amount is a number of something, "" for not known.
func amount(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// shownReasons is how many reasons are shown; -o wide shows all offers with theirs.
const shownReasons = 10

// ruledOut tells why the other offers are not taken: one line for each reason, or with -o wide for each offer.
func (a *app) ruledOut(offers []account.PlannedOffer) error {
	if len(offers) == 0 {
		return nil
	}
	fmt.Fprintf(a.out, "\nruled out:\n")
	if a.wide() {
		for _, o := range offers {
			fmt.Fprintf(a.out, "  %s: %s\n", account.Short(o.Offer), render.Text(o.Reason))
		}
		return nil
	}
	groups := place.GroupByReason(ranked(offers))
	for _, g := range groups[:min(len(groups), shownReasons)] {
		which := account.Short(g.First)
		switch {
		case g.N == len(offers) && g.N > 1:
			which = fmt.Sprintf("all %d", g.N)
		case g.N > 1:
			which += fmt.Sprintf(" and %d more", g.N-1)
		}
		fmt.Fprintf(a.out, "  %s: %s\n", which, render.Text(g.Reason))
	}
	if more := len(groups) - shownReasons; more > 0 {
		fmt.Fprintf(a.out, "  ... and %d more reasons (-o wide shows all)\n", more)
	}
	return nil
}

func ranked(offers []account.PlannedOffer) []place.Ranked {
	out := make([]place.Ranked, len(offers))
	for i, o := range offers {
		out[i] = place.Ranked{Offer: o.Offer, Reason: o.Reason}
	}
	return out
}

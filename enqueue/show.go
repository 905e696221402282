package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

func showCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show all about a job: its tasks, machines and history",
		Example: "  enqueue show 7\n  enqueue show 7 -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			h, now, err := d.history(c.Context(), id)
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(h)
			}
			return a.showHistory(h, now)
		},
	}
}

// history reads all about a job, as it is at the time returned.
func (d *deployment) history(ctx context.Context, id job.ID) (account.History, job.Time, error) {
	r, err := d.store.Load(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	past, err := d.store.Past(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	events, err := d.store.Events(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return account.History{}, 0, err
	}
	return account.HistoryOf(&r, past, events, now), now, nil
}

func (a *app) showHistory(h account.History, now job.Time) error {
	p := a.onOut
	title := p.bold(fmt.Sprintf("job %d", h.ID)) + " " + render.Text(h.Name)
	fmt.Fprintf(a.out, "%s  %s\n", title, p.status(h.Status, string(h.Status)+progress(h.Job)))
	for _, line := range headLines(h, now) {
		fmt.Fprintln(a.out, line)
	}
	if len(h.Tasks) > 1 {
		fmt.Fprintln(a.out)
		if err := a.taskTable(h.Tasks, now); err != nil {
			return err
		}
	}
	if len(h.Attempts) > 0 {
		fmt.Fprintln(a.out)
		if err := a.attemptTable(h, now); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.out)
	for _, e := range h.Events {
		fmt.Fprintf(a.out, "%s  %s\n", p.dim(clock(e.At, now)), p.status(job.Status(e.To), account.EventLine(e.Event(), len(h.Tasks) > 1)))
	}
	return nil
}

// headLines are what is true of the job as a whole.
func headLines(h account.History, now job.Time) []string {
	by := ""
	if h.User != "" {
		by = " by " + render.Text(h.User)
	}
	lines := []string{"submitted  " + ago(h.SubmittedAt, now) + by}
	if h.Priority != 0 {
		lines = append(lines, "priority   "+strconv.Itoa(h.Priority))
	}
	if h.StartedAt != 0 {
		lines = append(lines, "started    "+ago(h.StartedAt, now))
	}
	if h.EndedAt != 0 {
		lines = append(lines, "ended      "+ago(h.EndedAt, now))
	}
	if h.Seconds > 0 {
		lines = append(lines, "ran        "+lasted(h.Seconds))
	}
	if h.Recoveries > 0 {
		lines = append(lines, "recovered  "+times(h.Recoveries))
	}
	if h.Cause != nil {
		lines = append(lines, "because    "+account.Explain(*h.Cause))
	}
	if h.Waits != nil {
		lines = append(lines, "waits      "+account.Explain(h.Waits.Cause))
	}
	return lines
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (a *app) taskTable(tasks []account.Task, now job.Time) error {
	columns := []render.Column{
		{Title: "TASK", Right: true}, {Title: "NAME", Max: 16}, {Title: "STATUS"}, {Title: "STARTED"}, {Title: "RAN"},
		{Title: "REC", Right: true}, {Title: "CAUSE"},
	}
	var rows [][]string
	for _, t := range tasks {
		cause := ""
		if t.Cause != nil {
			cause = string(t.Cause.Code)
		}
		rows = append(rows, []string{
			strconv.Itoa(t.Index), render.Text(t.Name), a.onOut.status(t.Status, string(t.Status)), ago(t.StartedAt, now),
			lasted(t.Seconds), strconv.Itoa(t.Recoveries), cause,
		})
	}
	return render.Table(a.out, columns, rows)
}

func (a *app) attemptTable(h account.History, now job.Time) error {
	columns := []render.Column{
		{Title: "TRY", Right: true}, {Title: "WHERE", Max: 20}, {Title: "KIND", Max: 14}, {Title: "PRICE/H", Right: true},
		{Title: "PHASE"}, {Title: "RAN"}, {Title: "ENDED BECAUSE", Max: 28},
	}
	var rows [][]string
	for _, at := range h.Attempts {
		number := strconv.Itoa(at.Number)
		if len(h.Tasks) > 1 {
			number = fmt.Sprintf("%d.%d", at.Task, at.Number)
		}
		rows = append(rows, []string{
			number, account.Place(at.Offer), account.Kind(at.Offer), price(at.Offer.Price), string(at.Phase), ran(at, now), account.EndOf(at),
		})
	}
	return render.Table(a.out, columns, rows)
}

// ran is how long the user's code ran in an attempt.
func ran(a account.Attempt, now job.Time) string {
	if a.Started == 0 {
		return ""
	}
	end := now
	if a.Ended != 0 {
		end = job.Time(a.Ended)
	}
	return render.Duration(end.Sub(job.Time(a.Started)))
}

// price is per hour, as exact as it matters.
func price(p float64) string {
	if p == 0 {
		return "0"
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(p, 'f', 4, 64), "0"), ".")
}

// clock is a time as people read it in a history: the day only if it is another one.
func clock(s account.Time, now job.Time) string {
	at := job.Time(s).Std().Local()
	if today := now.Std().Local(); at.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

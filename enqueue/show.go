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
		Use:   "show ID",
		Short: "Show all about a job: its tasks, attempts and history",
		Long: `Show all about a job: what it waits for or why it ended, its tasks, its attempts drawn on one axis of
time with where each was, how long it ran, what it cost and why it ended, and its history.

Of many attempts the first and the last are drawn; with -o wide all are.`,
		Example: "  enqueue show 7\n  enqueue show 7 -o json",
		Args:    oneJob,
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
			return a.print(h, func() error { return a.showHistory(h, now) })
		},
	}
}

// history reads all about a job, as it is at the time returned.
func (d *deployment) history(ctx context.Context, id job.ID) (account.History, job.Time, error) {
	r, err := d.jobs.Load(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	past, err := d.jobs.Past(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	events, err := d.jobs.Events(ctx, id)
	if err != nil {
		return account.History{}, 0, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return account.History{}, 0, err
	}
	return account.HistoryOf(&r, past, events, now), now, nil
}

// showHistory tells a history to people: the job, its tasks, the picture of its attempts, and what happened.
func (a *app) showHistory(h account.History, now job.Time) error {
	p := a.onOut
	title := p.bold(fmt.Sprintf("job %d", h.ID)) + " " + render.Text(h.Name)
	fmt.Fprintf(a.out, "%s  %s\n", title, p.status(h.Status, string(h.Status)+progress(h.Job)))
	for _, line := range a.headLines(h, now) {
		fmt.Fprintln(a.out, a.hang(line[:headWidth], line[headWidth:]))
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
		line := p.status(job.Status(e.To), account.EventLine(e.Event(), len(h.Tasks) > 1))
		fmt.Fprintln(a.out, a.hang(p.dim(a.clock(e.At, now))+"  ", line))
	}
	return nil
}

// hang writes a text beside a mark, and breaks it between words where the screen ends.
func (a *app) hang(mark, text string) string {
	indent := render.Width(mark)
	if a.screen.width > 0 && indent+render.Width(text) > a.screen.width {
		text = render.Wrap(strings.Fields(text), " ", max(0, a.screen.width-indent))
	}
	return mark + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", indent))
}

// headWidth is how much of a head line is its name.
const headWidth = len("submitted  ")

// headLines are what is true of the job as a whole.
func (a *app) headLines(h account.History, now job.Time) []string {
	by := ""
	if h.User != "" {
		by = " by " + render.Text(h.User)
	}
	lines := []string{"submitted  " + a.when(h.SubmittedAt, now) + by}
	if h.Priority != 0 {
		lines = append(lines, "priority   "+strconv.Itoa(h.Priority))
	}
	if h.StartedAt != 0 {
		lines = append(lines, "started    "+a.when(h.StartedAt, now))
	}
	if h.EndedAt != 0 {
		lines = append(lines, "ended      "+a.when(h.EndedAt, now))
	}
	if h.Seconds > 0 {
		lines = append(lines, "ran        "+account.Lasted(h.Seconds))
	}
	if h.Cost > 0 {
		lines = append(lines, "cost       "+account.Money(h.Cost)+soFar(h))
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

func soFar(h account.History) string {
	if h.EndedAt == 0 {
		return " so far"
	}
	return ""
}

// clock is a time as people read it in a history: the day only if it is another one.
func (a *app) clock(s account.Time, now job.Time) string {
	if a.wide() {
		return a.when(s, now)
	}
	at := job.Time(s).Std().Local()
	if today := now.Std().Local(); at.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

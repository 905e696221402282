package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// history is all that is known about a job.
type history struct {
	account
	Attempts []attemptAccount `json:"attempts"`
	Events   []eventAccount   `json:"events"`
}

// attemptAccount is one machine that a task had, or tried to have.
type attemptAccount struct {
	Task    int        `json:"task"`
	Number  int        `json:"n"`
	Phase   job.Phase  `json:"phase"`
	Offer   job.Offer  `json:"offer"`
	Nodes   []job.Node `json:"nodes,omitempty"`
	Intent  stamp      `json:"intent_at"`
	Created stamp      `json:"created_at"`
	Started stamp      `json:"started_at"`
	Ended   stamp      `json:"ended_at"`
	Gone    stamp      `json:"gone_at"`
	Exit    *job.Exit  `json:"exit,omitempty"`
	Why     *job.Cause `json:"why,omitempty"`
}

// eventAccount is a line of a job's history.
type eventAccount struct {
	At      stamp      `json:"at"`
	Kind    string     `json:"kind"`
	Task    int        `json:"task"`
	Attempt int        `json:"attempt,omitempty"`
	From    string     `json:"from,omitempty"`
	To      string     `json:"to,omitempty"`
	Cause   *job.Cause `json:"cause,omitempty"`
}

// event is what it was made of.
func (e eventAccount) event() job.Event {
	out := job.Event{At: job.Time(e.At), Kind: e.Kind, Task: e.Task, Attempt: e.Attempt, From: e.From, To: e.To}
	if e.Cause != nil {
		out.Cause = *e.Cause
	}
	return out
}

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
func (d *deployment) history(ctx context.Context, id job.ID) (history, job.Time, error) {
	r, err := d.store.Load(ctx, id)
	if err != nil {
		return history{}, 0, err
	}
	past, err := d.store.Past(ctx, id)
	if err != nil {
		return history{}, 0, err
	}
	events, err := d.store.Events(ctx, id)
	if err != nil {
		return history{}, 0, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return history{}, 0, err
	}
	h := history{account: accountOf(&r, now), Attempts: []attemptAccount{}, Events: []eventAccount{}}
	for _, at := range append(past, r.Live...) {
		h.Attempts = append(h.Attempts, attemptAccount{
			Task: at.Task, Number: at.Number, Phase: at.Phase, Offer: at.Offer, Nodes: at.Nodes,
			Intent: stamp(at.IntentAt), Created: stamp(at.CreatedAt), Started: stamp(at.StartedAt),
			Ended: stamp(at.EndedAt), Gone: stamp(at.GoneAt), Exit: at.Exit, Why: causeOrNil(at.Why),
		})
	}
	for _, e := range events {
		h.Events = append(h.Events, eventAccount{stamp(e.At), e.Kind, e.Task, e.Attempt, e.From, e.To, causeOrNil(e.Cause)})
	}
	return h, now, nil
}

// causeOrNil keeps causes that say anything: some only have a sentence.
func causeOrNil(c job.Cause) *job.Cause {
	if c.IsZero() && c.Text == "" {
		return nil
	}
	return &c
}

func (a *app) showHistory(h history, now job.Time) error {
	p := a.onOut
	title := p.bold(fmt.Sprintf("job %d", h.ID)) + " " + render.Text(h.Name)
	fmt.Fprintf(a.out, "%s  %s\n", title, p.status(h.Status, string(h.Status)+progress(h.account)))
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
		fmt.Fprintf(a.out, "%s  %s\n", p.dim(clock(e.At, now)), p.status(job.Status(e.To), eventLine(e.event(), len(h.Tasks) > 1)))
	}
	return nil
}

// headLines are what is true of the job as a whole.
func headLines(h history, now job.Time) []string {
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
		lines = append(lines, "because    "+explain(*h.Cause))
	}
	if h.Waits != nil {
		lines = append(lines, "waits      "+explain(h.Waits.Cause))
	}
	return lines
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (a *app) taskTable(tasks []taskAccount, now job.Time) error {
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

func (a *app) attemptTable(h history, now job.Time) error {
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
			number, place(at.Offer), kind(at.Offer), price(at.Offer.Price), string(at.Phase), ran(at, now), endOf(at),
		})
	}
	return render.Table(a.out, columns, rows)
}

// endOf is why an attempt ended, in few words.
func endOf(a attemptAccount) string {
	switch {
	case a.Exit != nil && (a.Why == nil || a.Exit.Code == 0 || a.Why.Code == job.CodeUserExit):
		return fmt.Sprintf("exit code %d", a.Exit.Code)
	case a.Why != nil:
		return render.Text(a.Why.Text)
	default:
		return ""
	}
}

// ran is how long the user's code ran in an attempt.
func ran(a attemptAccount, now job.Time) string {
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
func clock(s stamp, now job.Time) string {
	at := job.Time(s).Std().Local()
	if today := now.Std().Local(); at.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// eventLine tells one event of a history in words that follow "job 7" or a time.
func eventLine(e job.Event, chain bool) string {
	line := ""
	if chain {
		line = fmt.Sprintf("task %d: ", e.Task)
	}
	cause := ""
	if e.Cause != (job.Cause{}) {
		cause = explain(e.Cause)
	}
	switch {
	case e.Kind == "note":
		return line + cause
	case e.Kind == "attempt" && e.To == string(job.PhaseIntent):
		return line + fmt.Sprintf("attempt %d ", e.Attempt) + cause
	case e.Kind == "attempt":
		line += fmt.Sprintf("attempt %d %s", e.Attempt, render.Text(e.To))
		cause = render.Text(e.Cause.Text) // its evidence stands with the change of status
	default:
		line += render.Text(e.To)
	}
	if cause != "" && e.To != string(job.Running) { // what it has recovered from was told before
		line += ": " + cause
	}
	return line
}

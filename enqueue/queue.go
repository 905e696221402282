package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

func queueCommand(a *app) *cobra.Command {
	var q store.Query
	c := &cobra.Command{
		Use:     "queue",
		Aliases: []string{"ls"},
		Short:   "List jobs",
		Long:    "List the jobs that have not ended, newest first; with -a also those that have.",
		Example: `  enqueue queue
  enqueue queue -a --limit 20
  enqueue queue -a -o json | jq '.[] | select(.status == "FAILED").id'`,
		Args: usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return usagef("--limit must not be negative")
			}
			return a.queueJobs(c, q)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&q.All, "all", "a", false, "also jobs that have ended")
	f.IntVarP(&q.Limit, "limit", "l", 50, "at most so many, 0 for all")
	return c
}

// queueJobs lists jobs. A damaged record is told beside the others, which are not lost for it.
func (a *app) queueJobs(c *cobra.Command, q store.Query) error {
	ctx := c.Context()
	d, err := a.deployment(ctx)
	if err != nil {
		return err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return err
	}
	records, bad := d.store.List(ctx, q)
	jobs := make([]account.Job, len(records))
	for i := range records {
		jobs[i] = account.Of(&records[i], now)
	}
	if a.json() {
		return errors.Join(a.printJSON(jobs), errors.Join(bad...))
	}
	counts, err := d.store.Statuses(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, a.onOut.dim(countsLine(counts)))
	if len(jobs) > 0 {
		err = a.queueTable(jobs, now)
	}
	if len(jobs) == q.Limit {
		a.say("the newest %d; more with --limit", q.Limit)
	}
	return errors.Join(err, errors.Join(bad...))
}

// countsLine tells how many jobs are in each status.
func countsLine(counts map[job.Status]int64) string {
	var parts []string
	for _, s := range job.Statuses {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "no jobs"
	}
	return strings.Join(parts, "  ")
}

func (a *app) queueTable(jobs []account.Job, now job.Time) error {
	columns := []render.Column{
		{Title: "ID", Right: true}, {Title: "NAME", Max: 16}, {Title: "STATUS"}, {Title: "SUBMITTED"}, {Title: "RAN"},
		{Title: "REC", Right: true}, {Title: "NOTE", Max: 20},
	}
	rows := make([][]string, len(jobs))
	for i, j := range jobs {
		rows[i] = []string{
			strconv.FormatInt(int64(j.ID), 10), render.Text(j.Name), a.onOut.status(j.Status, string(j.Status)+progress(j)),
			ago(j.SubmittedAt, now), lasted(j.Seconds), strconv.Itoa(j.Recoveries), a.onOut.dim(note(j)),
		}
	}
	return render.Table(a.out, columns, rows)
}

// progress tells which task of a chain a job is at.
func progress(j account.Job) string {
	if len(j.Tasks) < 2 {
		return ""
	}
	at := 1
	for _, t := range j.Tasks {
		if t.Status == job.Succeeded && at < len(j.Tasks) {
			at++
		}
	}
	return fmt.Sprintf(" %d/%d", at, len(j.Tasks))
}

// note is the one thing worth knowing about a job beside its status: why it ended or waits, or where it runs.
func note(j account.Job) string {
	switch {
	case j.Cause != nil && (j.Status.Failure() || j.Status == job.Recovering):
		return string(j.Cause.Code)
	case j.Waits != nil:
		return "waits: " + string(j.Waits.Code)
	default:
		return j.Where
	}
}

package main

import (
	"fmt"
	"strconv"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// queueTable tells a listing to people.
func (a *app) queueTable(l listing) error {
	fmt.Fprintln(a.out, a.countsLine(l.counts))
	if len(l.jobs) > 0 {
		columns, rows := a.queueRows(l)
		if err := a.table(columns, rows); err != nil {
			return err
		}
	}
	if len(l.jobs) == 0 && anyJob(l.counts) {
		hint := "no job fits"
		if l.live {
			hint = "no live job fits; -a lists those that have ended as well"
		}
		a.say("%s", hint)
	}
	if l.next != 0 {
		a.say("the newest %d; more with --limit, the next page with --below %d", len(l.jobs), l.next)
	}
	return nil
}

// anyJob reports whether a deployment has any job at all: statuses that no job has are counted, too.
func anyJob(counts map[job.Status]int64) bool {
	for _, n := range counts {
		if n > 0 {
			return true
		}
	}
	return false
}

// countsLine tells how many jobs are in each status.
func (a *app) countsLine(counts map[job.Status]int64) string {
	var parts []string
	for _, s := range job.Statuses {
		if n := counts[s]; n > 0 {
			parts = append(parts, a.onOut.status(s, fmt.Sprintf("%d %s", n, s)))
		}
	}
	if len(parts) == 0 {
		return a.onOut.dim("no jobs")
	}
	return render.Wrap(parts, "  ", a.screen.width)
}

func (a *app) queueRows(l listing) ([]render.Column, [][]string) {
	columns := []render.Column{
		{Title: "ID", Right: true}, {Title: "NAME", Max: 40, Min: 10}, {Title: "STATUS"}, {Title: "SUBMITTED", Drop: 2},
		{Title: "RAN", Drop: 3}, {Title: "REC", Right: true, Drop: 4}, {Title: "NOTE", Min: 13, Drop: 1},
	}
	if a.wide() { // which tells more than the note
		columns = append(columns[:len(columns)-1], render.Column{Title: "USER"}, render.Column{Title: "PRIO", Right: true}, render.Column{Title: "WHERE"},
			render.Column{Title: "TRIES", Right: true}, render.Column{Title: "STARTED"}, render.Column{Title: "ENDED"}, render.Column{Title: "BECAUSE"})
	}
	rows := make([][]string, len(l.jobs))
	for i, j := range l.jobs {
		rows[i] = []string{
			strconv.FormatInt(int64(j.ID), 10), render.Text(j.Name), a.onOut.status(j.Status, string(j.Status)+progress(j)),
			a.when(j.SubmittedAt, l.now), account.Lasted(j.Seconds), strconv.Itoa(j.Recoveries),
		}
		if !a.wide() {
			rows[i] = append(rows[i], a.onOut.dim(j.Note(codeOf)))
		} else {
			rows[i] = append(rows[i], render.Text(j.User), strconv.Itoa(j.Priority), j.Where, strconv.Itoa(tries(j)),
				a.when(j.StartedAt, l.now), a.when(j.EndedAt, l.now), because(j))
		}
	}
	return columns, rows
}

// progress tells which task of a chain a job is at.
func progress(j account.Job) string {
	if len(j.Tasks) < 2 {
		return ""
	}
	return fmt.Sprintf(" %d/%d", j.At(), len(j.Tasks))
}

// tries is how many machines a job had or tried to have.
func tries(j account.Job) int {
	n := 0
	for _, t := range j.Tasks {
		n += t.Attempts
	}
	return n
}

// codeOf is a cause as short as it can be told.
func codeOf(c job.Cause) string { return string(c.Code) }

// because is why a job ended, recovers or waits, in a sentence.
func because(j account.Job) string {
	switch {
	case j.Waits != nil:
		return account.Explain(j.Waits.Cause)
	case j.Cause != nil && j.Status != job.Succeeded:
		return account.Explain(*j.Cause)
	default:
		return ""
	}
}

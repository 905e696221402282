package main

import (
	"fmt"
	"strconv"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

func (a *app) taskTable(tasks []account.Task, now job.Time) error {
	columns := []render.Column{
		{Title: "TASK", Right: true}, {Title: "NAME", Max: 40, Min: 8}, {Title: "STATUS"}, {Title: "STARTED", Drop: 2},
		{Title: "RAN", Drop: 3}, {Title: "REC", Right: true, Drop: 4}, {Title: "CAUSE", Min: 10, Drop: 1},
	}
	if a.wide() {
		columns = append(columns, render.Column{Title: "ENDED"}, render.Column{Title: "TRIES", Right: true}, render.Column{Title: "RESTARTS", Right: true})
	}
	var rows [][]string
	for _, t := range tasks {
		cause := ""
		if t.Cause != nil && t.Status != job.Succeeded {
			cause = string(t.Cause.Code)
		}
		row := []string{
			strconv.Itoa(t.Index), render.Text(t.Name), a.onOut.status(t.Status, string(t.Status)), a.when(t.StartedAt, now),
			account.Lasted(t.Seconds), strconv.Itoa(t.Recoveries), cause,
		}
		if a.wide() {
			row = append(row, a.when(t.EndedAt, now), strconv.Itoa(t.Attempts), strconv.Itoa(t.Restarts))
		}
		rows = append(rows, row)
	}
	return a.table(columns, rows)
}

// shownAttempts is how many attempts of a task are shown; -o wide shows all.
const shownAttempts = 12

// attemptTable draws the attempts of all tasks on one axis of time, each with where it was, how long it ran, what it
// cost and why it ended.
func (a *app) attemptTable(h account.History, now job.Time) error {
	t := account.TimelineOf(h, now)
	if !a.wide() {
		t = t.Fold(shownAttempts)
	}
	p := a.picture(t)
	var bars []account.Bar
	var rows [][]string
	for _, lane := range t.Lanes {
		if lane.Lost > 0 {
			bars = append(bars, account.Bar{})
			rows = append(rows, a.attemptRow("", fmt.Sprintf("%d earlier, forgotten", lane.Lost)))
		}
		for _, b := range lane.Bars {
			bars = append(bars, b)
			rows = append(rows, a.barRow(b, h, now))
		}
	}
	columns := []render.Column{
		{Title: "TRY", Right: true}, {Title: "WHERE", Max: 40, Min: 13, Drop: 2},
		{Min: 14, Max: 60, Drop: 1, Draw: func(row, width int) string {
			if row < 0 {
				return a.onOut.dim(p.axis(width))
			}
			return p.bar(bars[row], width)
		}},
		{Title: "RAN", Drop: 3}, {Title: "COST", Right: true, Drop: 5}, {Title: "ENDED BECAUSE", Min: 14},
	}
	if a.wide() {
		columns[2].Min = columns[2].Max // others do not shrink for what is not wanted
		columns = append(columns, render.Column{Title: "KIND"}, render.Column{Title: "PRICE/H", Right: true}, render.Column{Title: "PHASE"},
			render.Column{Title: "BEGAN"}, render.Column{Title: "STARTED"}, render.Column{Title: "ENDED"}, render.Column{Title: "GONE"})
	}
	if err := a.table(columns, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out, p.legend(a.screen.width))
	return err
}

// attemptRow is the row of something that is no attempt.
func (a *app) attemptRow(number, text string) []string {
	row := []string{number, text, "", "", "", ""}
	if a.wide() {
		row = append(row, make([]string, 7)...)
	}
	return row
}

func (a *app) barRow(b account.Bar, h account.History, now job.Time) []string {
	number := strconv.Itoa(b.Number)
	if len(h.Tasks) > 1 {
		number = fmt.Sprintf("%d.%d", b.Task, b.Number)
	}
	switch {
	case b.Folded > 0:
		row := a.attemptRow("...", fmt.Sprintf("%d more", b.Folded))
		row[4] = account.Money(b.Cost)
		return row
	case b.Number == 0:
		row := a.attemptRow("", "")
		if h.Waits != nil {
			row[5] = a.onOut.dim("waits: " + string(h.Waits.Code))
		}
		return row
	}
	end := account.EndOf(b.Attempt)
	if end == "" {
		end = a.onOut.dim(string(b.Phase))
	}
	row := []string{number, account.Place(b.Offer), "", b.Ran(now), account.Money(b.Cost), end}
	if a.wide() {
		row = append(row, account.Kind(b.Offer), account.Price(b.Offer.Price), string(b.Phase), a.when(b.Intent, now), a.when(b.Started, now),
			a.when(b.Ended, now), a.when(b.Gone, now))
	}
	return row
}

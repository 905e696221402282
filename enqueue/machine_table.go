package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// machineTable lists the machines of a fleet.
func (a *app) machineTable(f fleet, now job.Time) error {
	switch {
	case len(f.Views) == 0:
		a.say("no worker has looked yet")
		return nil
	case len(f.Machines) == 0:
		a.say("no machines")
		return nil
	}
	columns := []render.Column{
		{Title: "MACHINE", Max: 40, Min: 12}, {Title: "WHERE", Max: 40, Min: 10, Drop: 2}, {Title: "STATE", Drop: 3}, {Title: "OWNER", Min: 12},
		{Title: "AGE", Drop: 1}, {Title: "VERDICT"}, {Title: "WHY", Min: 16, Drop: 4},
	}
	if a.wide() {
		columns = append(columns, render.Column{Title: "KIND"}, render.Column{Title: "PRICE/H", Right: true},
			render.Column{Title: "ADDRESS"}, render.Column{Title: "CREATED"}, render.Column{Title: "SEEN"})
	}
	var rows [][]string
	for _, m := range f.Machines {
		offer := job.Offer{Provider: m.Provider, Region: m.Region, Zone: m.Zone, Type: m.Type, Spot: m.Spot}
		row := []string{
			render.Text(m.ID), account.Place(offer), render.Text(string(m.State)), owner(m), age(m), a.verdict(m.Kind), whyOf(m),
		}
		if a.wide() {
			created := account.Time(0)
			if !m.CreatedAt.IsZero() {
				created = account.Time(job.TimeOf(m.CreatedAt))
			}
			row = append(row, account.Kind(offer), account.Price(m.Price), render.Text(m.Address), a.when(created, now), a.when(m.SeenAt, now))
		}
		rows = append(rows, row)
	}
	return a.table(columns, rows)
}

// warnOfViews tells which regions could not be looked at, and how many machines belong to nobody.
func (a *app) warnOfViews(f fleet, now job.Time) {
	for _, v := range f.Views {
		if line := viewLine(v, now); line != "" {
			fmt.Fprintln(a.errs, a.onErrs.yellow(line))
		}
	}
	if f.Orphans > 0 {
		fmt.Fprintln(a.errs, a.onErrs.red(fmt.Sprintf("%d of %d machines belong to nobody", f.Orphans, len(f.Machines))))
	}
}

// whyOf leaves out what the state has said already.
func whyOf(m machine) string {
	if m.Kind == cloud.VerdictEnded {
		return ""
	}
	return render.Text(m.Why)
}

// viewLine says how old a view is that is not fresh, and why.
func viewLine(v fleetView, now job.Time) string {
	name, from := render.Text(v.Provider+"/"+v.Region), "nothing is known of it"
	if v.At != 0 {
		from = "this is from " + ago(v.At, now)
	}
	switch {
	case v.Error != "":
		return fmt.Sprintf("%s could not be looked at, %s: %s", name, from, render.Text(v.Error))
	case !v.Fresh:
		return fmt.Sprintf("no worker has looked at %s since you asked, %s", name, from)
	default:
		return ""
	}
}

func owner(m machine) string {
	s := "job " + strconv.FormatInt(int64(m.Job), 10)
	if m.Task != 0 {
		s += fmt.Sprintf(" task %d", m.Task)
	}
	return s + fmt.Sprintf(" try %d", m.Attempt)
}

func age(m machine) string {
	if m.CreatedAt.IsZero() {
		return "?"
	}
	return strings.TrimSuffix(render.Ago(time.Duration(m.AgeSeconds*float64(time.Second))), " ago")
}

func (a *app) verdict(k cloud.VerdictKind) string {
	switch k {
	case cloud.VerdictOK:
		return a.onOut.green(string(k))
	case cloud.VerdictEnded:
		return a.onOut.dim(string(k))
	case cloud.VerdictOrphan:
		return a.onOut.red(string(k))
	default:
		return a.onOut.yellow(string(k))
	}
}

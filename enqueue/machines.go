package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

const (
	freshWithin = 5 * time.Second        // how long a fresh look may take before the last one is shown instead
	freshPoll   = 100 * time.Millisecond // between two looks for it
)

// machine is a machine with what is to be thought of it.
type machine struct {
	cloud.Node
	cloud.Verdict
	AgeSeconds float64      `json:"age_s"`
	SeenAt     account.Time `json:"seen_at"` // when its provider listed it
}

// fleet is all machines of the deployment, as their providers listed them.
type fleet struct {
	Machines []machine
	Views    []fleetView
	Orphans  int
}

// fleetView is when and how well a region was looked at.
type fleetView struct {
	Provider string
	Region   string
	At       account.Time
	Fresh    bool
	Error    string
}

func machinesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "machines",
		Short: "List the machines, and whether each is somebody's",
		Long: `List the machines of the deployment as their providers list them now, each with its
owner and what is to be thought of it:

  ok         its job uses it, or it is too young to be judged
  closing    its job ends it
  ended      nothing runs on it any more
  forgotten  newer than the job's record: the job ends it before it makes another
  orphan     it is nobody's: workers end it soon

The exit code is 1 if there is an orphan.`,
		Example: "  enqueue machines",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx := c.Context()
			d, err := a.deployment(ctx)
			if err != nil {
				return err
			}
			f, now, err := d.fleet(ctx)
			if err != nil {
				return err
			}
			if a.json() {
				err = a.printJSON(f.Machines)
				a.warnOfViews(f, now)
			} else {
				err = a.showFleet(f, now)
			}
			if err == nil && f.Orphans > 0 {
				return &outcomeError{exitError}
			}
			return err
		},
	}
}

// fleet judges all machines. Views come before records, so that no new machine looks like an orphan.
func (d *deployment) fleet(ctx context.Context) (fleet, job.Time, error) {
	views, asked, err := d.freshViews(ctx)
	if err != nil {
		return fleet{}, 0, err
	}
	f := fleet{Machines: []machine{}, Views: []fleetView{}}
	var nodes []cloud.Node
	seenAt := map[string]account.Time{}
	for _, v := range views {
		f.Views = append(f.Views, fleetView{v.Provider, v.Region, account.Time(v.At), v.At >= asked, v.Error})
		var of []cloud.Node
		if err := json.Unmarshal(v.Machines, &of); err != nil && len(v.Machines) > 0 {
			return fleet{}, 0, fmt.Errorf("view of %s/%s: %w", v.Provider, v.Region, err)
		}
		nodes = append(nodes, of...)
		seenAt[v.Provider+"/"+v.Region] = account.Time(v.At)
	}
	records, err := d.owners(ctx, nodes)
	if err != nil {
		return fleet{}, 0, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return fleet{}, 0, err
	}
	for _, n := range nodes {
		m := machine{Node: n, AgeSeconds: now.Std().Sub(n.CreatedAt).Seconds(), SeenAt: seenAt[n.Provider+"/"+n.Region]}
		m.Verdict = cloud.Judge(n, records[n.Job], now.Std(), cloud.DefaultMinAge)
		if m.Kind == cloud.VerdictOrphan {
			f.Orphans++
		}
		f.Machines = append(f.Machines, m)
	}
	return f, now, nil
}

// owners reads the records of the jobs that machines belong to. A record that cannot be read is no proof that there is
// none.
func (d *deployment) owners(ctx context.Context, nodes []cloud.Node) (map[job.ID]*job.Record, error) {
	records := map[job.ID]*job.Record{}
	for _, n := range nodes {
		if _, done := records[n.Job]; done {
			continue
		}
		r, err := d.store.Load(ctx, n.Job)
		switch {
		case errors.Is(err, store.ErrNotFound):
			records[n.Job] = nil
		case err != nil:
			return nil, err
		default:
			records[n.Job] = &r
		}
	}
	return records, nil
}

// freshViews asks for a new look at every region and waits for it a while. It returns the views there are then, and when
// it asked.
func (d *deployment) freshViews(ctx context.Context) ([]store.View, job.Time, error) {
	asked, err := d.store.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	views, err := d.store.Views(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, v := range views {
		chain := tasks.ViewChain(v.Provider, v.Region)
		epoch, err := d.store.ChainWake(ctx, chain)
		if err != nil {
			return nil, 0, err
		}
		if err := d.dispatch.RunChain(ctx, chain, epoch); err != nil {
			d.app.say("the fresh look begins a little later: %v", err)
		}
	}
	poll := time.NewTicker(freshPoll)
	defer poll.Stop()
	deadline := time.NewTimer(freshWithin)
	defer deadline.Stop()
	for !allFresh(views, asked) {
		select {
		case <-ctx.Done():
			return nil, 0, errInterrupted
		case <-deadline.C:
			return views, asked, nil
		case <-poll.C:
		}
		if views, err = d.store.Views(ctx); err != nil {
			return nil, 0, err
		}
	}
	return views, asked, nil
}

// allFresh reports whether every region was looked at since a time, or could not be.
func allFresh(views []store.View, since job.Time) bool {
	for _, v := range views {
		if v.At < since && v.Error == "" {
			return false
		}
	}
	return true
}

func (a *app) showFleet(f fleet, now job.Time) error {
	columns := []render.Column{
		{Title: "MACHINE", Max: 22}, {Title: "WHERE", Max: 14}, {Title: "STATE"}, {Title: "OWNER"}, {Title: "AGE"},
		{Title: "VERDICT"}, {Title: "WHY", Max: 34},
	}
	var rows [][]string
	for _, m := range f.Machines {
		rows = append(rows, []string{
			render.Text(m.ID), account.Place(job.Offer{Provider: m.Provider, Region: m.Region, Zone: m.Zone}), render.Text(string(m.State)),
			owner(m), age(m), a.verdict(m.Kind), whyOf(m),
		})
	}
	var err error
	switch {
	case len(f.Views) == 0:
		a.say("no worker has looked yet")
	case len(rows) == 0:
		a.say("no machines")
	default:
		err = render.Table(a.out, columns, rows)
	}
	a.warnOfViews(f, now)
	return err
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

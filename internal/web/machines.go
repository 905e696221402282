package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// machinesView is all machines of the deployment, as their providers listed them last.
type machinesView struct {
	Machines []machineRow
	Regions  []regionRow
	Orphans  int
}

type machineRow struct {
	ID      string
	Where   string
	State   string
	JobURL  string
	Owner   string
	Age     string
	Verdict cloud.VerdictKind
	Why     string
}

type regionRow struct {
	Name    string
	At      *stamp
	Count   int
	Problem string
}

func (s *Server) machines(w http.ResponseWriter, r *http.Request) error {
	v, err := s.fleet(r.Context())
	if err != nil {
		return err
	}
	s.show(w, r, http.StatusOK, view{Page: "machines", Title: "Machines", Nav: "/machines", Script: true, Data: v})
	return nil
}

// fleet judges all machines by the rule that the collector has. Views come before records, so that no new machine looks
// like an orphan.
func (s *Server) fleet(ctx context.Context) (machinesView, error) {
	views, err := s.cfg.Store.Views(ctx)
	if err != nil {
		return machinesView{}, err
	}
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return machinesView{}, err
	}
	var v machinesView
	var nodes []cloud.Node
	for _, one := range views {
		blocks, err := s.cfg.Store.ViewBlocks(ctx, one.Provider, one.Region)
		if err != nil {
			return machinesView{}, err
		}
		of, err := cloud.Listed(one.Machines, slices.Collect(maps.Values(blocks))...)
		if err != nil {
			return machinesView{}, fmt.Errorf("%s/%s: %w", one.Provider, one.Region, err)
		}
		nodes = append(nodes, of...)
		v.Regions = append(v.Regions, regionRow{
			Name: render.Text(one.Provider + "/" + one.Region), At: when(account.Time(one.At), now), Count: len(of), Problem: render.Text(one.Error),
		})
	}
	var owners cloud.Owners
	if owners.Known, owners.Damaged, err = s.cfg.Store.LoadMany(ctx, cloud.JobsOf(nodes)); err != nil {
		return machinesView{}, err
	}
	for _, n := range nodes {
		verdict := owners.Judge(n, now.Std(), cloud.DefaultMinAge)
		if verdict.Kind == cloud.VerdictOrphan {
			v.Orphans++
		}
		v.Machines = append(v.Machines, machineRowOf(n, verdict, now))
	}
	return v, nil
}

func machineRowOf(n cloud.Node, verdict cloud.Verdict, now job.Time) machineRow {
	row := machineRow{
		ID: render.Text(n.ID), Where: account.Place(job.Offer{Provider: n.Provider, Region: n.Region, Zone: n.Zone}),
		State: render.Text(string(n.State)), JobURL: jobURL(n.Job), Owner: fmt.Sprintf("job %d", n.Job), Age: "?",
		Verdict: verdict.Kind, Why: render.Text(verdict.Why),
	}
	if n.Task != 0 {
		row.Owner += fmt.Sprintf(" task %d", n.Task)
	}
	row.Owner += fmt.Sprintf(" try %d", n.Attempt)
	if !n.CreatedAt.IsZero() {
		row.Age = strings.TrimSuffix(render.Ago(now.Std().Sub(n.CreatedAt)), " ago")
	}
	return row
}

// workersView is the workers that reported lately.
type workersView struct{ Workers []workerRow }

type workerRow struct {
	Name    string
	Host    string
	PID     int
	Version string
	State   string // "ready", "not ready" or "silent"
	Why     string
	Started *stamp
	Acts    int
	Looks   string
}

// silent is how long a worker may not report before it is called silent: it reports every few seconds.
const silent = 30 * time.Second

func (s *Server) workers(w http.ResponseWriter, r *http.Request) error {
	list, err := s.cfg.Store.Workers(r.Context())
	if err != nil {
		return err
	}
	now, err := s.cfg.Store.Now(r.Context())
	if err != nil {
		return err
	}
	var v workersView
	for _, one := range list {
		row := workerRow{
			Name: render.Text(one.Name), Host: render.Text(one.Host), PID: one.PID, Version: render.Text(one.Version), State: "ready",
			Why: render.Text(one.Why), Started: when(account.Time(one.StartedAt), now), Acts: one.Acts, Looks: count(one.Looks),
		}
		switch age := now.Sub(one.SeenAt); {
		case age > silent:
			row.State, row.Why = "silent", "it was last heard of "+render.Ago(age)
		case !one.Ready:
			row.State = "not ready"
		}
		v.Workers = append(v.Workers, row)
	}
	s.show(w, r, http.StatusOK, view{Page: "workers", Title: "Workers", Nav: "/workers", Script: true, Data: v})
	return nil
}

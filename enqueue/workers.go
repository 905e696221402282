package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

// silent is how long a worker may not report before it is called silent: it reports every few seconds.
const silent = 30 * time.Second

// workerAccount is a worker as programs read it.
type workerAccount struct {
	Name      string       `json:"name"`
	Host      string       `json:"host"`
	PID       int          `json:"pid"`
	Version   string       `json:"version"`
	URL       string       `json:"url,omitempty"`
	State     string       `json:"state"` // "ready", "not ready" or "silent"
	Why       string       `json:"why,omitempty"`
	Acts      int          `json:"acts"`
	Looks     int64        `json:"looks"`
	StartedAt account.Time `json:"started_at"`
	SeenAt    account.Time `json:"seen_at"`
}

func workersCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List the workers",
		Long: `List the workers that reported in the last quarter of an hour. Any number of them may die: jobs go
on while one is left.`,
		Example: "  enqueue workers",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			workers, now, err := d.workers(c.Context())
			if err != nil {
				return err
			}
			return a.print(workers, func() error { return a.workerTable(workers, now) })
		},
	}
}

// workers reads the workers, as they are at the time returned.
func (d *deployment) workers(ctx context.Context) ([]workerAccount, job.Time, error) {
	list, err := d.store.Workers(ctx)
	if err != nil {
		return nil, 0, err
	}
	now, err := d.store.Now(ctx)
	workers := make([]workerAccount, len(list))
	for i, w := range list {
		workers[i] = workerOf(w, now)
	}
	return workers, now, err
}

func workerOf(w store.Worker, now job.Time) workerAccount {
	out := workerAccount{
		Name: w.Name, Host: w.Host, PID: w.PID, Version: w.Version, URL: w.URL, State: "ready", Why: w.Why, Acts: w.Acts, Looks: w.Looks,
		StartedAt: account.Time(w.StartedAt), SeenAt: account.Time(w.SeenAt),
	}
	switch age := now.Sub(w.SeenAt); {
	case age > silent:
		out.State, out.Why = "silent", "it was last heard of "+render.Ago(age)
	case !w.Ready:
		out.State = "not ready"
	}
	return out
}

func (a *app) workerTable(workers []workerAccount, now job.Time) error {
	if len(workers) == 0 {
		a.say("no worker has reported lately: jobs wait until one is started")
		return nil
	}
	columns := []render.Column{
		{Title: "NAME", Max: 40, Min: 12}, {Title: "STATE"}, {Title: "STARTED", Drop: 3}, {Title: "ACTS", Right: true, Drop: 1},
		{Title: "LOOKS", Right: true, Drop: 2}, {Title: "WHY", Min: 16},
	}
	if a.wide() {
		columns = append(columns, render.Column{Title: "HOST"}, render.Column{Title: "PID", Right: true},
			render.Column{Title: "VERSION"}, render.Column{Title: "URL"}, render.Column{Title: "SEEN"})
	}
	rows := make([][]string, len(workers))
	for i, w := range workers {
		state := w.State
		switch state {
		case "ready":
			state = a.onOut.green(state)
		default:
			state = a.onOut.yellow(state)
		}
		rows[i] = []string{
			render.Text(w.Name), state, a.when(w.StartedAt, now), strconv.Itoa(w.Acts), strconv.FormatInt(w.Looks, 10),
			render.Text(w.Why),
		}
		if a.wide() {
			rows[i] = append(rows[i], render.Text(w.Host), strconv.Itoa(w.PID), render.Text(w.Version), render.Text(w.URL), a.when(w.SeenAt, now))
		}
	}
	return a.table(columns, rows)
}

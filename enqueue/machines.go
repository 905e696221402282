package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
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
		Args:    noArguments,
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
			err = a.print(f.Machines, func() error { return a.machineTable(f, now) })
			a.warnOfViews(f, now)
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
		blocks, err := d.store.ViewBlocks(ctx, v.Provider, v.Region)
		if err != nil {
			return fleet{}, 0, err
		}
		of, err := cloud.Listed(v.Machines, slices.Collect(maps.Values(blocks))...)
		if err != nil {
			return fleet{}, 0, fmt.Errorf("%s/%s: %w", v.Provider, v.Region, err)
		}
		nodes = append(nodes, of...)
		seenAt[v.Provider+"/"+v.Region] = account.Time(v.At)
	}
	var owners cloud.Owners
	if owners.Known, owners.Damaged, err = d.store.LoadMany(ctx, cloud.JobsOf(nodes)); err != nil {
		return fleet{}, 0, err
	}
	now, err := d.store.Now(ctx)
	if err != nil {
		return fleet{}, 0, err
	}
	for _, n := range nodes {
		m := machine{Node: n, AgeSeconds: now.Std().Sub(n.CreatedAt).Seconds(), SeenAt: seenAt[n.Provider+"/"+n.Region]}
		m.Verdict = owners.Judge(n, now.Std(), cloud.DefaultMinAge)
		if m.Kind == cloud.VerdictOrphan {
			f.Orphans++
		}
		f.Machines = append(f.Machines, m)
	}
	return f, now, nil
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
	d.app.status.set("looking at the machines")
	defer d.app.status.set("")
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

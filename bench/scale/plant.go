package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/outlast-dev/outlast/bench/plant"
	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/store"
)

// plant brings jobs to where their code runs without workers, which would take hours for a large fleet, on machines of the same
// world. Their looks come at the quiet interval already, spread over it.
func (f *fleet) plant(ctx context.Context, n int) error {
	if err := f.stopWorkers(); err != nil {
		return err
	}
	launch, err := f.launching(ctx)
	if err != nil {
		return err
	}
	err = f.batches(ctx, "fleet", n, func(ids []job.ID) error { return launch.All(ctx, f.store, ids) })
	if err != nil {
		return err
	}
	return f.startWorkers(ctx)
}

// batches submits jobs, and does something with each batch of them.
func (f *fleet) batches(ctx context.Context, name string, n int, do func([]job.ID) error) error {
	last := time.Now()
	for done := 0; done < n; {
		ids, err := f.store.Submit(ctx, f.submission(name, min(n-done, batch), 0))
		if err != nil {
			return err
		}
		if err := do(ids); err != nil {
			return err
		}
		if done += len(ids); time.Since(last) > 10*time.Second {
			last = time.Now()
			say("  %d done", done)
		}
	}
	return nil
}

// launching is how planted jobs get their machines, which are up at once.
func (f *fleet) launching(ctx context.Context) (plant.Launch, error) {
	world := f.plan
	world.Zones = nil
	for _, z := range f.plan.Zones {
		z.Boot = 0
		world.Zones = append(world.Zones, z)
	}
	cloud, err := sim.Open(ctx, f.away.rdb, world)
	if err != nil {
		return plant.Launch{}, err
	}
	a := account{cloud: cloud, deployment: f.store.Deployment().ID}
	offers, err := a.provider().Offers(ctx)
	if err != nil {
		return plant.Launch{}, err
	}
	l := plant.Launch{Rules: job.DefaultRules, Do: a.do}
	l.Rules.Quiet = f.quiet
	l.See = func(c *store.Claimed) job.Seen {
		yes := true
		offer := offers[min(int(c.ID-1)/f.doomed(), 1)] // the zone that is lost later has only so much room
		return job.Seen{Slot: &yes, Choice: &job.Chosen{Choice: job.Choice{Offer: &offer}}, Survey: &job.Survey{At: c.Now.Add(time.Hour)}}
	}
	l.Last = func(next *job.Record, now job.Time) {
		next.Look.Every, next.Due = f.quiet.Milliseconds(), now.Add(rand.N(f.quiet))
	}
	return l, nil
}

// account is what machines are planted with.
type account struct {
	cloud      *sim.Cloud
	deployment string
}

func (a account) provider() *sim.Provider { return a.cloud.Provider(a.deployment, "bench") }

// do makes a machine and starts the code there; a launch that goes well has nothing else to do.
func (a account) do(ctx context.Context, c *store.Claimed, do job.Do, seen *job.Seen) (err error) {
	switch at := c.Attempt(do.Attempt); do.Kind {
	case job.DoCreate:
		seen.Create, err = a.create(ctx, c, at)
	case job.DoStart:
		seen.Start, err = a.start(ctx, c, at)
	}
	return err
}

func (a account) create(ctx context.Context, c *store.Claimed, at *job.Attempt) (*job.Created, error) {
	nodes, err := a.provider().Create(ctx, cloud.Request{
		Identity: cloud.Identity{Deployment: a.deployment, Job: c.ID, Nonce: c.Nonce, Task: at.Task, Attempt: at.Number},
		Token:    at.Token, Offer: at.Offer, Nodes: 1, Name: c.Name,
	})
	if err != nil {
		return nil, err
	}
	out := &job.Created{Attempt: at.Number}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, job.SeenNode{Node: job.Node{ID: n.ID, Address: n.Address}, Task: n.Task, Attempt: n.Attempt, State: job.NodeRunning})
	}
	return out, nil
}

func (a account) start(ctx context.Context, c *store.Claimed, at *job.Attempt) (*job.Probe, error) {
	shell, err := a.cloud.Dialer("bench").Dial(ctx, at.Nodes[0])
	if err != nil {
		return nil, err
	}
	client := machine.NewClient(shell, sim.AgentArgv)
	defer client.Close()
	status, err := client.Start(ctx, a.provider().AgentDir(at.Nodes[0]), agent.StartRequest{Token: at.Token, Run: forever})
	if err != nil {
		return nil, err
	}
	if status.State != agent.Running {
		return nil, fmt.Errorf("its code is %s", status.State)
	}
	return &job.Probe{Attempt: at.Number, At: c.Now, State: job.RunAlive}, nil
}

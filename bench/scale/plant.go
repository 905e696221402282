package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/store"
)

// plant brings jobs to where their code runs without workers, which would take hours for a large fleet: by the same decisions and
// commits, on machines of the same world, but each job in one go, and with its looks at the quiet interval already, spread
// over it.
func (f *fleet) plant(ctx context.Context, n int) error {
	if err := f.stopWorkers(); err != nil {
		return err
	}
	g, err := f.gardener(ctx)
	if err != nil {
		return err
	}
	last := time.Now()
	for done := 0; done < n; {
		ids, err := f.store.Submit(ctx, f.submission("fleet", min(n-done, batch), 0))
		if err != nil {
			return err
		}
		if err := g.launchAll(ctx, ids); err != nil {
			return err
		}
		if done += len(ids); time.Since(last) > 10*time.Second {
			last = time.Now()
			say("  %d run", f.live+done)
		}
	}
	return f.startWorkers(ctx)
}

// gardener plants jobs.
type gardener struct {
	*fleet
	cloud  *sim.Cloud // whose machines are up at once
	rules  job.Rules
	offers []job.Offer // the cheapest first
}

// plantAtOnce is how many jobs are planted at a time: as many as keep Redis busy.
const plantAtOnce = 64

func (f *fleet) gardener(ctx context.Context) (*gardener, error) {
	world := f.plan
	world.Zones = nil
	for _, z := range f.plan.Zones {
		z.Boot = 0
		world.Zones = append(world.Zones, z)
	}
	c, err := sim.Open(ctx, f.away.rdb, world)
	if err != nil {
		return nil, err
	}
	g := &gardener{fleet: f, cloud: c, rules: job.DefaultRules}
	g.rules.Quiet = f.quiet
	g.offers, err = c.Provider(f.store.Deployment().ID, "bench").Offers(ctx)
	return g, err
}

func (g *gardener) launchAll(ctx context.Context, ids []job.ID) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(plantAtOnce)
	for _, id := range ids {
		all.Go(func() error {
			if err := g.launch(ctx, id); err != nil {
				return fmt.Errorf("plant job %d: %w", id, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// launch takes a job from its submission to the watch, as an act does when everything goes well.
func (g *gardener) launch(ctx context.Context, id job.ID) error {
	c, err := g.store.Begin(ctx, id, job.StepLaunch, 1, "bench", time.Minute)
	if err != nil {
		return err
	}
	yes := true
	offer := g.offers[min(int(id-1)/g.doomed(), 1)] // the cheapest zone is the one that is lost later, and has only so much room
	seen := job.Seen{Slot: &yes, Choice: &job.Chosen{Choice: job.Choice{Offer: &offer}}, Survey: &job.Survey{At: c.Now.Add(time.Hour)}}
	for c.Step != job.StepWatch {
		next, do := job.Decide(c.Record, seen, g.rules, c.Now)
		switch {
		case do.Kind == job.DoCreate:
			seen.Create, err = g.create(ctx, &c, do.Attempt)
		case do.Kind == job.DoStart:
			seen.Start, err = g.start(ctx, &c, do.Attempt)
		case do.Kind == job.DoWait && next.Step != job.StepWatch:
			err = fmt.Errorf("it waits: %+v", next.Wait)
		}
		if err != nil {
			return err
		}
		if next.Step == job.StepWatch {
			next.Look.Every = g.quiet.Milliseconds()
			next.Due = c.Now.Add(rand.N(g.quiet))
		}
		results, err := g.store.Commit(ctx, g.store.ShardOf(id), store.Commit{From: &c, Next: next, Keep: next.Step != job.StepWatch})
		if err != nil {
			return err
		}
		if results[0] != nil {
			return results[0]
		}
	}
	return nil
}

func (g *gardener) create(ctx context.Context, c *store.Claimed, number int) (*job.Created, error) {
	a := c.Attempt(number)
	d := g.store.Deployment().ID
	nodes, err := g.cloud.Provider(d, "bench").Create(ctx, cloud.Request{
		Identity: cloud.Identity{Deployment: d, Job: c.ID, Nonce: c.Nonce, Task: a.Task, Attempt: number},
		Token:    a.Token, Offer: a.Offer, Nodes: 1, Name: c.Name,
	})
	if err != nil {
		return nil, err
	}
	out := &job.Created{Attempt: number}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, job.SeenNode{Node: job.Node{ID: n.ID, Address: n.Address}, Task: n.Task, Attempt: n.Attempt, State: job.NodeRunning})
	}
	return out, nil
}

func (g *gardener) start(ctx context.Context, c *store.Claimed, number int) (*job.Probe, error) {
	a := c.Attempt(number)
	shell, err := g.cloud.Dialer("bench").Dial(ctx, a.Nodes[0])
	if err != nil {
		return nil, err
	}
	client := machine.NewClient(shell, sim.AgentArgv)
	defer client.Close()
	status, err := client.Start(ctx, g.cloud.Provider(g.store.Deployment().ID, "bench").AgentDir(a.Nodes[0]), agent.StartRequest{Token: a.Token, Run: forever})
	if err != nil {
		return nil, err
	}
	if status.State != agent.Running {
		return nil, fmt.Errorf("its code is %s", status.State)
	}
	return &job.Probe{Attempt: number, At: c.Now, State: job.RunAlive}, nil
}

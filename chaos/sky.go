package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
)

// sky is the cloud of the sim provider, in a Redis of its own that no fault touches: clouds do not die with a deployment.
type sky struct {
	r     *round
	world string
	file  string
	redis *server
	cloud *sim.Cloud
	take  *sim.Provider // takes machines as a cloud does
}

// The zones of the sky. One never has a machine, one has them now and then, and one may refuse the credentials: only
// that one, or jobs that find nobody who takes them would rightly end.
const (
	deniedZone = "east-b"
	fluxZone   = "north-a"
)

var skyZones = []string{"east-a", deniedZone, "west-a", fluxZone}

// worldOf is the file of the world.
func worldOf(name string, seed uint64) map[string]any {
	types := []map[string]any{{"name": "s1", "cpus": 4, "memory": 16, "price": 1, "spot_price": 0.3}}
	zone := func(name, region string, capacity any) map[string]any {
		return map[string]any{"name": name, "region": region, "boot": "300ms", "notice": "2s", "capacity": capacity, "types": types}
	}
	return map[string]any{
		"name": name, "seed": seed, "settle": settle.String(), "keep": "1h",
		"zones": []map[string]any{
			zone("east-a", "east", 6), zone(deniedZone, "east", 6), zone("west-a", "west", 6), zone(emptyZone, "south", 0),
			zone(fluxZone, "north", map[string]any{"markov": map[string]any{"up": 6, "down": 0, "to_down": 0.3, "to_up": 0.5, "every": "5s"}}),
		},
	}
}

// settle is how long lists of the sim may lag.
const settle = time.Second

func (s *sky) open(ctx context.Context, r *round) error {
	s.r, s.file = r, filepath.Join(r.dir, "world.yaml")
	if err := os.WriteFile(s.file, []byte(document(worldOf(s.world, r.seed))), 0o600); err != nil {
		return fmt.Errorf("write the world: %w", err)
	}
	var err error
	if s.redis, err = newServer(r.dir, "sky"); err != nil {
		return err
	}
	if err := s.redis.start(ctx); err != nil {
		return err
	}
	w, err := sim.LoadWorld(s.file)
	if err != nil {
		return err
	}
	s.cloud, err = sim.Open(ctx, redis.NewClient(&redis.Options{Addr: s.redis.addr(), DisableIdentity: true, PoolSize: 4}), w)
	return err
}

// attach makes what takes the machines of the deployment.
func (s *sky) attach(deployment string) {
	if s != nil {
		s.take = s.cloud.Provider(deployment, "") // the provider itself: nobody of the fleet
	}
}

func (s *sky) settings() map[string]any {
	return map[string]any{"world": s.file, "redis": "redis://" + s.redis.addr()}
}

func (s *sky) close() error {
	if s == nil {
		return nil
	}
	return s.redis.stop()
}

// machines are all that there were, whatever faults are on.
func (s *sky) machines(ctx context.Context) ([]history.Machine, error) {
	if s == nil {
		return nil, nil
	}
	nodes, err := s.cloud.Machines(ctx)
	var all []history.Machine
	for _, n := range nodes {
		all = append(all, history.Machine{
			At: now(), Provider: simul, ID: n.ID, Job: int64(n.Job), Task: n.Task, Attempt: n.Attempt, Zone: n.Zone,
			State: string(n.State), Ended: n.State.Ended(),
		})
	}
	return all, err
}

// dump copies the ledger.
func (s *sky) dump(ctx context.Context, out *history.Writer) error {
	if s == nil {
		return nil
	}
	for after := ""; ; {
		events, err := s.cloud.Events(ctx, after, 10_000)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			after = e.ID
			out.Add(history.Entry{
				At: history.Time(e.At), World: s.world, Op: e.Op, By: e.By, Machine: e.Machine, Deployment: e.Deployment,
				Job: e.Job, Task: e.Task, Attempt: e.Attempt, Token: e.Token, Zone: e.Zone, Detail: e.Detail,
			})
		}
	}
}

// living picks a machine that is there.
func (s *sky) living(d dice) (cloud.Node, error) {
	nodes, err := s.cloud.Machines(s.r.ctx)
	if err != nil {
		return cloud.Node{}, err
	}
	nodes = slices.DeleteFunc(nodes, func(n cloud.Node) bool { return n.State.Ended() || n.State == cloud.Stopping })
	if len(nodes) == 0 {
		return cloud.Node{}, errTaken
	}
	return pick(d, nodes), nil
}

// skyFaults are the faults of a provider's calls: what may befall each of them.
var skyFaults = map[string][]string{
	sim.OpCreate:    {sim.ThrottledKind, sim.UnavailableKind, sim.DeniedKind, sim.QuotaKind, sim.CapacityKind, sim.LostKind, sim.LateKind, sim.HalfKind, sim.HangKind},
	sim.OpList:      {sim.ThrottledKind, sim.UnavailableKind, sim.DeniedKind, sim.LagKind, sim.ShortKind, sim.HangKind},
	sim.OpTerminate: {sim.ThrottledKind, sim.UnavailableKind, sim.DeniedKind, sim.LostKind, sim.HalfKind, sim.SlowKind, sim.HangKind},
	sim.OpOffers:    {sim.ThrottledKind, sim.UnavailableKind, sim.HangKind},
	sim.OpDial:      {sim.UnreachableKind, sim.LostKind, sim.HangKind},
}

// skyDelays are how long the kinds delay what they delay.
var skyDelays = map[string][2]time.Duration{
	sim.LateKind: {100 * time.Millisecond, settle},
	sim.LagKind:  {100 * time.Millisecond, settle},
	sim.HalfKind: {200 * time.Millisecond, 3 * time.Second},
	sim.SlowKind: {time.Second, 6 * time.Second},
	sim.HangKind: {time.Second, 8 * time.Second},
}

// calls makes a fault of a provider's calls of one kind, in one zone or everywhere.
func calls(op, kind string) func(r *round, d dice) (injury, error) {
	return func(r *round, d dice) (injury, error) {
		holds := "sim " + op + " " + kind
		if !r.wounds.take(holds) {
			return injury{}, errTaken
		}
		f := sim.Fault{Op: op, Kind: kind, P: 0.2 + 0.8*d.Float64()}
		if d.oneIn(2) {
			f.Zone = pick(d, skyZones)
		}
		if kind == sim.DeniedKind {
			f.Zone = deniedZone
		}
		if between, ok := skyDelays[kind]; ok {
			f.Delay = d.between(between[0], between[1])
		}
		lasts := d.between(time.Second, 8*time.Second)
		if op == sim.OpDial && d.oneIn(4) {
			f.P, lasts = 1, times.ProbeTime+d.between(4*time.Second, 10*time.Second) // long enough for a verdict
		}
		id, err := r.sky.cloud.Inject(r.ctx, f)
		in := r.hurt(f.Zone, holds, "", lasts, func() error { return r.sky.cloud.Heal(background, id) })
		in.Op, in.Kind, in.Zone = op, kind, f.Zone
		in.Detail = "with p " + strconv.FormatFloat(f.P, 'f', 2, 64) + " " + in.Detail
		return in, err
	}
}

// takeFromSky takes a machine of the sim.
func takeFromSky(notice time.Duration) func(r *round, d dice) (injury, error) {
	return func(r *round, d dice) (injury, error) {
		n, err := r.sky.living(d)
		if err != nil {
			return injury{}, err
		}
		r.out.Add(history.Preemption{At: now(), Provider: simul, Machine: n.ID, Job: int64(n.Job), Notice: notice})
		in := injury{Fault: history.Fault{Target: n.ID, Zone: n.Zone, Detail: fmt.Sprintf("of job %d", n.Job)}}
		err = r.sky.take.Preempt(r.ctx, n.Region, n.ID, notice)
		if cloud.ClassOf(err) == "invalid" {
			return in, errTaken // it has ended meanwhile
		}
		return in, err
	}
}

// loseSky takes all machines of a zone at once.
func loseSky(r *round, d dice) (injury, error) {
	in := injury{Fault: history.Fault{Zone: pick(d, skyZones)}}
	in.Target = in.Zone
	n, err := r.sky.cloud.LoseZone(r.ctx, in.Zone)
	in.Detail = fmt.Sprintf("%d machines", n)
	return in, err
}

// emptySky leaves a zone without room for a while: spot machines in it are taken, with the zone's notice.
func emptySky(r *round, d dice) (injury, error) {
	zone := pick(d, skyZones[:3]) // the capacity of the fourth changes by itself
	holds := "capacity of " + zone
	if !r.wounds.take(holds) {
		return injury{}, errTaken
	}
	in := r.hurt(zone, holds, "", d.between(2*time.Second, 10*time.Second), func() error { return r.sky.cloud.SetCapacity(background, zone, 6) })
	in.Zone = zone
	return in, r.sky.cloud.SetCapacity(r.ctx, zone, d.IntN(2))
}

// stepClock sets the clock of a machine, forward or back.
func stepClock(r *round, d dice) (injury, error) {
	n, err := r.sky.living(d)
	if err != nil {
		return injury{}, err
	}
	by := d.between(time.Second, time.Hour)
	if d.oneIn(2) {
		by = -by
	}
	in := injury{Fault: history.Fault{Target: n.ID, Zone: n.Zone, Detail: fmt.Sprintf("by %s, of job %d", by, n.Job)}}
	return in, r.sky.cloud.StepClock(r.ctx, n.ID, by)
}

package sim_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/cloudtest"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deployment = "dep"

// small is a world with room in one zone and none in another.
func small() sim.World {
	types := []sim.Type{{Name: "s1", CPUs: 4, Memory: 16, Price: 1, SpotPrice: 0.3, Accelerators: map[string]int{"H100": 8}}}
	return sim.World{Name: "test", Zones: []sim.Zone{
		{Name: "east-a", Region: "east", Boot: 20 * time.Millisecond, Capacity: sim.Capacity{N: 20}, Types: types},
		{Name: "east-b", Region: "east", Types: types},
		{Name: "west-a", Region: "west", Capacity: sim.Capacity{N: 20}, Types: types},
	}}
}

// world is a world for one test, as one process has it.
type world struct {
	*testing.T
	*sim.Cloud
	srv *redistest.Server
	rdb *redis.Client
}

func open(t *testing.T, w sim.World) *world {
	t.Helper()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	c, err := sim.Open(t.Context(), rdb, w)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, c, srv, rdb}
}

// offer is the spot offer of a zone.
func offer(region, zone string) job.Offer {
	return job.Offer{
		Provider: "sim", Region: region, Zone: zone, Type: "s1", Spot: true, Price: 0.3, CPUs: 4, MemoryGB: 16, Accelerator: "H100", AcceleratorCount: 8,
	}
}

// account opens the world as conformance tests want it. wrap may change the provider.
func account(t *testing.T, w sim.World, faults ...sim.Fault) cloudtest.Account {
	world := open(t, w)
	for _, f := range faults {
		world.inject(f)
	}
	var connections sync.Map
	return cloudtest.Account{
		Open: func(deployment string) cloud.Provider {
			rdb := redis.NewClient(world.srv.Options())
			t.Cleanup(func() { _ = rdb.Close() })
			c, err := sim.Open(t.Context(), rdb, w)
			if err != nil {
				t.Fatal(err)
			}
			p := c.Provider(deployment, "worker")
			connections.Store(p, rdb)
			return p
		},
		Full: func() (job.Offer, string) { return offer("east", "east-b"), "zone" },
		Break: func(p cloud.Provider) {
			rdb, _ := connections.Load(p)
			_ = rdb.(*redis.Client).Close()
		},
		Alive: func(n cloud.Node) int {
			s, err := world.Dialer("test").Dial(t.Context(), job.Node{ID: n.ID})
			if err != nil {
				return 0
			}
			_, err = machine.NewClient(s, sim.AgentArgv).Poll(t.Context(), "/sim/agent", 0, 0)
			if errors.Is(err, machine.ErrUnreachable) {
				return 0
			}
			if err != nil {
				t.Errorf("poll %s: %v", n.ID, err)
			}
			return 1
		},
	}
}

// The sim provider is a provider.
func TestConformance(t *testing.T) {
	t.Parallel()
	cloudtest.Run(t, cloudtest.Subject{Parallel: true, Account: func(t *testing.T) cloudtest.Account {
		return account(t, small())
	}})
}

// It still is one when lists lag and new machines show late, as long as they do so within what it promises.
func TestConformanceWithinSettle(t *testing.T) {
	t.Parallel()
	w := small()
	w.Settle = 300 * time.Millisecond
	cloudtest.Run(t, cloudtest.Subject{Parallel: true, Account: func(t *testing.T) cloudtest.Account {
		return account(t, w,
			sim.Fault{Op: sim.OpList, Kind: sim.LagKind, P: 0.5, Delay: w.Settle}, sim.Fault{Op: sim.OpCreate, Kind: sim.LateKind, P: 0.5, Delay: w.Settle})
	}})
}

func (w *world) inject(f sim.Fault) string {
	w.Helper()
	id, err := w.Inject(w.Context(), f)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// request is an attempt in a zone of the east.
func request(id job.ID, attempt, nodes int) cloud.Request {
	return cloud.Request{
		Identity: cloud.Identity{Deployment: deployment, Job: id, Attempt: attempt}, Token: job.Token(deployment, id, "", 0, attempt),
		Nodes: nodes, Name: fmt.Sprint("job-", id), Offer: offer("east", "east-a"),
	}
}

func (w *world) create(r cloud.Request) []cloud.Node {
	w.Helper()
	nodes, err := w.Provider(deployment, "worker").Create(w.Context(), r)
	if err != nil {
		w.Fatalf("create: %v", err)
	}
	return nodes
}

// running makes one machine and waits until it runs.
func (w *world) running(id job.ID) cloud.Node {
	w.Helper()
	n := w.create(request(id, 1, 1))[0]
	w.eventually(n.ID+" runs", func() bool { return w.find(n.ID).State == cloud.Running })
	return w.find(n.ID)
}

// find returns a machine as it really is.
func (w *world) find(id string) cloud.Node {
	w.Helper()
	all, err := w.Machines(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, n := range all {
		if n.ID == id {
			return n
		}
	}
	w.Fatalf("there is no machine %s", id)
	return cloud.Node{}
}

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			w.Fatalf("it did not come about that %s", what)
		case <-look.C:
		}
	}
}

// client speaks to the agent of a machine.
func (w *world) client(n cloud.Node) *machine.Client {
	w.Helper()
	s, err := w.Dialer("worker").Dial(w.Context(), job.Node{ID: n.ID, Address: n.Address})
	if err != nil {
		w.Fatal(err)
	}
	return machine.NewClient(s, sim.AgentArgv)
}

// poll asks for the run of a machine, with its log.
func (w *world) poll(n cloud.Node) agent.Status {
	w.Helper()
	st, err := w.client(n).Poll(w.Context(), "/sim/agent", 0, 1000)
	if err != nil {
		w.Fatalf("poll: %v", err)
	}
	return st
}

func (w *world) start(n cloud.Node, script string) agent.Status {
	w.Helper()
	st, err := w.client(n).Start(w.Context(), "/sim/agent", agent.StartRequest{Token: "t", Run: script, NoticeFile: "/sim/notice.json"})
	if err != nil {
		w.Fatalf("start: %v", err)
	}
	return st
}

func jobID(n int) job.ID { return job.ID(n) }

func nodeOf(n cloud.Node) job.Node { return job.Node{ID: n.ID, Address: n.Address} }

// terminate ends a machine; it may be called when the test is over.
func (w *world) terminate(n cloud.Node) {
	w.Helper()
	err := w.Provider(n.Deployment, "worker").Terminate(context.WithoutCancel(w.Context()), n.Region, cloud.Match{Deployment: n.Deployment, NodeID: n.ID})
	if err != nil {
		w.Errorf("terminate: %v", err)
	}
}

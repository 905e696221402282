package sim_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// calls are the methods of a provider that faults befall.
func calls(ctx context.Context, p *sim.Provider) map[string]func() error {
	return map[string]func() error{
		sim.OpCreate:    func() error { _, err := p.Create(ctx, request(1, 1, 1)); return err },
		sim.OpList:      func() error { _, err := p.List(ctx, "east"); return err },
		sim.OpTerminate: func() error { return p.Terminate(ctx, "east", cloud.Match{Deployment: deployment, Job: 1, Attempt: 1}) },
		sim.OpOffers:    func() error { _, err := p.Offers(ctx); return err },
	}
}

// Ensure that a refusal has its class, befalls only its op, does nothing, and ends when it is healed.
func TestFaultsRefuse(t *testing.T) {
	t.Parallel()
	everywhere := []string{sim.OpCreate, sim.OpList, sim.OpTerminate, sim.OpOffers}
	for _, tc := range []struct {
		kind  string
		class job.Class
		scope string
		ops   []string
	}{
		{sim.ThrottledKind, job.Throttled, "", everywhere},
		{sim.UnavailableKind, job.Transient, "", everywhere},
		{sim.DeniedKind, job.Denied, "", everywhere},
		{sim.QuotaKind, job.Quota, "region", []string{sim.OpCreate}},
		{sim.CapacityKind, job.Capacity, "zone", []string{sim.OpCreate}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			w := open(t, small())
			p := w.Provider(deployment, "worker")
			for _, op := range tc.ops {
				id := w.inject(sim.Fault{Op: op, Kind: tc.kind})
				for other, call := range calls(t.Context(), p) {
					err := call()
					if other != op {
						if err != nil && cloud.ClassOf(err) != job.Invalid { // that of a create after a terminate
							t.Errorf("a fault of %s befalls %s: %v", op, other, err)
						}
						continue
					}
					if f := cloud.FaultOf(err); f == nil || f.Class != tc.class || f.Scope != tc.scope {
						t.Errorf("%s: %+v, want class %s and scope %q", op, f, tc.class, tc.scope)
					}
				}
				if err := w.Heal(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			if err := calls(t.Context(), p)[sim.OpList](); err != nil {
				t.Errorf("after it was healed: %v", err)
			}
		})
	}
}

// Ensure that a fault that refuses to create makes nothing.
func TestFaultsThatRefuseMakeNothing(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.CapacityKind})
	if _, err := w.Provider(deployment, "worker").Create(t.Context(), request(1, 1, 2)); !cloud.IsCapacity(err) {
		t.Errorf("error %v", err)
	}
	if n := len(w.all()); n != 0 {
		t.Errorf("%d machines were made", n)
	}
	if op := w.ops(""); !slices.Equal(op, []string{"refused"}) {
		t.Errorf("the ledger tells %v", op)
	}
}

// all are all machines as they really are.
func (w *world) all() []cloud.Node {
	w.Helper()
	all, err := w.Machines(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// list is what a worker sees of the east.
func (w *world) list() []cloud.Node {
	w.Helper()
	all, err := w.Provider(deployment, "worker").List(w.Context(), "east")
	if err != nil {
		w.Fatalf("list: %v", err)
	}
	return all
}

// events are those of a machine, "" for all.
func (w *world) events(machine string) []sim.Event {
	w.Helper()
	all, err := w.Events(w.Context(), "", 10_000)
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e sim.Event) bool { return machine != "" && e.Machine != machine })
}

func (w *world) ops(machine string) []string {
	w.Helper()
	var ops []string
	for _, e := range w.events(machine) {
		ops = append(ops, e.Op)
	}
	return ops
}

// Ensure that a lost answer is only that: what was asked is done, and the same call again finds it.
func TestFaultLostAnswer(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	p := w.Provider(deployment, "worker")
	w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.LostKind, Count: 1})
	if _, err := p.Create(t.Context(), request(1, 1, 1)); cloud.ClassOf(err) != job.Transient || err == nil {
		t.Fatalf("create: %v", err)
	}
	made := w.all()
	again := w.create(request(1, 1, 1))
	if len(made) != 1 || again[0].ID != made[0].ID {
		t.Errorf("made %+v, then %+v", made, again)
	}
	w.inject(sim.Fault{Op: sim.OpTerminate, Kind: sim.LostKind, Count: 1})
	if err := p.Terminate(t.Context(), "east", cloud.Match{Deployment: deployment, Job: 1}); cloud.ClassOf(err) != job.Transient || err == nil {
		t.Fatalf("terminate: %v", err)
	}
	if n := w.find(made[0].ID); n.State != cloud.Terminated {
		t.Errorf("the machine is %s", n.State)
	}
}

// Ensure that a fault hits as many calls as it should, only where it should, and not after its time.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	failed := func(n int) (failed int) {
		for range n {
			if _, err := w.Provider(deployment, "worker").List(t.Context(), "east"); err != nil {
				failed++
			}
		}
		return failed
	}
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.UnavailableKind, Count: 3})
	if n := failed(5); n != 3 {
		t.Errorf("%d calls of 5 failed, want 3", n)
	}
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.UnavailableKind, Region: "west"})
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.UnavailableKind, Zone: "west-a"})
	if n := failed(3); n != 0 {
		t.Errorf("%d calls for the east failed by faults of the west", n)
	}
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.UnavailableKind, For: time.Millisecond})
	w.eventually("it is over", func() bool { return failed(1) == 0 })
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.UnavailableKind, P: 0.5})
	if n := failed(200); n < 50 || n > 150 { // 7 standard deviations
		t.Errorf("%d calls of 200 failed, want about 100", n)
	}
	hits, err := w.Hits(t.Context())
	if err != nil || hits["list unavailable"] < 53 {
		t.Errorf("hits %v, error %v", hits, err)
	}
	if err := w.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := failed(20); n != 0 {
		t.Errorf("%d calls failed after all was healed", n)
	}
}

// Ensure that a machine that shows late is there for who reaches it or asks for it by its token, and shows within its time.
func TestFaultLate(t *testing.T) {
	t.Parallel()
	world := small()
	world.Settle = 30 * time.Second
	w := open(t, world)
	w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.LateKind, Delay: world.Settle, Count: 1})
	first := w.create(request(1, 1, 1))[0]
	w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.LateKind, Delay: 50 * time.Millisecond, Count: 1})
	second := w.create(request(2, 1, 1))[0]
	w.eventually("one of them shows", func() bool { return len(w.list()) == 1 })
	if n := len(w.all()); n != 2 {
		t.Errorf("there are %d machines", n)
	}
	if again := w.create(request(1, 1, 1))[0]; again.ID != first.ID {
		t.Errorf("made %s, then %s", first.ID, again.ID)
	}
	for _, n := range []cloud.Node{first, second} {
		w.eventually(n.ID+" runs", func() bool { return w.find(n.ID).State == cloud.Running })
		if st := w.poll(n); st.State != agent.Absent {
			t.Errorf("its agent says %+v", st)
		}
	}
}

// Ensure that a list that lags is what a list was then: without machines that are newer, with those that have ended since.
func TestFaultLag(t *testing.T) {
	t.Parallel()
	world := small()
	world.Settle = time.Hour
	w := open(t, world)
	n := w.running(1)
	id := w.inject(sim.Fault{Op: sim.OpList, Kind: sim.LagKind, Delay: time.Hour})
	if all := w.list(); len(all) != 0 {
		t.Errorf("a list of before shows %+v", all)
	}
	if err := w.Heal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.terminate(n)
	if all := w.list(); all[0].State != cloud.Terminated {
		t.Errorf("it is %s", all[0].State)
	}
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.LagKind, Delay: 100*time.Millisecond + time.Since(began)})
	if all := w.list(); len(all) == 1 && all[0].State == cloud.Terminated {
		t.Errorf("a list of before its end shows it as %s", all[0].State)
	}
}

// Ensure that a short list leaves out machines, and none of them again so soon.
func TestFaultShort(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	w.create(request(1, 1, 18))
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.ShortKind})
	missing := map[string]int{}
	for range 4 {
		shown := map[string]bool{}
		for _, n := range w.list() {
			shown[n.ID] = true
		}
		for _, n := range w.all() {
			if !shown[n.ID] {
				missing[n.ID]++
			}
		}
	}
	if len(missing) == 0 { // by chance once in 10^12
		t.Error("no list was short")
	}
	for id, n := range missing {
		if n > 1 {
			t.Errorf("machine %s was left out %d times at once", id, n)
		}
	}
}

// Ensure that what was made half way is undone, that its token makes nothing more, and that an end that was half done can be
// repeated.
func TestFaultHalf(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	p := w.Provider(deployment, "worker")
	w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.HalfKind, Delay: 50 * time.Millisecond, Count: 1})
	if _, err := p.Create(t.Context(), request(1, 1, 4)); cloud.ClassOf(err) != job.Transient || err == nil {
		t.Fatalf("create: %v", err)
	}
	if n := len(w.all()); n != 2 {
		t.Errorf("%d machines were made, want 2", n)
	}
	if again, err := p.Create(t.Context(), request(1, 1, 4)); err == nil && len(again) != 2 {
		t.Errorf("again: %+v", again)
	}
	w.eventually("they are undone", func() bool {
		return !slices.ContainsFunc(w.all(), func(n cloud.Node) bool { return n.State != cloud.Terminated })
	})
	w.create(request(2, 1, 4))
	w.inject(sim.Fault{Op: sim.OpTerminate, Kind: sim.HalfKind, Count: 1})
	second := cloud.Match{Deployment: deployment, Job: 2}
	living := func() (n int) {
		for _, m := range w.all() {
			if second.Selects(m) && !m.State.Ended() {
				n++
			}
		}
		return n
	}
	if err := p.Terminate(t.Context(), "east", second); err == nil || living() != 2 {
		t.Errorf("error %v, %d machines live, want 2", err, living())
	}
	if err := p.Terminate(t.Context(), "east", second); err != nil || living() != 0 {
		t.Errorf("again: error %v, %d machines live", err, living())
	}
}

// Ensure that a machine whose end takes long is stopping meanwhile, that its code runs on, and that asking again neither
// hastens nor delays it.
func TestFaultSlow(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	w.start(n, "sleep infinity")
	id := w.inject(sim.Fault{Op: sim.OpTerminate, Kind: sim.SlowKind, Delay: 300 * time.Millisecond})
	asked := time.Now()
	w.terminate(n)
	if now := w.find(n.ID); now.State == cloud.Stopping {
		if st, err := w.client(n).Poll(t.Context(), "/sim/agent", 0, 10); err == nil && st.State != agent.Running {
			t.Errorf("its run is %+v", st)
		}
	} else if time.Since(asked) < 300*time.Millisecond {
		t.Errorf("it is %s", now.State)
	}
	if err := w.Heal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.terminate(n)
	w.eventually("it has ended", func() bool { return w.find(n.ID).State == cloud.Terminated })
	var last sim.Event
	var ended []sim.Event
	w.eventually("its end is told", func() bool { // by the next call
		w.list()
		ended = w.events(n.ID)
		last = ended[len(ended)-1]
		return last.Op == "terminated"
	})
	terminate := ended[slices.IndexFunc(ended, func(e sim.Event) bool { return e.Op == "terminate" })]
	if last.Op != "terminated" || last.At-terminate.At != 300 {
		t.Errorf("asked: %+v, ended: %+v", terminate, last)
	}
}

// Ensure that a call that hangs answers when its time is over, and that its caller can go away before; then nothing is done.
func TestFaultHang(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	p := w.Provider(deployment, "worker")
	id := w.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.HangKind, Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Create(ctx, request(1, 1, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if n := len(w.all()); n != 0 {
		t.Errorf("%d machines were made", n)
	}
	if err := w.Heal(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.inject(sim.Fault{Op: sim.OpList, Kind: sim.HangKind, Delay: 50 * time.Millisecond, Count: 1})
	began := time.Now()
	w.list()
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("it took %s", took)
	}
}

// Ensure that an agent that is out of reach is never taken for an answer, and that one whose answer is lost has done its work.
func TestFaultDial(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	w.inject(sim.Fault{Op: sim.OpDial, Kind: sim.UnreachableKind, Zone: "west-a"})
	w.poll(n)
	w.inject(sim.Fault{Op: sim.OpDial, Kind: sim.UnreachableKind, Zone: "east-a", Count: 2})
	for range 2 {
		if _, err := w.client(n).Poll(t.Context(), "/sim/agent", 0, 10); !errors.Is(err, machine.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
	}
	w.poll(n)
	w.inject(sim.Fault{Op: sim.OpDial, Kind: sim.LostKind, Count: 1})
	request := agent.StartRequest{Token: "t", Run: "sleep infinity"}
	if _, err := w.client(n).Start(t.Context(), "/sim/agent", request); !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("start: error %v", err)
	}
	if st, err := w.client(n).Start(t.Context(), "/sim/agent", request); err != nil || !st.Already || st.State != agent.Running {
		t.Errorf("start again: %+v, %v", st, err)
	}
	w.inject(sim.Fault{Op: sim.OpDial, Kind: sim.HangKind, Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.client(n).Poll(ctx, "/sim/agent", 0, 10); !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("an agent that hangs: error %v", err)
	}
}

// Ensure that no machine answers before it has booted, after it is gone, or if there is none.
func TestDialOnlyWhatIsUp(t *testing.T) {
	t.Parallel()
	world := small()
	world.Zones[0].Boot = time.Hour
	w := open(t, world)
	booting := w.create(request(1, 1, 1))[0]
	if booting.Address != "" {
		t.Errorf("a booting machine has the address %q", booting.Address)
	}
	gone := w.create(cloud.Request{
		Identity: cloud.Identity{Deployment: deployment, Job: 2, Attempt: 1}, Token: "gone", Offer: offer("west", "west-a"),
	})[0]
	w.eventually("it runs", func() bool { return w.find(gone.ID).State == cloud.Running })
	w.terminate(w.find(gone.ID))
	for _, n := range []cloud.Node{booting, gone, {ID: "s1-nosuchmachine"}, {ID: "s99-nosuchmachine"}} {
		c := w.client(n)
		_, polled := c.Poll(t.Context(), "/sim/agent", 0, 10)
		_, started := c.Start(t.Context(), "/sim/agent", agent.StartRequest{Token: "t", Run: "true"})
		_, stopped := c.Stop(t.Context(), "/sim/agent", 0)
		unpacked := c.Unpack(t.Context(), "/sim/agent", "sum", bytes.NewReader(nil))
		for what, err := range map[string]error{"poll": polled, "start": started, "stop": stopped, "unpack": unpacked} {
			if !errors.Is(err, machine.ErrUnreachable) {
				t.Errorf("%s of %s: error %v", what, n.ID, err)
			}
		}
	}
	if _, err := w.Dialer("worker").Dial(t.Context(), job.Node{ID: "../x"}); !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("a machine with no name of ours: error %v", err)
	}
}

// Ensure that the faults of a world file hold from its beginning, once.
func TestFaultsOfTheWorld(t *testing.T) {
	t.Parallel()
	world := small()
	world.Faults = []sim.Fault{{Op: sim.OpList, Kind: sim.ThrottledKind, Count: 1}}
	w := open(t, world)
	p := w.Provider(deployment, "worker")
	if _, err := p.List(t.Context(), "east"); cloud.ClassOf(err) != job.Throttled {
		t.Errorf("error %v", err)
	}
	if _, err := sim.Open(t.Context(), w.rdb, world); err != nil {
		t.Fatal(err)
	}
	w.list()
	hits, err := w.Hits(t.Context())
	if err != nil || !maps.Equal(hits, map[string]int{"list throttled": 1}) {
		t.Errorf("hits %v, error %v", hits, err)
	}
}

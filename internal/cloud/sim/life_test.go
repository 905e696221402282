package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// states counts the machines in each state.
func (w *world) states() map[cloud.State]int {
	w.Helper()
	n := map[cloud.State]int{}
	for _, m := range w.all() {
		n[m.State]++
	}
	return n
}

// Ensure that the ledger tells the life of a machine in order: who made it, when it was up, what ran on it from when to when,
// and from when on nothing did.
func TestLedgerTellsALife(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	w.create(request(1, 1, 1))
	w.start(n, "echo up\nsleep infinity")
	c := w.client(n)
	if _, err := c.Start(t.Context(), "/sim/agent", agent.StartRequest{Token: "other", Run: "true"}); err == nil {
		t.Error("a second start succeeded")
	}
	stopped, err := c.Stop(t.Context(), "/sim/agent", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.terminate(n)
	if _, err := w.Provider(deployment, "worker").Create(t.Context(), request(9, 1, 30)); !cloud.IsCapacity(err) {
		t.Errorf("error %v", err)
	}
	events := w.events(n.ID)
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s by %q token %q", e.Op, e.By, e.Token))
		if e.Job != 1 || e.Task != 0 || e.Attempt != 1 || e.Deployment != deployment || e.Zone != "east-a" || e.At == 0 {
			t.Errorf("%+v", e)
		}
	}
	token := request(1, 1, 1).Token
	want := []string{
		`create by "worker" token "` + token + `"`, `boot by "" token ""`, `again by "worker" token "` + token + `"`, `start by "worker" token "t"`,
		`started_again by "worker" token "other"`, `stop by "worker" token "t"`, `terminate by "worker" token ""`, `terminated by "" token ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	if want := `{"ends":0,"exit":0,"stage":"run"}`; events[3].Detail != want {
		t.Errorf("start: %s, want %s", events[3].Detail, want)
	}
	var stop struct{ Ends int64 }
	if err := json.Unmarshal([]byte(events[5].Detail), &stop); err != nil || stop.Ends < events[5].At || stop.Ends > events[5].At+1000 {
		t.Errorf("stop: %+v, error %v; the agent said %+v", events[5], err, stopped)
	}
	if boot := events[1].At - events[0].At; boot != 20 {
		t.Errorf("it booted after %d ms, want 20", boot)
	}
	if all := w.events(""); all[len(all)-1].Op != "refused" || all[len(all)-1].Detail != "capacity" {
		t.Errorf("the last event is %+v", all[len(all)-1])
	}
}

// Ensure that there is no ledger where none is wanted.
func TestNoLedger(t *testing.T) {
	t.Parallel()
	world := small()
	world.NoLedger = true
	w := open(t, world)
	w.start(w.running(1), "true")
	if all := w.events(""); len(all) > 0 {
		t.Errorf("events %+v", all)
	}
}

// Ensure that a zone whose capacity falls takes as many spot machines as are too many, with its notice, none on demand, and
// that what is going counts until it is gone.
func TestCapacityFalls(t *testing.T) {
	t.Parallel()
	world := small()
	world.Zones[0].Notice = 300 * time.Millisecond
	w := open(t, world)
	w.create(request(1, 1, 10))
	firm := request(2, 1, 3)
	firm.Offer.Spot, firm.Offer.Price = false, 1
	w.create(firm)
	w.eventually("all run", func() bool { return w.states()[cloud.Running] == 13 })
	if err := w.SetCapacity(t.Context(), "east-a", 5); err != nil {
		t.Fatal(err)
	}
	w.eventually("eight are taken", func() bool { return w.states()[cloud.Preempted] == 8 })
	spot := 0
	for _, n := range w.all() {
		if n.State == cloud.Running && n.Spot {
			spot++
		}
		if n.State == cloud.Preempted && (!n.Spot || !strings.Contains(n.Reason, "less capacity")) {
			t.Errorf("taken: %+v", n)
		}
	}
	if spot != 2 {
		t.Errorf("%d spot machines run, want 2", spot)
	}
	for _, e := range w.events("") {
		if e.Op != "notice" {
			continue
		}
		life := w.events(e.Machine)
		if last := life[len(life)-1]; last.Op != "preempted" || last.At != e.At+300 {
			t.Errorf("a notice %+v, and then %+v", e, last)
		}
	}
	if _, err := w.Provider(deployment, "worker").Create(t.Context(), request(3, 1, 1)); !cloud.IsCapacity(err) {
		t.Errorf("a full zone: error %v", err)
	}
	if err := w.SetCapacity(t.Context(), "east-a", 0); err != nil {
		t.Fatal(err)
	}
	w.eventually("only those on demand are left", func() bool { return w.states()[cloud.Running] == 3 })
}

// Ensure that a capacity changes when its time comes, whoever is there to see it, and that a moment without room is not missed.
func TestCapacityAsScripted(t *testing.T) {
	t.Parallel()
	world := small()
	world.Zones[0].Capacity = sim.Capacity{Steps: []sim.Step{
		{At: 0, N: 3}, {At: 1500 * time.Millisecond, N: 0}, {At: 1501 * time.Millisecond, N: 3},
	}}
	w := open(t, world)
	w.create(request(1, 1, 3))
	if _, err := w.Provider(deployment, "worker").Create(t.Context(), request(2, 1, 1)); !cloud.IsCapacity(err) {
		t.Errorf("a full zone: error %v", err)
	}
	w.eventually("the moment has passed", func() bool { return w.states()[cloud.Preempted] == 3 })
	w.eventually("there is room again", func() bool {
		_, err := w.Provider(deployment, "worker").Create(t.Context(), request(3, 1, 3))
		return err == nil
	})
	w.eventually("they run", func() bool { return w.states()[cloud.Running] == 3 })
}

// Ensure that all machines of a zone can be lost at once, those on demand and those on their way out included, and no others.
func TestLoseZone(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	w.create(request(1, 1, 10))
	firm := request(2, 1, 2)
	firm.Offer.Spot, firm.Offer.Price = false, 1
	w.create(firm)
	going := w.running(3)
	if err := w.Provider(deployment, "test").Preempt(t.Context(), "east", going.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	r := request(4, 1, 1)
	r.Offer = offer("west", "west-a")
	w.create(r)
	n, err := w.LoseZone(t.Context(), "east-a")
	if err != nil || n != 13 {
		t.Errorf("%d machines were lost, error %v, want 13", n, err)
	}
	w.eventually("the west runs", func() bool { return w.states()[cloud.Running] == 1 })
	if s := w.states(); s[cloud.Preempted] != 13 {
		t.Errorf("states %v", s)
	}
	if n, err := w.LoseZone(t.Context(), "east-a"); err != nil || n != 0 {
		t.Errorf("%d more, error %v", n, err)
	}
	w.create(request(5, 1, 10))
	if _, err := w.LoseZone(t.Context(), "nowhere"); err == nil {
		t.Error("a zone that is not there was lost")
	}
}

// Ensure that the ledger tells when a notice ends the code, so that who judges does not take it for running on.
func TestNoticeEndsTheCode(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	heeds, waits := w.running(1), w.running(2)
	w.start(heeds, "sleep infinity")
	st, err := w.client(waits).Start(t.Context(), "/sim/agent", agent.StartRequest{Token: "t", Run: "sleep infinity", NoticeFile: "/n", NoticeSignal: "none"})
	if err != nil || st.State != agent.Running {
		t.Fatalf("%+v, %v", st, err)
	}
	for _, n := range []cloud.Node{heeds, waits} {
		if err := w.Provider(deployment, "test").Preempt(t.Context(), "east", n.ID, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	events := w.events(heeds.ID)
	if last := events[len(events)-1]; last.Op != "stop" || last.By != "notice" || !strings.HasPrefix(last.Detail, `{"ends":`) {
		t.Errorf("%+v", last)
	}
	if ops := w.ops(waits.ID); ops[len(ops)-1] != "notice" {
		t.Errorf("events %v", ops)
	}
	if st := w.poll(waits); st.State != agent.Running || st.Notice == nil {
		t.Errorf("%+v", st)
	}
	late := w.running(3)
	if err := w.Provider(deployment, "test").Preempt(t.Context(), "east", late.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.start(late, "sleep infinity")
	w.eventually("code that was started after the notice ends", func() bool {
		st := w.poll(late)
		return st.State == agent.Exited && st.Exit.Code == 143 && st.Notice != nil
	})
}

// Ensure that a step of its clock changes what a machine says of the time, from then on, and nothing of what it does.
func TestStepClock(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	w.start(n, "sleep infinity")
	before := w.poll(n)
	if err := w.StepClock(t.Context(), n.ID, -time.Hour); err != nil {
		t.Fatal(err)
	}
	after := w.poll(n)
	if d := time.Duration(after.Clock-before.Clock) * time.Millisecond; d > -59*time.Minute || d < -time.Hour {
		t.Errorf("its clock went by %s", d)
	}
	if after.Started != before.Started {
		t.Errorf("it was started at %d, now at %d", before.Started, after.Started)
	}
	if _, err := w.client(n).Stop(t.Context(), "/sim/agent", 0); err != nil {
		t.Fatal(err)
	}
	var end agent.Status
	w.eventually("it ends", func() bool { end = w.poll(n); return end.State == agent.Exited })
	if end.Ended > end.Started {
		t.Errorf("it has ended at %d by a clock that was set back, and begun at %d", end.Ended, end.Started)
	}
	if err := w.StepClock(t.Context(), n.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	if st := w.poll(n); st.Ended != end.Ended {
		t.Errorf("it has ended at %d, now at %d", end.Ended, st.Ended)
	}
	if err := w.StepClock(t.Context(), "s1-nosuchmachine", time.Hour); err == nil {
		t.Error("a machine that is not there has a clock")
	}
}

// Ensure that an ended machine is listed for a while and then forgotten, and that its token still makes nothing.
func TestEndedMachinesAreForgotten(t *testing.T) {
	t.Parallel()
	world := small()
	world.Keep = 100 * time.Millisecond
	w := open(t, world)
	n := w.create(request(1, 1, 1))[0]
	if err := w.Provider(deployment, "test").Preempt(t.Context(), "east", n.ID, 0); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is forgotten", func() bool { return len(w.list()) == 0 })
	if _, err := w.Provider(deployment, "worker").Create(t.Context(), request(1, 1, 1)); cloud.ClassOf(err) != job.Invalid {
		t.Errorf("its token: error %v", err)
	}
	for _, hash := range []string{"m:1", "r:1", "j:1", "u:1"} {
		if n := w.rdb.HLen(t.Context(), "sim:{test}:"+hash).Val(); n != 0 {
			t.Errorf("%s holds %d fields", hash, n)
		}
	}
}

// Ensure that the value of a secret is nowhere: neither in what is kept nor in what is printed.
func TestG12_SecretsAreNotKept(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	_, err := w.client(n).Start(t.Context(), "/sim/agent", agent.StartRequest{
		Token: "t", Setup: "echo $KEY", Run: `echo "key: ${KEY}" and $KEY, $WHO`, Env: map[string]string{"WHO": "me"}, Secrets: map[string]string{"KEY": "geheim"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var st agent.Status
	w.eventually("it ends", func() bool { st = w.poll(n); return st.State == agent.Exited })
	if want := "***\nkey: *** and ***, me\n"; string(st.Log) != want {
		t.Errorf("the log is %q, want %q", st.Log, want)
	}
	keys, err := w.rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) < 5 {
		t.Fatalf("keys %v, error %v", keys, err)
	}
	for _, k := range keys {
		text, err := w.rdb.Dump(t.Context(), k).Result()
		if err != nil || strings.Contains(text, "geheim") {
			t.Errorf("key %s (error %v) holds the secret", k, err)
		}
	}
}

// trips counts the round trips of a client.
type trips struct{ atomic.Int64 }

func (n *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { n.Add(1); return next(ctx, cmd) }
}

func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { n.Add(1); return next(ctx, cmds) }
}

// Ensure that polls of many goroutines share round trips, that one alone is one round trip, and that each gets the answer of
// its own machine.
func TestPollsShareRoundTrips(t *testing.T) {
	t.Parallel()
	const polls = 2000
	w := open(t, small())
	nodes := w.create(request(1, 1, 10))
	r := request(2, 1, 1)
	r.Offer = offer("west", "west-a")
	nodes = append(nodes, w.create(r)...)
	w.eventually("all run", func() bool { return w.states()[cloud.Running] == len(nodes) })
	for i, n := range nodes {
		w.start(n, fmt.Sprint("echo ", i, "\nsleep infinity"))
	}
	count := &trips{}
	w.rdb.AddHook(count)
	w.poll(nodes[0])
	if n := count.Load(); n != 1 {
		t.Errorf("one poll took %d round trips", n)
	}
	count.Store(0)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range polls {
		all.Go(func() {
			<-begin
			which := i % len(nodes)
			if st := w.poll(nodes[which]); string(st.Log) != fmt.Sprint(which, "\n") {
				t.Errorf("machine %d says %q", which, st.Log)
			}
		})
	}
	close(begin)
	all.Wait()
	if n := count.Load(); n > polls/4 {
		t.Errorf("%d polls took %d round trips", polls, n)
	}
}

// Ensure that a poll ends with its caller, also when Redis does not answer, and that a world whose Redis is away is one whose
// machines do not answer: no verdict.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	n := w.running(1)
	w.srv.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.client(n).Poll(ctx, "/sim/agent", 0, 10); !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("frozen: error %v", err)
	}
	w.srv.Thaw()
	w.eventually("it answers again", func() bool { _, err := w.client(n).Poll(t.Context(), "/sim/agent", 0, 10); return err == nil })
	w.srv.Kill9()
	if _, err := w.client(n).Poll(t.Context(), "/sim/agent", 0, 10); !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("killed: error %v", err)
	}
	if _, err := w.Provider(deployment, "worker").List(t.Context(), "east"); err == nil || cloud.ClassOf(err) != job.Transient {
		t.Errorf("list: error %v", err)
	}
}

// Ensure that a list of more machines than fit on a page has each of them once.
func TestListOfManyPages(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	c := many(t, w.rdb)
	ids := fill(t, c, 2500)
	nodes, err := c.Provider("01JZZZZZZZZZZZZZZZZZZZZZZZ", "worker").List(t.Context(), "east")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range nodes {
		got = append(got, n.ID)
	}
	slices.Sort(ids)
	slices.Sort(got)
	if !slices.Equal(ids, got) {
		t.Errorf("%d machines are listed, %d were made", len(got), len(ids))
	}
}

// Ensure that a world can grow: a zone that is new in its file has room at once, whatever its capacity is made of.
func TestWorldGrows(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	more := small()
	more.Zones[1].Capacity.N = 2
	more.Zones = append(more.Zones, more.Zones[0])
	more.Zones[3].Name, more.Zones[3].Capacity = "east-c", sim.Capacity{Steps: []sim.Step{{At: 0, N: 2}}}
	c, err := sim.Open(t.Context(), w.rdb, more)
	if err != nil {
		t.Fatal(err)
	}
	for i, zone := range []string{"east-b", "east-c"} {
		r := request(job.ID(i+1), 1, 2)
		r.Offer = offer("east", zone)
		if _, err := c.Provider(deployment, "worker").Create(t.Context(), r); err != nil {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

// Ensure that a cluster is refused, since all time in a world must be of one clock.
func TestClusterIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer rdb.Close()
	if _, err := sim.Open(t.Context(), rdb, small()); err == nil || !strings.Contains(err.Error(), "sim.redis") {
		t.Errorf("error %v", err)
	}
}

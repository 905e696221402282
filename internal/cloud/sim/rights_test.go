package sim_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
)

// Ensure that a user with the rights that the documentation lists can do all that there is to do in a world, and that none of
// its commands is there for nothing.
func TestRightsOfAUser(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/how-to/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`ACL SETUSER outlast-sim .*`).FindString(string(page))
	rights := strings.Fields(strings.TrimPrefix(line, "ACL "))
	if len(rights) < 10 {
		t.Fatalf("the documentation has no rights: %q", line)
	}
	w := open(t, small())
	grant := []any{"ACL"}
	for _, r := range rights {
		grant = append(grant, r)
	}
	if err := w.rdb.Do(t.Context(), grant...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.rdb.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	o := w.srv.Options()
	o.Username, o.Password = "outlast-sim", "PASSWORD"
	rdb := redis.NewClient(o)
	defer rdb.Close()
	changing := small()
	changing.Keep, changing.Settle = 50*time.Millisecond, time.Second
	changing.Zones[2].Capacity = sim.Capacity{Markov: &sim.Markov{Up: 5, ToDown: 0.5, ToUp: 0.5, Every: time.Millisecond}}
	changing.Faults = []sim.Fault{{Op: sim.OpList, Kind: sim.ShortKind, Count: 3}, {Op: sim.OpDial, Kind: sim.LostKind, Count: 1}}
	c, err := sim.Open(t.Context(), rdb, changing)
	if err != nil {
		t.Fatal(err)
	}
	here := &world{t, c, w.srv, w.rdb}
	n := here.running(1)
	shell := here.client(n)
	_, _ = shell.Poll(t.Context(), "/sim/agent", 0, 10) // its answer is lost
	packed, sum := bundle(t)
	if err := shell.Unpack(t.Context(), "/sim/agent", sum, strings.NewReader(string(packed))); err != nil {
		t.Error(err)
	}
	here.start(n, "sleep infinity")
	if _, err := shell.Start(t.Context(), "/sim/agent", agent.StartRequest{Token: "other", Run: "true"}); err == nil {
		t.Error("a second start succeeded")
	}
	here.poll(n)
	if _, err := shell.Stop(t.Context(), "/sim/agent", 0); err != nil {
		t.Error(err)
	}
	here.list()
	here.create(request(2, 1, 2))
	id := here.inject(sim.Fault{Op: sim.OpCreate, Kind: sim.DeniedKind, Count: 5})
	if _, err := c.Provider(deployment, "worker").Create(t.Context(), request(3, 1, 1)); err == nil {
		t.Error("a denied call succeeded")
	}
	for what, err := range map[string]error{
		"heal": c.Heal(t.Context(), id), "heal all": c.Heal(t.Context()), "step": c.StepClock(t.Context(), n.ID, time.Hour),
		"preempt":  c.Provider(deployment, "worker").Preempt(t.Context(), "east", n.ID, time.Hour),
		"capacity": c.SetCapacity(t.Context(), "east-a", 1),
		"terminate": c.Provider(deployment, "worker").Terminate(t.Context(), "east", cloud.Match{
			Deployment: deployment, Job: 1, Attempt: 1}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.LoseZone(t.Context(), "east-a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Hits(t.Context()); err != nil {
		t.Error(err)
	}
	if len(here.events("")) == 0 {
		t.Error("there is no ledger")
	}
	here.eventually("all is forgotten", func() bool { return len(here.all()) == 0 })

	info, err := w.rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var idle []string
	for _, r := range rights {
		command, ok := strings.CutPrefix(r, "+")
		if ok && !strings.Contains(info, "cmdstat_"+command+":") {
			idle = append(idle, command)
		}
	}
	// What a client needs that does not find the script, or has a database or a pool to look after.
	if idle = slices.DeleteFunc(idle, func(c string) bool {
		return slices.Contains([]string{"eval", "script|load", "select", "ping", "multi", "exec"}, c)
	}); len(idle) > 0 {
		t.Errorf("rights that nobody needs: %v", idle)
	}
}

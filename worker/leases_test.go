package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// withLeases gives a fleet n further servers for its leases.
func (f *fleet) withLeases(n int) []*redistest.Server {
	f.t.Helper()
	var servers []*redistest.Server
	var urls []string
	for range n {
		s := redistest.Start(f.t, redistest.TCP(), redistest.Password(word))
		if err := s.Client(f.t).ACLSetUser(f.t.Context(), "lease", append([]string{"reset", "on", ">" + word}, leaseRights(f.t)...)...).Err(); err != nil {
			f.t.Fatal(err)
		}
		servers, urls = append(servers, s), append(urls, "redis://lease:"+word+"@"+s.Address())
	}
	f.servers = append(f.servers, servers...)
	f.env = append(f.env, "OUTLAST_LEASE_REDIS="+strings.Join(urls, ","))
	return servers
}

// leaseRights are what docs/redis.md says that a user needs on these servers.
func leaseRights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("further servers for the lease: `([^`]+)`").FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/redis.md names no rights for the servers of the lease")
	}
	return strings.Fields(string(m[1]))
}

// Ensure that a whole deployment works whose leases need most of three servers, and goes on when one of them dies in the middle.
func TestLaneLeases(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	servers := f.withLeases(3)
	f.lane(func() { servers[1].Kill9() })
}

// Ensure that without most of the lease servers nothing begins and nothing gets a verdict: jobs that run go on, those that
// need a driver wait, and all of it goes on when the servers are back (G10).
func TestG10_LeaseServersAreAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	servers := f.withLeases(3)
	w := f.worker()
	moves, stays := f.launch(waits), f.launch("touch $SHARED/other; "+waits)
	f.trace("runs")
	f.trace("other")
	f.await(moves, "RUNNING")
	f.await(stays, "RUNNING")
	servers[0].Kill9()
	servers[1].Freeze()
	waiting := f.launch("true")
	f.insist("preempt", moves)
	f.eventually("the worker to say what it waits for", func() bool {
		return strings.Contains(w.log.String(), "most of the lease servers do not answer")
	})
	f.eventually("the loss of the machine to be seen", func() bool { a, _ := f.show(moves); return a.Status == "RECOVERING" })
	for id, want := range map[string]string{waiting: "PENDING", moves: "RECOVERING", stays: "RUNNING"} {
		if a, text := f.show(id); a.Status != want {
			t.Errorf("job %s without lease servers, want %s: %s", id, want, text)
		}
	}
	servers[0].Restart()
	servers[1].Thaw()
	f.leave("go")
	for _, id := range []string{waiting, moves, stays} {
		f.await(id, "SUCCEEDED")
	}
	if a, text := f.show(stays); a.Tasks[0].Attempts != 1 {
		t.Errorf("the job did not stay on its machine: %s", text)
	}
	f.nothingRuns()
}

// Ensure that a worker which would ask other servers for its leases than those that serve takes no work and says why, that
// passwords are not part of that, and that servers are changed when no worker serves.
func TestWorkersAgreeOnTheLeaseServers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	plain := f.env
	f.withLeases(3)
	first := f.worker()
	with := f.env
	f.env = plain
	other := f.worker()
	var said string
	f.eventually("the worker to refuse", func() bool {
		code, body := other.get("/readyz")
		said = body
		return code == 503 && strings.Contains(body, "lease_redis")
	}, func() string { return said })
	if strings.Contains(said, word) || strings.Contains(other.log.String(), word) {
		t.Errorf("a password is shown: %s", said)
	}
	f.env = with
	id := f.launch("true")
	f.await(id, "SUCCEEDED")
	first.term()
	f.env = plain
	third := f.worker()
	f.eventually("the worker to serve with the new setting", func() bool { code, body := third.get("/readyz"); said = body; return code == 200 }, func() string { return said })
	f.await(f.launch("true"), "SUCCEEDED")
}

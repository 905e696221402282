package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/cloudtest"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// The test binary is also what its machines are made of, as a worker is, and a creator that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "machine":
			os.Exit(local.MachineMain(os.Args[2:]))
		case "agent":
			os.Exit(agent.Program{Self: []string{"/proc/self/exe", "agent"}}.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "creator":
			os.Exit(creatorMain(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

const deployment = "dep"

// config is what the tests use unless they say otherwise.
func config(root, deployment string) local.Config {
	return local.Config{Root: root, Deployment: deployment, Machine: []string{"/proc/self/exe", "machine"}, Zones: []local.Zone{
		{Name: "a", Boot: 20 * time.Millisecond, Accelerators: map[string]int{"A100": 8}},
		{Name: "b", Capacity: -1},
	}}
}

// newRoot makes a root whose machines end with the test, and fails the test if one of their processes does not.
func newRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	t.Cleanup(func() {
		for _, id := range instances(t, root) {
			endAll(t, root, id)
			eventually(t, "the processes of "+id+" are gone", func() bool { return len(marked(t, id)) == 0 })
		}
	})
	return root
}

// endAll ends a machine of whatever deployment.
func endAll(t *testing.T, root, id string) {
	t.Helper()
	zone, _, _ := strings.Cut(id, "-")
	for _, d := range []string{deployment, "dep-2"} {
		p := open(t, config(root, d))
		if err := p.Terminate(context.Background(), zone, cloud.Match{Deployment: d, NodeID: id}); err != nil {
			t.Errorf("clean up %s: %v", id, err)
		}
	}
}

// instances are the ids of all machines in a root.
func instances(t *testing.T, root string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "*", "[a-z]*", "instance.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range dirs {
		ids = append(ids, filepath.Base(filepath.Dir(d)))
	}
	return ids
}

func open(t *testing.T, c local.Config) *local.Provider {
	t.Helper()
	p, err := local.New(c)
	if err != nil {
		t.Fatalf("open the provider: %v", err)
	}
	return p
}

// marked lists the processes that carry a machine's id, as another program than the provider would find them.
func marked(t *testing.T, id string) []int {
	t.Helper()
	return grep(t, "environ", "OUTLAST_INSTANCE="+id)
}

// called lists the living processes with a certain argument.
func called(t *testing.T, arg string) []int {
	t.Helper()
	return grep(t, "cmdline", arg)
}

// seconds is an argument for a sleep that no other process has, also not in another run of the tests.
func seconds() string { return fmt.Sprintf("%d%06d", os.Getpid(), rand.IntN(1e6)) }

// grep lists the processes with a certain entry in a file under /proc that is a list of strings. Those that have
// ended have no entries.
func grep(t *testing.T, file, entry string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		for e := range strings.SplitSeq(string(text), "\x00") {
			if e == entry {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("it did not come about that %s", what)
		case <-look.C:
		}
	}
}

// The local provider is a provider.
//
// ray #29698: a machine that the provider had forgotten put the loop into endless errors. skypilot #656: a create that was
// repeated made a second machine.
func TestConformance(t *testing.T) {
	t.Parallel()
	cloudtest.Run(t, cloudtest.Subject{Parallel: true, Account: func(t *testing.T) cloudtest.Account {
		root := newRoot(t)
		return cloudtest.Account{
			Open: func(deployment string) cloud.Provider { return open(t, config(root, deployment)) },
			Full: func() (job.Offer, string) {
				return job.Offer{Provider: "local", Region: "b", Zone: "b", Type: "local", Price: 1}, "zone"
			},
			Break: func(cloud.Provider) {
				if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			Alive: func(n cloud.Node) int { return len(marked(t, n.ID)) },
		}
	}})
}

// request is an attempt in zone a.
func request(id job.ID, attempt, nodes int) cloud.Request {
	return cloud.Request{
		Identity: cloud.Identity{Deployment: deployment, Job: id, Attempt: attempt},
		Token:    job.Token(deployment, id, "", 0, attempt), Nodes: nodes, Name: fmt.Sprint("job-", id),
		Offer: job.Offer{Provider: "local", Region: "a", Zone: "a", Type: "local", Spot: true, Price: 0.03},
	}
}

func create(t *testing.T, p *local.Provider, r cloud.Request) []cloud.Node {
	t.Helper()
	nodes, err := p.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return nodes
}

// list returns the machines in zone a.
func list(t *testing.T, p *local.Provider) []cloud.Node {
	t.Helper()
	nodes, err := p.List(t.Context(), "a")
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return nodes
}

// find returns a machine in zone a.
func find(t *testing.T, p *local.Provider, id string) cloud.Node {
	t.Helper()
	for _, n := range list(t, p) {
		if n.ID == id {
			return n
		}
	}
	t.Fatalf("machine %s is not listed", id)
	return cloud.Node{}
}

// running makes one machine and waits until it runs.
func running(t *testing.T, p *local.Provider, id job.ID) cloud.Node {
	t.Helper()
	n := create(t, p, request(id, 1, 1))[0]
	eventually(t, n.ID+" runs", func() bool { return find(t, p, n.ID).State == cloud.Running })
	return n
}

func terminate(t *testing.T, p *local.Provider, n cloud.Node) {
	t.Helper()
	if err := p.Terminate(t.Context(), "a", cloud.Match{Deployment: deployment, NodeID: n.ID}); err != nil {
		t.Fatalf("terminate: %v", err)
	}
}

// ended waits until a machine has ended, as it must have, and returns it.
func ended(t *testing.T, p *local.Provider, id string, want cloud.State) cloud.Node {
	t.Helper()
	var n cloud.Node
	eventually(t, fmt.Sprintf("%s is %s", id, want), func() bool { n = find(t, p, id); return n.State == want })
	if pids := marked(t, id); len(pids) > 0 {
		t.Errorf("processes %v of %s run on", pids, id)
	}
	return n
}

// dial opens a Shell to a machine.
func dial(t *testing.T, n cloud.Node) machine.Shell {
	t.Helper()
	s, err := local.Dialer{}.Dial(t.Context(), job.Node{ID: n.ID, Address: n.Address})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the shell: %v", err)
		}
	})
	return s
}

// sh runs a script on a machine and returns its output.
func sh(t *testing.T, n cloud.Node, script string) string {
	t.Helper()
	var out strings.Builder
	if err := dial(t, n).Run(t.Context(), []string{"bash", "-c", script}, nil, &out); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String()
}

// creatorMain creates one gang, for a test that kills it meanwhile.
func creatorMain(root string) int {
	p, err := local.New(config(root, deployment))
	if err == nil {
		_, err = p.Create(context.Background(), request(1, 1, 2))
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

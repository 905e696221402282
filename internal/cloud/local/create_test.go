package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// However far a creator came before it was killed, the same call repeated makes one gang of it, each with one init.
func TestKilledCreatorIsRepeated(t *testing.T) {
	t.Parallel()
	const rounds = 10
	for i := range rounds {
		root := newRoot(t)
		killAfter(t, root, time.Duration(i)*2*time.Millisecond)
		p := open(t, config(root, deployment))
		create(t, p, request(1, 1, 2))
		eventually(t, "both machines run", func() bool {
			nodes := list(t, p)
			return len(nodes) == 2 && nodes[0].State == cloud.Running && nodes[1].State == cloud.Running
		})
		for _, n := range list(t, p) {
			if pids := marked(t, n.ID); len(pids) != 1 {
				t.Errorf("round %d: machine %s has the processes %v, want its init", i, n.ID, pids)
			}
		}
	}
}

// killAfter runs a creator and kills it some time after it has made the zone's directory, or lets it end before that.
func killAfter(t *testing.T, root string, d time.Duration) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "creator", root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // killed, most likely
	eventually(t, "the creator has begun", func() bool { _, err := os.Stat(filepath.Join(root, "a")); return err == nil })
	select {
	case <-time.After(d):
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("kill the creator: %v", err)
		}
	case <-ended:
	}
	<-ended
}

// A gang of which a killed creator made a part, and whose rest does not fit any more, is given up as a whole.
func TestPartOfAGangIsGivenUp(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	c := config(root, deployment)
	p := open(t, c)
	part := create(t, p, request(1, 1, 1))[0] // rank 0 of the gang has the same id
	c.Zones[0].Capacity = 2
	p = open(t, c)
	_, err := p.Create(t.Context(), request(1, 1, 3))
	if !cloud.IsCapacity(err) {
		t.Errorf("error %v, want one of class capacity", err)
	}
	ended(t, p, part.ID, cloud.Terminated)
}

// A zone holds as many machines as it has capacity for, of all deployments together, and a machine that ended makes room.
func TestCapacityIsShared(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	c := config(root, deployment)
	c.Zones[0].Capacity = 2
	p := open(t, c)
	neighbour := c
	neighbour.Deployment = "dep-2"
	r := request(1, 1, 1)
	r.Deployment, r.Token = "dep-2", "theirs"
	create(t, open(t, neighbour), r)
	n := create(t, p, request(1, 1, 1))[0]
	if _, err := p.Create(t.Context(), request(2, 1, 1)); !cloud.IsCapacity(err) {
		t.Errorf("error %v, want one of class capacity", err)
	}
	create(t, p, request(1, 1, 1)) // it is there already
	terminate(t, p, n)
	create(t, p, request(2, 1, 1))
}

// A zone can be set to refuse new machines with any class of error; those that are there stay reachable.
func TestZoneFails(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	c := config(root, deployment)
	create(t, open(t, c), request(1, 1, 1))
	for _, class := range []job.Class{job.Capacity, job.Quota, job.Denied, job.Invalid, job.Throttled, job.Transient} {
		c.Zones[0].Fail = class
		p := open(t, c)
		if _, err := p.Create(t.Context(), request(2, 1, 1)); cloud.ClassOf(err) != class {
			t.Errorf("class %s, want %s: %v", cloud.ClassOf(err), class, err)
		}
		create(t, p, request(1, 1, 1))
	}
}

// A machine that nobody has started expires; one that was just made does not.
func TestNeverStartedMachineExpires(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	c := config(root, deployment)
	c.Machine = []string{"/bin/false"}
	p := open(t, c)
	n := create(t, p, request(1, 1, 1))[0]
	if got := find(t, p, n.ID); got.State != cloud.Booting {
		t.Errorf("it is %s", got.State)
	}
	file := filepath.Join(n.Address, "instance.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	made := n.CreatedAt.Format(time.RFC3339Nano)
	old := strings.Replace(string(text), made, n.CreatedAt.Add(-time.Minute).Format(time.RFC3339Nano), 1)
	if old == string(text) {
		t.Fatalf("%s holds no %s", text, made)
	}
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, p, n.ID, cloud.Terminated); got.Reason != "it was never started" {
		t.Errorf("reason %q", got.Reason)
	}
}

// What is not a machine, or a damaged one, is passed over; the rest is listed and can be made and ended.
func TestListPassesOverWhatIsForeign(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	zone := filepath.Join(root, "a")
	for name, text := range map[string]string{
		"a-empty/x": "", "a-torn/instance.json": `{"deployment":"dep","job":`, "a-null/instance.json": "null",
		"a-other/instance.json": `{"id":"a-else","deployment":"dep","job":3}`, "a-file": "x", ".new-1/instance.json": "{}",
		"stranger/instance.json": `{"id":"stranger","deployment":"dep"}`, "a-array/instance.json": `[1,2]`,
	} {
		path := filepath.Join(zone, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if nodes := list(t, p); len(nodes) != 1 || nodes[0].ID != n.ID {
		t.Errorf("listed: %+v", nodes)
	}
	running(t, p, 2)
	terminate(t, p, n)
}

// A zone that cannot be read is an error, not an empty list: its machines may run.
func TestListDoesNotTakeAnErrorForNothing(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	file := filepath.Join(n.Address, "instance.json")
	aside := filepath.Join(root, "aside")
	if err := os.Rename(file, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // reading it fails, for root too
		t.Fatal(err)
	}
	if nodes, err := p.List(t.Context(), "a"); err == nil {
		t.Errorf("no error, and %d machines", len(nodes))
	} else if got := cloud.ClassOf(err); got != job.Transient {
		t.Errorf("class %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	if got := find(t, p, n.ID).State; got == cloud.Booting {
		t.Errorf("it is %s", got)
	}
}

// The root may lie deeper than a socket's path may be long.
func TestLongRoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(newRoot(t), strings.Repeat("deep", 50), strings.Repeat("deeper", 30))
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	if out := sh(t, n, "echo $OUTLAST_INSTANCE"); out != n.ID+"\n" {
		t.Errorf("the machine answers %q, want %q", out, n.ID)
	}
	terminate(t, p, n)
}

// Two names of one root are one root.
func TestRootThroughALink(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	a := create(t, open(t, config(root, deployment)), request(1, 1, 1))
	b := create(t, open(t, config(link, deployment)), request(1, 1, 1))
	if diff := cmp.Diff(a[0].ID, b[0].ID); diff != "" {
		t.Errorf("the link has another machine:\n%s", diff)
	}
}

// The secrets in a worker's environment do not reach its machines.
func TestEnvironmentOfTheWorkerStaysThere(t *testing.T) {
	t.Setenv("OUTLAST_REDIS_URL", "redis://:secret@host")
	t.Setenv("LC_ALL", "C.UTF-8")
	p := open(t, config(newRoot(t), deployment))
	env := sh(t, running(t, p, 1), "env")
	if strings.Contains(env, "secret") {
		t.Errorf("the environment of a machine is\n%s", env)
	}
	for _, want := range []string{"LC_ALL=C.UTF-8", "PATH=", "OUTLAST_DEPLOYMENT=" + deployment} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not in the environment of a machine:\n%s", want, env)
		}
	}
}

// A creator that waits for another one gives up when its context ends.
func TestCreateWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	create(t, p, request(1, 1, 1))
	lock, err := os.Open(filepath.Join(root, "a", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Create(ctx, request(2, 1, 1)); cloud.ClassOf(err) != job.Transient {
		t.Errorf("error %v, want a transient one", err)
	}
	// A creator that hangs holds up neither the view nor an end.
	list(t, p)
	if err := p.Terminate(t.Context(), "a", cloud.Match{Deployment: deployment, Job: 1}); err != nil {
		t.Errorf("terminate: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// A zone that was taken out of the configuration still counts while it has a directory.
func TestRegionsIncludeFormerZones(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	c := config(root, deployment)
	c.Zones = c.Zones[1:]
	p = open(t, c)
	regions, err := p.Regions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, regions); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	terminate(t, p, n)
}

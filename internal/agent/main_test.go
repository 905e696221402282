package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// agentBinary is the agent as a program of its own, built once: the tests kill it, and it starts faster than the
// test binary does under the race detector.
var agentBinary string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "outlast-agent")
	if err != nil {
		log.Fatal(err)
	}
	agentBinary = filepath.Join(folder, "agent")
	build := exec.Command("go", "build", "-o", agentBinary, "./testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("build the agent: %v\n%s", err, out)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// node is an attempt's directory on this computer and an agent for it. When the test ends, so does its run.
type node struct {
	t   *testing.T
	dir dir
	program
}

// program is the agent, called within this process; what it starts are processes.
type program struct{ Program }

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{
		t: t, dir: dir(filepath.Join(t.TempDir(), "attempt")), program: program{Program{Self: []string{agentBinary}}},
	}
	t.Cleanup(func() {
		if _, err := n.command(nil, "stop", string(n.dir), "0"); err != nil {
			t.Errorf("stop: %v", err)
		}
		n.await("it is over", func(st Status) bool { return over(st.State) })
		eventually(t, "the supervisor has ended", func() bool {
			held, err := lockHeld(n.dir.path(fileLock))
			return err == nil && !held
		})
	})
	return n
}

func over(s State) bool { return s == Absent || s == Exited || s == Lost }

// command calls the agent and decodes its answer.
func (p program) command(stdin io.Reader, args ...string) (Status, error) {
	var out, complaint bytes.Buffer
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	if code := p.Main(args, stdin, &out, &complaint); code != 0 {
		return Status{}, fmt.Errorf("code %d: %s", code, strings.TrimSpace(complaint.String()))
	}
	var st Status
	return st, json.Unmarshal(out.Bytes(), &st)
}

func request(t *testing.T, req StartRequest) io.Reader {
	t.Helper()
	if req.Token == "" {
		req.Token = "token"
	}
	text, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(text)
}

func (n *node) start(req StartRequest) Status {
	n.t.Helper()
	st, err := n.command(request(n.t, req), "start", string(n.dir))
	if err != nil {
		n.t.Fatalf("start: %v", err)
	}
	return st
}

func (n *node) poll() Status {
	n.t.Helper()
	st, err := n.command(nil, "poll", string(n.dir), "0", strconv.Itoa(MaxLog))
	if err != nil {
		n.t.Fatalf("poll: %v", err)
	}
	return st
}

func (n *node) stop(grace string) Status {
	n.t.Helper()
	st, err := n.command(nil, "stop", string(n.dir), grace)
	if err != nil {
		n.t.Fatalf("stop: %v", err)
	}
	return st
}

// await polls until the status is as wanted.
func (n *node) await(what string, wanted func(Status) bool) Status {
	n.t.Helper()
	var st Status
	eventually(n.t, what, func() bool {
		st = n.poll()
		return wanted(st)
	})
	return st
}

func (n *node) awaitState(want State) Status {
	n.t.Helper()
	return n.await("state "+string(want), func(st Status) bool { return st.State == want })
}

// awaitLog polls until the user's code has written a text.
func (n *node) awaitLog(text string) Status {
	n.t.Helper()
	return n.await(fmt.Sprintf("%q in the log", text), func(st Status) bool {
		return strings.Contains(string(st.Log), text)
	})
}

// finish runs something to its end.
func (n *node) finish(req StartRequest) Status {
	n.t.Helper()
	n.start(req)
	return n.awaitState(Exited)
}

// supervisor returns the process that watches the run.
func (n *node) supervisor() process {
	n.t.Helper()
	rec := load[launchRecord](n.dir, fileLaunching)
	if rec == nil {
		n.t.Fatal("nothing was launched")
	}
	p, _ := readProcess(rec.Supervisor)
	return p
}

// eventually looks until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	if t.Context().Err() != nil { // in a clean-up
		ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	}
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("it did not come to pass: %s", what)
		case <-ticker.C:
		}
	}
}

// alive reports whether a process runs.
func alive(pid int) bool {
	p, ok := readProcess(pid)
	return ok && !p.ended()
}

package sim_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/machine"
)

// place is a machine with an agent on it: the real one, or one that is played.
type place struct {
	*testing.T
	*machine.Client
	shell  machine.Shell
	argv   []string
	dir    string
	notice func(in time.Duration) // says that the machine will be taken
	file   string                 // where it is said
	seen   []string               // what was observed
}

// request is a start request of this place.
func (p *place) request(r agent.StartRequest) agent.StartRequest {
	if r.Token == "" {
		r.Token = "t1"
	}
	r.NoticeFile = p.file
	return r
}

// note notes an answer without what differs from run to run.
func (p *place) note(what string, st agent.Status, err error) {
	p.Helper()
	var refused *machine.CommandError
	if errors.As(err, &refused) {
		p.seen = append(p.seen, fmt.Sprintf("%s: refused with %d", what, refused.Code))
		return
	}
	if err != nil {
		p.seen = append(p.seen, fmt.Sprintf("%s: error %v", what, err))
		return
	}
	text := ""
	if st.Exit != nil {
		text = fmt.Sprintf(", exit %+v", *st.Exit)
	}
	if st.Notice != nil {
		text += fmt.Sprintf(", notice of %d s", (st.Notice.Deadline-st.Notice.At+500)/1000)
	}
	p.seen = append(p.seen, fmt.Sprintf("%s: %s%s, token %q, already %v, stopped %v, started %v, ended %v, log %q at %d of %d",
		what, st.State, text, st.Token, st.Already, st.Stopped, st.Started > 0, st.Ended > 0, st.Log, st.LogOffset, st.LogSize))
}

func (p *place) start(r agent.StartRequest) {
	p.Helper()
	st, err := p.Start(p.Context(), p.dir, p.request(r))
	if err == nil && !st.Already { // how far it has come meanwhile is a matter of luck
		p.seen = append(p.seen, fmt.Sprintf("start: token %q, stopped %v", st.Token, st.Stopped))
		return
	}
	p.note("start", st, err)
}

func (p *place) poll(offset, limit int64) {
	p.Helper()
	st, err := p.Poll(p.Context(), p.dir, offset, limit)
	p.note("poll", st, err)
}

// stop asks for the end. How far that has come when it answers is a matter of luck.
func (p *place) stop(grace time.Duration) {
	p.Helper()
	st, err := p.Stop(p.Context(), p.dir, grace)
	if err != nil || !st.Stopped {
		p.note("stop", st, err)
	}
}

// until polls until it is so, and notes that.
func (p *place) until(what string, ok func(agent.Status) bool) agent.Status {
	p.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := p.Poll(p.Context(), p.dir, 0, 1000)
		if err != nil {
			p.Fatalf("poll: %v", err)
		}
		if ok(st) {
			p.note(what, st, nil)
			return st
		}
		select {
		case <-deadline.C:
			p.Fatalf("it did not come to %s: %+v", what, st)
		case <-tick.C:
		}
	}
}

func (p *place) exited() agent.Status {
	p.Helper()
	return p.until("end", func(st agent.Status) bool { return st.State == agent.Exited })
}

// run runs the agent with other arguments than a client would.
func (p *place) run(args ...string) {
	p.Helper()
	var out bytes.Buffer
	err := p.shell.Run(p.Context(), append(append([]string{}, p.argv...), args...), nil, &out)
	p.note(strings.ReplaceAll(strings.Join(args, " "), p.dir, "DIR"), agent.Status{}, err)
}

// bundle is a tar.gz with one file.
func bundle(t *testing.T) (packed []byte, sum string) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	err := files.WriteHeader(&tar.Header{Name: "a", Mode: 0o644, Size: 1})
	_, writing := files.Write([]byte("x"))
	if err := errors.Join(err, writing, files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(hash[:])
}

// behaviours are what workers rely on. Each is played and compared with the real agent.
var behaviours = []struct {
	name string
	do   func(p *place)
}{
	{"nothing was started", func(p *place) { p.poll(0, 100); p.poll(7, 100) }},
	{"a run to its end", func(p *place) {
		p.start(agent.StartRequest{Run: "echo one\necho 'two  three'\nexit 3"})
		p.exited()
		p.poll(4, 3)
		p.poll(100, 3)
		p.poll(0, 0)
	}},
	{"setup and run", func(p *place) {
		p.start(agent.StartRequest{Setup: "echo first", Run: "# nothing\n\necho second $WHO", Env: map[string]string{"WHO": "me"}})
		st := p.exited()
		var stages []string
		for _, m := range st.LogMarks {
			if m.Stage != "" {
				stages = append(stages, fmt.Sprint(m.Stage, " at ", m.Offset))
			}
		}
		if last := st.LogMarks[len(st.LogMarks)-1]; last.Offset != st.LogSize || last.At < st.Started {
			p.Errorf("the last mark is %+v: %+v", last, st)
		}
		p.seen = append(p.seen, fmt.Sprint(stages))
	}},
	{"what echo makes of its words", func(p *place) {
		p.start(agent.StartRequest{
			Run: "echo a  b\necho \"a  b\" 'c  $WHO' d$WHO${WHO}\"$WHO\"e # a comment\necho a#b '#' # echo\necho\necho \"\" x",
			Env: map[string]string{"WHO": "me"},
		})
		p.exited()
	}},
	{"a setup that fails", func(p *place) {
		p.start(agent.StartRequest{Setup: "echo first\nexit 4", Run: "echo second"})
		p.exited()
	}},
	{"a setup alone", func(p *place) { p.start(agent.StartRequest{Setup: "echo only"}); p.exited() }},
	{"what takes long", func(p *place) {
		p.start(agent.StartRequest{Run: "echo begins\nsleep 0.2\necho ends"})
		p.until("its beginning", func(st agent.Status) bool { return st.LogSize > 0 })
		p.exited()
	}},
	{"a command that is not there", func(p *place) {
		st := func() agent.Status {
			_, err := p.Start(p.Context(), p.dir, p.request(agent.StartRequest{Run: "no-such-command"}))
			if err != nil {
				p.Fatal(err)
			}
			return p.until("", func(st agent.Status) bool { return st.State == agent.Exited })
		}()
		p.seen = []string{fmt.Sprint(st.Exit.Code, st.LogSize > 0)}
	}},
	{"exit codes beyond a byte", func(p *place) { p.start(agent.StartRequest{Run: "exit 300"}); p.exited() }},
	{"an attempt that fails at first", func(p *place) {
		p.start(agent.StartRequest{Run: `[ "$OUTLAST_ATTEMPT" -ge 3 ] || exit 42`, Env: map[string]string{"OUTLAST_ATTEMPT": "2"}})
		p.exited()
	}},
	{"an attempt that succeeds at last", func(p *place) {
		p.start(agent.StartRequest{Run: `[ "$OUTLAST_ATTEMPT" -ge 3 ] || exit 42`, Env: map[string]string{"OUTLAST_ATTEMPT": "3"}})
		p.exited()
	}},
	{"a second start", func(p *place) {
		long := agent.StartRequest{Run: "sleep 100"}
		p.start(long)
		p.start(long)
		long.Token = "t2"
		p.start(long)
		p.stop(0)
		p.exited()
		long.Token = "t1"
		p.start(long)
		long.Token = "t2"
		p.start(long)
	}},
	{"a stop", func(p *place) {
		p.start(agent.StartRequest{Run: "echo up\nsleep 100"})
		p.until("its beginning", func(st agent.Status) bool { return st.LogSize > 0 })
		p.stop(20 * time.Second)
		p.exited()
		p.stop(time.Second)
		p.exited()
	}},
	{"a stop in the setup", func(p *place) {
		p.start(agent.StartRequest{Setup: "sleep 100", Run: "echo never"})
		p.stop(20 * time.Second)
		p.exited()
	}},
	{"a stop that the code does not heed", func(p *place) {
		p.start(agent.StartRequest{Run: "trap '' TERM\necho deaf\nsleep 100"})
		p.until("its beginning", func(st agent.Status) bool { return st.LogSize > 0 })
		p.stop(20 * time.Second)
		p.stop(100 * time.Millisecond)
		p.exited()
	}},
	{"a stop before the start", func(p *place) {
		p.stop(time.Second)
		p.poll(0, 10)
		p.start(agent.StartRequest{Run: "echo never"})
		p.start(agent.StartRequest{Token: "t2", Run: "echo never"})
		p.poll(0, 10)
	}},
	{"a stop after the end", func(p *place) {
		p.start(agent.StartRequest{Run: "true"})
		p.exited()
		st, err := p.Stop(p.Context(), p.dir, time.Second)
		p.note("stop", st, err)
	}},
	{"a notice", func(p *place) {
		p.start(agent.StartRequest{Run: "echo up\nsleep 100"})
		p.until("its beginning", func(st agent.Status) bool { return st.LogSize > 0 })
		p.notice(100 * time.Second)
		p.until("the notice", func(st agent.Status) bool { return st.Notice != nil && st.State == agent.Exited })
	}},
	{"a notice that only its file tells", func(p *place) {
		p.start(agent.StartRequest{Run: "sleep 100", NoticeSignal: "none"})
		p.notice(100 * time.Second)
		p.until("the notice", func(st agent.Status) bool { return st.Notice != nil })
		p.stop(0)
		st := p.until("", func(st agent.Status) bool { return st.State == agent.Exited })
		p.seen = append(p.seen[:len(p.seen)-1], fmt.Sprint(st.Notice != nil))
	}},
	{"a notice with another signal", func(p *place) {
		p.start(agent.StartRequest{Run: "echo up\nsleep 100", NoticeSignal: "USR1"})
		p.until("its beginning", func(st agent.Status) bool { return st.LogSize > 0 })
		p.notice(100 * time.Second)
		p.exited()
	}},
	{"a notice after the end", func(p *place) {
		p.start(agent.StartRequest{Run: "true"})
		p.exited()
		p.notice(100 * time.Second)
		p.poll(0, 10)
	}},
	{"requests that make no sense", func(p *place) {
		p.start(agent.StartRequest{Run: "a\x00b"})
		p.start(agent.StartRequest{Run: "true", NoticeSignal: "KILL"})
		p.start(agent.StartRequest{Run: "true", Env: map[string]string{"A=B": "c"}})
		p.start(agent.StartRequest{Run: "true", LogLimit: 1})
		p.start(agent.StartRequest{Run: "true", IdleSeconds: -1})
		p.poll(0, 10)
		p.run("start", p.dir)
		p.run("poll", p.dir, "x", "1")
		p.run("poll", p.dir, "-1", "1")
		p.run("poll", p.dir)
		p.run("poll", "relative", "0", "1")
		p.run("stop", p.dir, "-1")
		p.run("stop", p.dir, "NaN")
		p.run("no-such-command", p.dir)
		p.run()
		p.poll(0, 10)
	}},
	{"bundles", func(p *place) {
		packed, sum := bundle(p.T)
		told := func(err error) { p.note("bundle", agent.Status{}, err) }
		told(p.Unpack(p.Context(), p.dir, sum, bytes.NewReader(packed)))
		told(p.Unpack(p.Context(), p.dir, sum, strings.NewReader("not read")))
		told(p.Unpack(p.Context(), p.dir, strings.Repeat("0", 64), bytes.NewReader(packed)))
		told(p.Unpack(p.Context(), p.dir, "no hash", bytes.NewReader(packed)))
		told(p.Mount(p.Context(), p.dir, sum, filepath.Join(p.TempDir(), "mounted"), "", bytes.NewReader(packed)))
		told(p.Mount(p.Context(), p.dir, strings.Repeat("0", 64), filepath.Join(p.TempDir(), "other"), "a", bytes.NewReader(packed)))
	}},
}

// Ensure that what an agent answers is the same whether it is the real one or one that is played.
func TestAgentAsTheRealOne(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-o", binary, "../../agent/testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	w := open(t, small())
	for i, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			genuine := realPlace(t, binary)
			b.do(genuine)
			played := w.place(t, i+1)
			b.do(played)
			if diff := cmp.Diff(genuine.seen, played.seen); diff != "" {
				t.Errorf("what is seen of the agent (-real +played):\n%s", diff)
			}
		})
	}
}

// realPlace is a directory of this computer with the real agent.
func realPlace(t *testing.T, binary string) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{T: t, shell: machine.LocalShell{}, argv: []string{binary}, dir: filepath.Join(dir, "agent"), file: filepath.Join(dir, "notice.json")}
	p.Client = machine.NewClient(p.shell, p.argv)
	p.notice = func(in time.Duration) {
		now := time.Now()
		text, err := json.Marshal(agent.Notice{At: now.UnixMilli(), Deadline: now.Add(in).UnixMilli()})
		if err == nil {
			err = os.WriteFile(p.file+".new", text, 0o600)
		}
		if err := errors.Join(err, os.Rename(p.file+".new", p.file)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // nothing is left, also of a test that failed
		_, _ = p.Stop(t.Context(), p.dir, 0)
	})
	return p
}

// place is a machine of the world.
func (w *world) place(t *testing.T, id int) *place {
	t.Helper()
	here := &world{t, w.Cloud, w.srv, w.rdb}
	n := here.running(jobID(id))
	s, err := w.Dialer("worker").Dial(t.Context(), nodeOf(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.terminate(n) })
	return &place{
		T: t, Client: machine.NewClient(s, sim.AgentArgv), shell: s, argv: sim.AgentArgv, dir: "/sim/agent", file: "/sim/notice.json",
		notice: func(in time.Duration) {
			if err := w.Provider(deployment, "test").Preempt(t.Context(), "east", n.ID, in); err != nil {
				t.Fatal(err)
			}
		},
	}
}

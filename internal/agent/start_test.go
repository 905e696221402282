package agent

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// count is a run that notes each of its starts, and would note an overlap with another one.
const count = `echo start >> ../starts
	mkdir ../alone || echo overlap >> ../starts
	rmdir ../alone`

// starts returns how often count was started.
func (n *node) starts() int {
	text, _ := os.ReadFile(n.dir.path("starts"))
	if strings.Contains(string(text), "overlap") {
		n.t.Error("two runs at the same time")
	}
	return strings.Count(string(text), "start\n")
}

// startProcess is a start as a process of its own, as it is over a shell.
func (n *node) startProcess(req StartRequest) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(agentBinary, "start", string(n.dir))
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = request(n.t, req), &out
	return cmd, &out
}

// Sixty starts at the same time give one run, and each of them is answered.
func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var starters sync.WaitGroup
	var lock sync.Mutex
	first := 0
	for range 60 {
		cmd, out := n.startProcess(StartRequest{Run: count})
		starters.Go(func() {
			err := cmd.Run()
			var st Status
			if err == nil {
				err = json.Unmarshal(out.Bytes(), &st)
			}
			if err != nil || st.State != Running && st.State != Exited {
				t.Errorf("answer %+v, error %v", st, err)
			}
			lock.Lock()
			defer lock.Unlock()
			if !st.Already {
				first++
			}
		})
	}
	starters.Wait()
	n.awaitState(Exited)
	if got := n.starts(); got != 1 || first != 1 {
		t.Errorf("%d runs, %d starters believe that it was them", got, first)
	}
}

// randomly runs a test of something that is killed at a random point many times, some at once.
func randomly(t *testing.T, times int, test func(t *testing.T, after time.Duration)) {
	for i := range times {
		after := rand.N(8 * time.Millisecond)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			test(t, after)
		})
	}
}

// killAfter kills a process that was just started. There is no event to wait for: any point may be hit.
func killAfter(cmd *exec.Cmd, after time.Duration) {
	<-time.After(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// A starter that is killed at any point, and then another start, give exactly one run.
func TestKilledStarter(t *testing.T) {
	t.Parallel()
	randomly(t, 150, func(t *testing.T, after time.Duration) {
		n := newNode(t)
		req := StartRequest{Setup: "true", Run: count, Env: map[string]string{"LARGE": strings.Repeat("x", 100_000)}}
		first, _ := n.startProcess(req)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		killAfter(first, after)
		n.start(req)
		n.awaitState(Exited)
		if got := n.starts(); got != 1 {
			t.Errorf("killed after %v: %d runs", after, got)
		}
	})
}

// A supervisor that is killed at any point, with starts before and after, never makes the user's code run twice or
// at the same time as itself: it runs once, or never and then Lost says so.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	randomly(t, 60, func(t *testing.T, after time.Duration) {
		n := newNode(t)
		req := StartRequest{Setup: "true", Run: count}
		first, _ := n.startProcess(req)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		killSupervisors(n.dir)
		_ = first.Wait()
		if _, err := n.command(request(t, req), "start", string(n.dir)); err != nil {
			t.Fatalf("second start: %v", err)
		}
		st := n.await("it is over", func(st Status) bool { return st.State == Exited || st.State == Lost })
		n.start(req) // changes nothing
		if got := n.starts(); got > 1 || st.State == Exited && got != 1 {
			t.Errorf("killed after %v: %d runs, status %+v", after, got, st)
		}
	})
}

// killSupervisors kills whatever supervises a directory.
func killSupervisors(d dir) {
	all, _ := processes()
	for _, p := range all {
		argv, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if strings.HasSuffix(string(argv), "\x00supervise\x00"+string(d)+"\x00") {
			p.signal(syscall.SIGKILL)
		}
	}
}

// Without its supervisor the user's code runs on and its log goes on; nobody starts it again, and when it has
// ended it is Lost, although the process that could wait for it is gone.
func TestUnsupervised(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: "echo up; until [ -e ../go ]; do sleep 0.01; done; echo done"})
	n.awaitLog("up")
	killSupervisors(n.dir)
	n.awaitState(Unsupervised)
	if st := n.start(StartRequest{Run: "echo again"}); !st.Already || st.State != Unsupervised {
		t.Errorf("second start: %+v", st)
	}
	if err := os.WriteFile(n.dir.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	st := n.awaitState(Lost)
	if string(st.Log) != "up\ndone\n" || st.Exit != nil {
		t.Errorf("status %+v, log %s", st, st.Log)
	}
	if st := n.start(StartRequest{Run: "echo again"}); !st.Already || st.State != Lost {
		t.Errorf("third start: %+v", st)
	}
}

// An orphan of a run keeps it from being Lost even if nothing but its session tells whose it is.
func TestUnsupervisedOrphan(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: "(exec env -i /bin/sleep 1000) & echo pid $!; sleep 1000; sleep 1000"})
	st := n.awaitLog("pid ")
	orphan, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(strings.Split(string(st.Log), "\n")[0], "pid ")))
	if err != nil {
		t.Fatal(err)
	}
	killSupervisors(n.dir)
	n.awaitState(Unsupervised)
	run := load[runRecord](n.dir, fileRun)
	main, _ := readProcess(run.PID)
	main.signal(syscall.SIGKILL)
	eventually(t, "the main process is gone", func() bool { return !alive(run.PID) })
	if st := n.poll(); st.State != Unsupervised {
		t.Errorf("state %s while %d lives", st.State, orphan)
	}
	n.stop("5")
	n.awaitState(Lost)
	if alive(orphan) {
		t.Error("the orphan is left after a stop")
	}
}

// A start returns as soon as setup runs, and says what runs.
func TestStartDoesNotWait(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if st := n.start(StartRequest{Setup: "sleep 1000", Run: "true"}); st.State != Setup || st.Already || st.Started == 0 {
		t.Errorf("status %+v", st)
	}
	if st := n.start(StartRequest{Setup: "sleep 1000", Run: "true"}); st.State != Setup || !st.Already {
		t.Errorf("second start: %+v", st)
	}
}

// A directory belongs to one attempt: another token is refused, whatever state the first one is in.
func TestAnotherToken(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Token: "one", Run: "sleep 1000"})
	refused := func() {
		t.Helper()
		_, err := n.command(request(t, StartRequest{Token: "two", Run: "true"}), "start", string(n.dir))
		if err == nil || !strings.Contains(err.Error(), "another attempt") {
			t.Errorf("error %v", err)
		}
	}
	refused()
	n.stop("0")
	n.awaitState(Exited)
	refused()
}

// A claim alone, whole or half written by a starter that was killed, does not keep others from starting; that of
// another attempt does.
func TestReclaim(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]State{
		`{"token":"token"}`: Running, `{"tok`: Running, ``: Running, `{"token":"other"}`: Absent,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			if err := n.dir.make(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(n.dir.path(fileClaimed), []byte(claim), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := n.command(request(t, StartRequest{Run: "sleep 1000"}), "start", string(n.dir))
			if st := n.poll(); st.State != want || (err == nil) != (want == Running) {
				t.Errorf("state %s, want %s; error %v", st.State, want, err)
			}
		})
	}
}

// A start that can not be carried out leaves nothing behind, and can be repeated.
func TestStartFails(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if err := n.dir.make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.dir.path(dirWork), nil, 0o600); err != nil { // where a folder should be
		t.Fatal(err)
	}
	_, err := n.command(request(t, StartRequest{Run: "true"}), "start", string(n.dir))
	if err == nil || !strings.Contains(err.Error(), "work directory") {
		t.Errorf("error %v", err)
	}
	if st := n.poll(); st.State != Absent {
		t.Errorf("state %s", st.State)
	}
	if err := os.Remove(n.dir.path(dirWork)); err != nil {
		t.Fatal(err)
	}
	n.finish(StartRequest{Run: "true"})
}

// A request that is not understood is refused, without a word of what was in it.
func TestBadRequest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `[]`, `{"token":"t","run":"true"`, `{"run":"true"}`,
		`{"token":"t","secrets":{"S":12345678}}`, `{"token":"t","secrets":{"S":"12345678`,
		`{"token":"t","secrets":{"S=":"12345678"}}`, `{"token":"t","secrets":{"S":"12345678\u0000"}}`,
		`{"token":"t","run":"\u0000"}`, `{"token":"t","run":"true","idle_seconds":-1}`,
	} {
		n := newNode(t)
		_, err := n.command(strings.NewReader(text), "start", string(n.dir))
		if err == nil || strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s: error %v", text, err)
		}
		if st := n.poll(); st.State != Absent {
			t.Errorf("%s: state %s", text, st.State)
		}
	}
}

// Nothing of a start holds on to the connection that it came over.
func TestStartDetaches(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	cmd, out := n.startProcess(StartRequest{Run: "sleep 1000"})
	cmd.ExtraFiles = []*os.File{os.Stdin, os.Stdin, os.Stdin, os.Stdin} // left open by whoever calls the agent
	if err := cmd.Run(); err != nil {                                   // returns when nobody has its output open any more
		t.Fatalf("%v: %s", err, out)
	}
	sup := n.supervisor()
	if sup.session != sup.pid {
		t.Errorf("the supervisor is in the session of %d", sup.session)
	}
	child := load[runRecord](n.dir, fileRun)
	names, err := os.ReadDir("/proc/" + strconv.Itoa(child.PID) + "/fd")
	if err != nil || len(names) != 3 {
		t.Errorf("the user's code has %d files open, error %v", len(names), err)
	}
}

// The kernel spares the supervisor when memory is short, and not the user's code.
func TestOOMScore(t *testing.T) {
	t.Parallel()
	if exec.Command("sh", "-c", "echo -1000 > "+oomScoreFile).Run() != nil {
		t.Skip("that may not be asked for here")
	}
	n := newNode(t)
	own, err := os.ReadFile(oomScoreFile)
	if err != nil {
		t.Fatal(err)
	}
	n.start(StartRequest{Setup: "cat /proc/self/oom_score_adj", Run: "cat /proc/self/oom_score_adj; echo up; sleep 1000"})
	st := n.awaitLog("up")
	if want := string(own) + string(own) + "up\n"; string(st.Log) != want {
		t.Errorf("the user's code has\n%swant\n%s", st.Log, want)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(n.supervisor().pid) + "/oom_score_adj")
	if err != nil || strings.TrimSpace(string(text)) != "-1000" {
		t.Errorf("the supervisor has %s, error %v", text, err)
	}
}

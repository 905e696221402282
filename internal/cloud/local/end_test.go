package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// escapes are ways in which a process gets out of sight of its machine. Each leaves a sleep with the number behind.
var escapes = map[string]string{
	"own session":             "setsid sleep %d >/dev/null 2>&1 &",
	"ignores signals":         "(trap '' TERM HUP INT; exec sleep %d) >/dev/null 2>&1 &",
	"forked twice":            "(setsid bash -c 'sleep %d & disown' >/dev/null 2>&1 &) ; true",
	"empty environment":       "env -i /bin/sleep %d >/dev/null 2>&1 &",
	"forked twice and empty":  "(env -i setsid bash -c '/bin/sleep %d & disown' >/dev/null 2>&1 &) ; true",
	"stopped":                 "sleep %d >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do :; done; kill -STOP $!",
	"moved to another folder": "(cd / && exec setsid sleep %d) >/dev/null 2>&1 &",
}

// Ending a machine ends every process on it, whatever they did to get away.
func TestTerminateEndsEveryProcess(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	bystander := running(t, p, 2)
	sleeps := map[string]string{}
	for name, script := range escapes {
		sleeps[name] = seconds()
		sh(t, n, strings.ReplaceAll(script, "%d", sleeps[name]))
	}
	for name, arg := range sleeps {
		eventually(t, name+" is there", func() bool { return len(called(t, arg)) > 0 })
	}
	terminate(t, p, n)
	for name, arg := range sleeps {
		if pids := called(t, arg); len(pids) > 0 {
			t.Errorf("%s: %v run on", name, pids)
		}
	}
	ended(t, p, n.ID, cloud.Terminated)
	if got := find(t, p, bystander.ID).State; got != cloud.Running {
		t.Errorf("the other machine is %s", got)
	}
}

// A program that multiplies while it is ended does not get away.
func TestTerminateEndsWhatForks(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	sh(t, n, "for i in 1 2 3; do setsid bash -c 'while true; do (/bin/true; /bin/true) & wait -n; done' >/dev/null 2>&1 & done")
	terminate(t, p, n)
	ended(t, p, n.ID, cloud.Terminated)
}

// An ended machine does not need its init: also one that hangs is brought to its end.
func TestTerminateWithoutInit(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	sh(t, n, "setsid sleep 1000 >/dev/null 2>&1 &")
	if err := syscall.Kill(initOf(t, n), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	terminate(t, p, n)
	ended(t, p, n.ID, cloud.Terminated)
}

// initOf is the process of a machine's init.
func initOf(t *testing.T, n cloud.Node) int {
	t.Helper()
	pids := called(t, n.Address)
	if len(pids) != 1 {
		t.Fatalf("machine %s has the inits %v", n.ID, pids)
	}
	return pids[0]
}

// A machine whose init was killed has been taken, with what was left on it, and stays so.
func TestKilledInitIsAPreemption(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	arg := seconds()
	sh(t, n, "setsid bash -c 'sleep "+arg+" & wait' >/dev/null 2>&1 &")
	eventually(t, "a process is there", func() bool { return len(called(t, arg)) > 0 })
	if err := syscall.Kill(initOf(t, n), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := ended(t, p, n.ID, cloud.Preempted)
	if got.Reason != "its init process was killed" {
		t.Errorf("reason %q", got.Reason)
	}
	if pids := called(t, arg); len(pids) > 0 {
		t.Errorf("%v run on", pids)
	}
	terminate(t, p, n)
	if got := find(t, p, n.ID); got.State != cloud.Preempted {
		t.Errorf("it is %s after terminate, want the first word to stay", got.State)
	}
}

// So does the user's code go, which the agent has started with an environment of its own: were it left behind, it would run
// beside its own replacement, and for ever (G3, G4).
func TestG3_KilledInitTakesTheUsersCodeAlong(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	arg := seconds()
	c := machine.NewClient(dial(t, n), []string{"agent"})
	_, err := c.Start(t.Context(), p.AgentDir(job.Node{ID: n.ID, Address: n.Address}), agent.StartRequest{Token: "t", Run: "sleep " + arg + " & wait"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the code runs", func() bool { return len(called(t, arg)) > 0 })
	if err := syscall.Kill(initOf(t, n), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, p, n.ID, cloud.Preempted)
	if pids := called(t, arg); len(pids) > 0 {
		t.Errorf("%v run on", pids)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// A machine from before a restart of the computer was taken, even if its process id lives again.
func TestRestartIsAPreemption(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	pid := initOf(t, n)
	file := filepath.Join(n.Address, "init.json")
	before := `{"pid":` + strconv.Itoa(pid) + `,"ticks":1,"boot":"an-earlier-one"}`
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ended(t, p, n.ID, cloud.Preempted)
	if got.Reason != "the computer was restarted" {
		t.Errorf("reason %q", got.Reason)
	}
}

// A process id that was given to another process is not taken for the machine's, and that process is not touched.
func TestReusedProcessIDIsNotTheInit(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n, other := running(t, p, 1), running(t, p, 2)
	if err := syscall.Kill(initOf(t, n), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the init is gone", func() bool { return len(marked(t, n.ID)) == 0 })
	text, err := os.ReadFile(filepath.Join(n.Address, "init.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ",") // the start time stays that of the dead one
	reused := `{"pid":` + strconv.Itoa(initOf(t, other)) + `,` + rest
	if reused = strings.Replace(reused, `"ticks":`, `"ticks":1`, 1); !strings.Contains(reused, `"boot"`) {
		t.Fatalf("init.json is %s", text)
	}
	if err := os.WriteFile(filepath.Join(n.Address, "init.json"), []byte(reused), 0o600); err != nil {
		t.Fatal(err)
	}
	ended(t, p, n.ID, cloud.Preempted)
	if got := find(t, p, other.ID).State; got != cloud.Running {
		t.Errorf("the process that has the id now is %s", got)
	}
}

// A machine with notice runs until its deadline, tells of it in the notice file, and is taken without any provider.
func TestNoticeIsKeptByTheMachine(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	if err := p.Preempt(t.Context(), "a", n.ID, 300*time.Millisecond); err != nil {
		t.Fatalf("preempt: %v", err)
	}
	if got := find(t, p, n.ID); got.State != cloud.Stopping || got.Reason == "" {
		t.Errorf("it is %s, %q", got.State, got.Reason)
	}
	text, err := os.ReadFile(p.NoticeFile(job.Node{Address: n.Address}))
	if err != nil || !strings.Contains(string(text), `"deadline":`) {
		t.Errorf("notice %q, error %v", text, err)
	}
	eventually(t, "the machine has taken itself down", func() bool { return len(marked(t, n.ID)) == 0 })
	if got := ended(t, p, n.ID, cloud.Preempted); got.Reason != "taken after a notice of 300ms" {
		t.Errorf("reason %q", got.Reason)
	}
}

// A notice whose machine hangs is kept by whoever lists it.
func TestNoticeIsKeptForAHangingMachine(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	if err := syscall.Kill(initOf(t, n), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.Preempt(t.Context(), "a", n.ID, time.Millisecond); err != nil {
		t.Fatalf("preempt: %v", err)
	}
	ended(t, p, n.ID, cloud.Preempted)
}

// The dead man's switch: a command on the machine ends the machine.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	sh(t, n, "setsid sleep 1000 >/dev/null 2>&1 &")
	// Whether there is an answer is a race with the end that it brings about.
	err := dial(t, n).Run(t.Context(), p.PowerOff(job.Node{ID: n.ID, Address: n.Address}), nil, nil)
	t.Logf("power off answers %v", err)
	eventually(t, "the machine has ended itself", func() bool { return len(marked(t, n.ID)) == 0 })
	if got := ended(t, p, n.ID, cloud.Terminated); got.Reason != "it powered itself off" {
		t.Errorf("reason %q", got.Reason)
	}
}

// A machine does not outlive its directory.
func TestRemovedDirectoryEndsTheMachine(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	sh(t, n, "setsid sleep 1000 >/dev/null 2>&1 &")
	if err := os.RemoveAll(n.Address); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine has ended itself", func() bool { return len(marked(t, n.ID)) == 0 })
}

// Orphans of a machine do not stay as zombies.
func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	pid := strings.TrimSpace(sh(t, n, "(setsid bash -c 'echo $BASHPID; exec >&- 2>&-; exec true' &); true"))
	eventually(t, "the orphan is gone", func() bool {
		_, err := os.Stat("/proc/" + pid)
		return errors.Is(err, os.ErrNotExist)
	})
}

// An ended machine leaves nothing but the word that it ended, and that only for an hour.
func TestEndedMachineIsForgotten(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	sh(t, n, "echo data > file")
	terminate(t, p, n)
	left, err := filepath.Glob(filepath.Join(n.Address, "*"))
	if err != nil || len(left) != 3 {
		t.Errorf("the directory holds %q, error %v", left, err)
	}
	ago := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
	if err := os.WriteFile(filepath.Join(n.Address, "end.json"), []byte(`{"state":"terminated","reason":"r","at":"`+ago+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if nodes := list(t, p); len(nodes) != 0 {
		t.Errorf("it is still listed: %+v", nodes)
	}
	if _, err := os.Stat(n.Address); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
	if _, err := p.Create(t.Context(), request(1, 1, 1)); cloud.ClassOf(err) != job.Invalid {
		t.Errorf("its attempt can be made again: %v", err)
	}
}

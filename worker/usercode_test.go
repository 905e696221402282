package main

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pid is the number of a process that the user's code has left in a file.
func (f *fleet) pid(name string) int {
	f.t.Helper()
	f.eventually("a process number in "+name, func() bool { return f.exists(name) && len(f.read(name)) == 1 })
	n, err := strconv.Atoi(f.read(name)[0])
	if err != nil || n < 2 {
		f.t.Fatalf("%s holds %q", name, f.read(name))
	}
	return n
}

// dead waits until a process is gone.
func (f *fleet) dead(pid int) {
	f.t.Helper()
	f.eventually("process "+strconv.Itoa(pid)+" to be gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// Ensure that code which closes its output runs on, and that how it ends is known all the same.
func TestCodeClosesItsOutput(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	id := f.launch(`echo last words; exec </dev/null >&- 2>&-; touch "$SHARED/runs"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done; exit 7`)
	f.trace("runs")
	f.await(id, "RUNNING")
	f.eventually("its output to be read", func() bool { return f.enqueue("logs", id).out == "last words\n" })
	if a, text := f.show(id); a.Status != "RUNNING" {
		t.Errorf("it runs on, and is shown as %s", text)
	}
	f.leave("go")
	a := f.await(id, "FAILED")
	if task := a.Tasks[0]; task.Attempts != 1 || task.Cause.Code != "user_exit" || !strings.Contains(task.Cause.Text, "exit code 7") {
		t.Errorf("it ended as %+v", task)
	}
}

// Ensure that what has forked away, into a session of its own and deaf to TERM and HUP, neither keeps a job from its ending
// nor outlives it.
func TestCodeForksAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	id := f.launch(`(setsid bash -c 'trap "" TERM HUP; echo $$ > "$SHARED/pid.new"; mv "$SHARED/pid.new" "$SHARED/pid"; while :; do sleep 1; done' &)
		while [ ! -e "$SHARED/pid" ]; do sleep 0.05; done; echo parted`)
	pid := f.pid("pid")
	if a := f.await(id, "SUCCEEDED"); a.Tasks[0].Attempts != 1 {
		t.Errorf("it took %d attempts", a.Tasks[0].Attempts)
	}
	f.dead(pid)
	f.nothingRuns()
	if r := f.enqueue("logs", id); r.out != "parted\n" {
		t.Errorf("its log: %+v", r)
	}
}

// Ensure that a cancel ends code which ignores TERM, when its grace is over, and all that it has started; and that its log is
// kept.
func TestCodeIgnoresTerm(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	id := f.file(`
envs: {SHARED: null}
grace: 1s
run: |
  trap 'echo deaf' TERM
  bash -c 'trap "" TERM; while :; do sleep 1; done' &
  echo $! > "$SHARED/child"
  echo $$ > "$SHARED/pid"
  while :; do sleep 0.1; done
`)
	pid, child := f.pid("pid"), f.pid("child")
	f.await(id, "RUNNING")
	if r := f.enqueue("cancel", id); r.code != 0 {
		t.Fatalf("cancel: %+v", r)
	}
	f.await(id, "CANCELLED")
	f.dead(pid)
	f.dead(child)
	f.nothingRuns()
	if r := f.enqueue("logs", id); !strings.Contains(r.out, "deaf\n") {
		t.Errorf("it was not told to end, or its log is lost: %+v", r)
	}
}

// Ensure that the ending of code which was over before anybody looked is known: it kills the only worker first, so that none
// can have seen it run, and the next worker finds its exit code, on the same machine.
func TestCodeEndsBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.worker()
	id := f.launch(`kill -9 "$WORKER"; echo gone; touch "$SHARED/over"; exit 5`, "--env", "WORKER="+strconv.Itoa(w.cmd.Process.Pid))
	f.trace("over")
	<-w.gone
	f.worker()
	a := f.await(id, "FAILED")
	if task := a.Tasks[0]; task.Attempts != 1 || task.Recoveries != 0 || task.Cause.Code != "user_exit" || !strings.Contains(task.Cause.Text, "exit code 5") {
		t.Errorf("it ended as %+v", task)
	}
	if r := f.enqueue("logs", id); r.out != "gone\n" {
		t.Errorf("its log: %+v", r)
	}
}

package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

func exits(codes ...int) func(int, int) code {
	var all []job.Exit
	for _, c := range codes {
		all = append(all, job.Exit{Stage: "run", Code: c})
	}
	return ends(all...)
}

// ends is user code that ends so in its first incarnation, so in its second, and ever after as in the last one.
func ends(all ...job.Exit) func(int, int) code {
	n := 0
	return func(int, int) code {
		c := code{after: 10 * time.Second, exit: all[min(n, len(all)-1)]}
		n++
		return c
	}
}

// takenAt has the provider take the first n machines a while after the code began on them.
func takenAt(n int, after, notice time.Duration) func(*sim) {
	return func(s *sim) {
		s.onDo = func(do job.Do) {
			for _, v := range s.vms {
				if n > 0 && do.Kind == job.DoProbe && v.busy(s.now) && !v.taken && s.now >= v.code.started.Add(after) {
					s.take(v, notice)
					n--
				}
			}
		}
	}
}

// TestEndings has one row for each rule about what an ending of the user's code or of its machine leads to.
//
// skypilot #5031, #9958: an end that the machine could not explain, or a lack of memory, was blamed on the controller, and no
// restart was tried.
func TestEndings(t *testing.T) {
	t.Parallel()
	restarts := func(n int, codes ...int) job.Recovery {
		return job.Recovery{MaxRestartsOnErrors: n, RecoverOnExitCodes: codes}
	}
	never := job.Recovery{Strategy: job.Never, MaxRestartsOnErrors: 1}
	long := func(e job.Exit) func(int, int) code {
		n := 0
		return func(int, int) code {
			if n++; n == 1 {
				return code{after: time.Hour, exit: job.Exit{Stage: "run"}, noticed: &e}
			}
			return code{after: 10 * time.Second, exit: job.Exit{Stage: "run"}}
		}
	}
	for _, tt := range []struct {
		rule                 string
		plan                 func(int, int) code
		recovery             job.Recovery
		world                func(*sim)
		status               job.Status
		cause                job.Code
		recoveries, restarts int
		attempts             int
	}{
		{rule: "exit code 0 succeeds", plan: exits(0), status: job.Succeeded, cause: job.CodeSucceeded, attempts: 1},
		{rule: "exit code 1 fails", plan: exits(1), status: job.Failed, cause: job.CodeUserExit, attempts: 1},
		{rule: "exit code 2 fails", plan: exits(2), status: job.Failed, cause: job.CodeUserExit, attempts: 1},
		{rule: "exit code 126, not executable, fails", plan: exits(126), status: job.Failed, cause: job.CodeUserExit, attempts: 1},
		{rule: "exit code 127, not found, fails", plan: exits(127), status: job.Failed, cause: job.CodeUserExit, attempts: 1},
		{rule: "exit code 137 without a signal is an exit code", plan: exits(137), status: job.Failed, cause: job.CodeUserExit, attempts: 1},
		{rule: "killed on a healthy machine fails", plan: ends(job.Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}), status: job.Failed, cause: job.CodeUserSignal, attempts: 1},
		{rule: "terminated on a healthy machine fails", plan: ends(job.Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}), status: job.Failed, cause: job.CodeUserSignal, attempts: 1},
		{rule: "out of memory is the user's failure and says so", plan: ends(job.Exit{Stage: "run", Code: 137, Signal: "SIGKILL", Memory: true}), status: job.Failed, cause: job.CodeUserMemory, attempts: 1},
		{rule: "a failing setup is FAILED_SETUP", plan: ends(job.Exit{Stage: "setup", Code: 1}), status: job.FailedSetup, cause: job.CodeSetupExit, attempts: 1},
		{rule: "out of memory in setup is FAILED_SETUP", plan: ends(job.Exit{Stage: "setup", Code: 137, Signal: "SIGKILL", Memory: true}), status: job.FailedSetup, cause: job.CodeUserMemory, attempts: 1},
		{rule: "restarts are counted", plan: exits(1, 1, 0), recovery: restarts(2), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 2, restarts: 2, attempts: 3},
		{rule: "restarts are spent", plan: exits(1), recovery: restarts(2), status: job.Failed, cause: job.CodeUserExit, recoveries: 2, restarts: 2, attempts: 3},
		{rule: "a failing setup counts as well", plan: ends(job.Exit{Stage: "setup", Code: 1}, job.Exit{Stage: "run"}), recovery: restarts(1), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 1, restarts: 1, attempts: 2},
		{rule: "listed exit codes are recovered from without a count", plan: exits(7, 7, 7, 0), recovery: restarts(0, 7), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 3, attempts: 4},
		{rule: "other exit codes are counted beside them", plan: exits(7, 8, 7, 8), recovery: restarts(1, 7), status: job.Failed, cause: job.CodeUserExit, recoveries: 3, restarts: 1, attempts: 4},
		{rule: "an unknown ending is recovered from, not counted", plan: lostFirst(), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 1, attempts: 2},
		{rule: "a lost machine is recovered from, not counted", plan: long(job.Exit{}), world: takenAt(1, time.Minute, 0), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 1, attempts: 2},
		{rule: "NEVER: a lost machine ends the task", plan: long(job.Exit{}), recovery: never, world: takenAt(1, time.Minute, 0), status: job.FailedNoResource, cause: job.CodeNeverRecover, attempts: 1},
		{rule: "NEVER: the user's failures may be restarted", plan: exits(1, 0), recovery: never, status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 1, restarts: 1, attempts: 2},
		{rule: "NEVER: exit code 0 under notice succeeds", plan: long(job.Exit{Stage: "run"}), recovery: never, world: takenAt(1, time.Minute, time.Minute), status: job.Succeeded, cause: job.CodeSucceeded, attempts: 1},
		{rule: "NEVER: a failing exit under notice is a loss", plan: long(job.Exit{Stage: "run", Code: 143}), recovery: never, world: takenAt(1, time.Minute, time.Minute), status: job.FailedNoResource, cause: job.CodeNeverRecover, attempts: 1},
		{rule: "a failing exit under notice is a loss, not the user's failure", plan: long(job.Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}), world: takenAt(1, time.Minute, time.Minute), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 1, attempts: 2},
		{rule: "exit code 0 under notice succeeds", plan: long(job.Exit{Stage: "run"}), world: takenAt(1, time.Minute, 2*time.Minute), status: job.Succeeded, cause: job.CodeSucceeded, attempts: 2},
		{rule: "lost machines have no end", plan: func(_, n int) code { return code{after: 10 * time.Minute, exit: job.Exit{Stage: "run"}} }, world: takenAt(12, time.Minute, 0), status: job.Succeeded, cause: job.CodeSucceeded, recoveries: 12, attempts: 13},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, chances{})
			w.plan = tt.plan
			s := newSim(t, w, job.TaskHead{Recovery: tt.recovery})
			if tt.world != nil {
				tt.world(s)
			}
			s.finish(12 * time.Hour)
			task := s.rec.Tasks[0]
			if task.Status != tt.status || task.Cause.Code != tt.cause {
				t.Errorf("%s with cause %+v, want %s with %s", task.Status, task.Cause, tt.status, tt.cause)
			}
			if task.Recoveries != tt.recoveries || task.Restarts != tt.restarts || task.Attempts != tt.attempts {
				t.Errorf("%d recoveries, %d restarts, %d attempts, want %d, %d, %d",
					task.Recoveries, task.Restarts, task.Attempts, tt.recoveries, tt.restarts, tt.attempts)
			}
		})
	}
}

func lostFirst() func(int, int) code {
	n := 0
	return func(int, int) code {
		n++
		return code{after: 10 * time.Second, exit: job.Exit{Stage: "run"}, lost: n == 1}
	}
}

// TestExitBeforeTheMachineGoes ensures that code which is killed a moment before the provider takes its machine, or
// while that shuts down and still answers, is recovered and not blamed, also when the provider's view is old.
//
// skypilot #1579, #1610: a preemption that killed the code first was taken for the failure of the user.
func TestExitBeforeTheMachineGoes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		shutdown := time.Duration(0)
		if seed%2 == 1 {
			shutdown = time.Minute
		}
		w := newWorld(seed, chances{})
		w.settle = 20 * time.Second
		n := 0
		w.plan = func(int, int) code {
			if n++; n == 1 {
				return code{after: 30 * time.Second, exit: job.Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}, byTaking: true}
			}
			return code{after: time.Second, exit: job.Exit{Stage: "run"}}
		}
		s := newSim(t, w)
		s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
		v := s.vms[0]
		s.rec.Follow = s.now.Add(time.Hour) // looks are quick, so the exit is seen at once
		v.taken, v.leaving = true, v.code.ends.Add(2*time.Second)
		v.ends = v.leaving.Add(2*time.Second + shutdown)
		v.gone = v.ends.Add(time.Minute)
		s.finish(time.Hour)
		if task := s.rec.Tasks[0]; task.Status != job.Succeeded || task.Recoveries != 1 {
			t.Fatalf("seed %d: %s after %d recoveries: %+v", seed, task.Status, task.Recoveries, task.Cause)
		}
	}
}

// TestG8_CrashLoopBacksOff ensures that code which fails at once, with an exit code that is recovered from without a
// count, gets machines ever more rarely, and that a long run makes it wait for nothing again.
func TestG8_CrashLoopBacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	after := time.Second
	w.plan = func(int, int) code { return code{after: after, exit: job.Exit{Stage: "run", Code: 7}} }
	s := newSim(t, w, job.TaskHead{Recovery: job.Recovery{RecoverOnExitCodes: []int{7}}})
	end := s.now.Add(24 * time.Hour)
	for s.now < end {
		s.now = max(s.now, s.due)
		s.drive()
	}
	if s.started[0] < 200 || s.started[0] > 400 {
		t.Errorf("%d machines in a day", s.started[0])
	}
	s.until(time.Hour, "waiting without a slot", func() bool { return s.rec.Wait.For.Code == job.CodeBackoff && !s.rec.HoldsSlot() })
	after = time.Hour
	s.until(10*time.Hour, "free of crashes", func() bool { return s.rec.Tasks[0].Crashes == 0 })
}

// TestNothingToRun ensures that a task without a run section succeeds without a machine.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	s := newSim(t, newWorld(1, chances{}), job.TaskHead{Idle: true})
	s.finish(time.Minute)
	if task := s.rec.Tasks[0]; task.Status != job.Succeeded || task.Cause.Code != job.CodeNothingToRun || len(s.vms) != 0 {
		t.Errorf("%s, cause %+v, %d machines", task.Status, task.Cause, len(s.vms))
	}
}

// TestRunTime ensures that provisioning and recovery are not run time.
func TestRunTime(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{Capacity: 50})
	w.plan = func(int, int) code { return code{after: 10 * time.Minute, exit: job.Exit{Stage: "run"}} }
	s := newSim(t, w)
	takenAt(1, 4*time.Minute, 0)(s)
	s.finish(5 * time.Hour)
	got := s.rec.Tasks[0].RunTime(s.now.Add(time.Hour))
	if got < 14*time.Minute || got > 15*time.Minute {
		t.Errorf("run time %s, want the 4 minutes before the loss and the 10 after it", got)
	}
}

// TestChain ensures that the next task begins when the one before has left nothing, and that what comes after a task
// that did not succeed is cancelled and held nothing.
func TestChain(t *testing.T) {
	t.Parallel()
	w := newWorld(3, chances{})
	w.plan = func(task, _ int) code {
		return code{after: time.Minute, exit: job.Exit{Stage: "run", Code: task}} // the second fails
	}
	s := newSim(t, w, make([]job.TaskHead, 4)...)
	s.onCommit = func(before, after *job.Record) {
		if after.Cur == before.Cur {
			return
		}
		for _, v := range s.vms {
			if s.now < v.ends {
				s.fail("task %d begins while %s is there", after.Cur, v.id)
			}
		}
	}
	s.finish(time.Hour)
	want := []job.Status{job.Succeeded, job.Failed, job.Cancelled, job.Cancelled}
	for i, task := range s.rec.Tasks {
		if task.Status != want[i] {
			t.Errorf("task %d is %s, want %s", i, task.Status, want[i])
		}
		if i >= 2 && (task.Cause.Code != job.CodeChainStopped || task.Attempts != 0) {
			t.Errorf("task %d: %+v, %d attempts", i, task.Cause, task.Attempts)
		}
	}
	if s.rec.Status() != job.Failed {
		t.Errorf("the job is %s", s.rec.Status())
	}
}

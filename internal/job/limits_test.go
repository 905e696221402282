package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// slack is what the simulated acts and looks of a driver may take beside a limit.
const slack = 15 * time.Second

// TestMaxDuration ensures that code is stopped when it has run for its max_duration in all attempts together, with TERM
// and its grace as after a cancel, and that its task is FAILED with a cause of its own.
//
// skypilot #10370: there was no limit, so that a job that hangs costs for ever.
func TestMaxDuration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		prep func(*sim)
	}{
		{"in one attempt", func(*sim) {}},
		{"in several", func(s *sim) { takenAt(2, 2*time.Minute, 0)(s) }},
		{"beside a machine of which notice was given", func(s *sim) { takenAt(1, 9*time.Minute, 10*time.Minute)(s) }},
		{"on a machine that does not answer", func(s *sim) { s.vms[0].silent = s.now.Add(time.Hour) }},
		{"deaf to TERM", func(s *sim) { s.vms[0].code.deaf = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, job.TaskHead{MaxDuration: 10 * time.Minute})
			s.rules.ProbeTime = time.Hour // else the silent one is lost first
			tt.prep(s)
			s.finish(2 * time.Hour)
			got := s.rec.Tasks[0]
			if got.Status != job.Failed || got.Cause.Code != job.CodeMaxDuration || !strings.Contains(got.Cause.Text, "max_duration of 10m0s") {
				t.Errorf("%s: %+v", got.Status, got.Cause)
			}
			if ran := got.RunTime(s.now); ran < 10*time.Minute || ran > 10*time.Minute+slack {
				t.Errorf("the record counts %s", ran)
			}
			really := time.Duration(0)
			for _, v := range s.vms {
				if v.code != nil {
					really += min(v.code.ends, v.ends).Sub(v.code.started)
				}
			}
			if really > 10*time.Minute+s.rules.StopGrace+2*slack {
				t.Errorf("the code ran for %s", really)
			}
		})
	}
}

// TestG5_ExitBeforeTheLimit ensures that an exit which is seen at the moment of the limit is the ending.
func TestG5_ExitBeforeTheLimit(t *testing.T) {
	t.Parallel()
	for exit, want := range map[int]job.Code{0: job.CodeSucceeded, 3: job.CodeUserExit} {
		s := running(t, job.TaskHead{MaxDuration: 10 * time.Minute})
		s.vms[0].code.ends, s.vms[0].code.exit.Code = s.rec.Deadline(), exit
		s.now = s.rec.Deadline() // nobody looked until then
		s.finish(time.Hour)
		if got := s.rec.Tasks[0]; got.Cause.Code != want {
			t.Errorf("exit code %d: %s, %+v", exit, got.Status, got.Cause)
		}
	}
}

// TestMaxDurationLeavesNoRecovery ensures that a task whose machine is lost when its time is up is not given another one.
func TestMaxDurationLeavesNoRecovery(t *testing.T) {
	t.Parallel()
	s := running(t, job.TaskHead{MaxDuration: 10 * time.Minute})
	s.now = s.rec.Deadline()
	s.take(s.vms[0], 0)
	s.finish(time.Hour)
	if got := s.rec.Tasks[0]; got.Status != job.Failed || got.Cause.Code != job.CodeMaxDuration || got.Attempts != 1 {
		t.Errorf("%s after %d attempts: %+v", got.Status, got.Attempts, got.Cause)
	}
}

// TestMaxWait ensures that a task which no machine ran within its max_wait ends as FAILED_NO_RESOURCE at that time, whatever
// it waits for, and that the cause tells what was tried.
func TestMaxWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		chances  chances
		evidence string
		attempts int
	}{
		{"for a launch slot", chances{NoSlot: 100}, "waits for a launch slot", 0},
		{"for the next round of offers", chances{Capacity: 100}, "none left", 12},
		{"for a provider that is away", chances{Refused: 100}, "slow down", 1},
		{"for code to start", chances{StartLost: 100}, "does not answer yet", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, newWorld(1, tt.chances), job.TaskHead{MaxWait: 5 * time.Minute}, job.TaskHead{})
			if tt.chances.StartLost > 0 {
				s.rules.BootTimeout = time.Hour
			}
			from := s.now
			s.until(time.Hour, "ended", func() bool { return s.rec.Tasks[0].Status.Terminal() })
			if waited := s.now.Sub(from); waited < 5*time.Minute || waited > 5*time.Minute+slack {
				t.Errorf("ended after %s", waited)
			}
			got := s.rec.Tasks[0]
			if got.Status != job.FailedNoResource || got.Cause.Code != job.CodeMaxWait || !strings.Contains(got.Cause.Evidence, tt.evidence) {
				t.Errorf("%s: %+v", got.Status, got.Cause)
			}
			if got.Attempts < min(tt.attempts, 1) || got.Attempts > max(tt.attempts, 0) {
				t.Errorf("%d attempts", got.Attempts)
			}
			s.quietly()
			s.finish(time.Hour)
			if s.rec.Tasks[1].Status != job.Cancelled {
				t.Errorf("the next task is %s", s.rec.Tasks[1].Status)
			}
		})
	}
}

// TestMaxWaitIsForOneGo ensures that the wait is counted from the loss of a machine, not from the submission, for a task
// of a chain from when its turn came, and for a resumed job anew.
func TestMaxWaitIsForOneGo(t *testing.T) {
	t.Parallel()
	s := running(t, job.TaskHead{MaxWait: 5 * time.Minute}, job.TaskHead{MaxWait: 5 * time.Minute})
	s.now = s.now.Add(time.Hour)
	s.take(s.vms[0], 0)
	s.until(time.Minute, "recovering", func() bool { return s.rec.Status() == job.Recovering })
	lost := s.now
	if left := s.rec.Deadline().Sub(lost); left < 4*time.Minute || left > 5*time.Minute {
		t.Errorf("%s are left after the loss", left)
	}
	s.until(time.Hour, "running again", func() bool { return s.rec.Status() == job.Running })
	if !s.rec.Deadline().IsZero() {
		t.Error("a limit is in force while the code runs")
	}
	s.now = s.now.Add(time.Hour)
	s.vms[1].code.ends = s.now
	s.chances = chances{Capacity: 100}
	s.until(time.Hour, "at the second task", func() bool { return s.rec.Cur == 1 })
	if left := s.rec.Deadline().Sub(s.now); left < 4*time.Minute || left > 5*time.Minute {
		t.Errorf("%s are left when its turn has come", left)
	}
	s.finish(time.Hour)
	s.now = s.now.Add(time.Hour)
	s.resume()
	if left := s.rec.Deadline().Sub(s.now); left != 5*time.Minute {
		t.Errorf("%s are left after it was resumed", left)
	}
}

// TestMaxDurationIsWholeAfterResume ensures that a job that reached its limit and was resumed may run for as long again.
func TestMaxDurationIsWholeAfterResume(t *testing.T) {
	t.Parallel()
	s := running(t, job.TaskHead{MaxDuration: 10 * time.Minute})
	s.finish(time.Hour)
	s.resume()
	s.until(time.Hour, "running again", func() bool { return s.rec.Status() == job.Running })
	if left := s.rec.Deadline().Sub(s.now); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("%s are left", left)
	}
}

// TestFaultsDoNotOutlastALimit ensures that the wait after a fault of ours, which may be half an hour, ends at the limit.
func TestFaultsDoNotOutlastALimit(t *testing.T) {
	t.Parallel()
	s := running(t, job.TaskHead{MaxDuration: 10 * time.Second})
	if next := job.Faulted(s.rec, "a panic", s.rules, s.now); next.Due != s.rec.Deadline() {
		t.Errorf("due %s after the limit", next.Due.Sub(s.rec.Deadline()))
	}
}

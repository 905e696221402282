package job_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestFaultedBudget ensures that our own errors give a job ten tries, after waits that double from a minute to half
// an hour, half more or less, and then end it, saying so and closing its machines.
func TestFaultedBudget(t *testing.T) {
	t.Parallel()
	s := running(t, job.TaskHead{}, job.TaskHead{})
	began := s.now
	for n := range 10 {
		next := job.Faulted(s.rec, "a panic", s.rules, s.now)
		s.commit(next)
		nominal := min(time.Minute<<n, 30*time.Minute)
		if wait := next.Due.Sub(s.now); wait < nominal/2 || wait > nominal*3/2 || next.Due != next.Wait.Until {
			t.Errorf("fault %d: due in %s, waits until %d, want about %s", n+1, wait, next.Wait.Until, nominal)
		}
		if next.Status() != job.Running || next.Fault.N != n+1 || next.Step != job.StepWatch {
			t.Fatalf("fault %d: %s at %s, %d counted", n+1, next.Status(), next.Step, next.Fault.N)
		}
		s.now = next.Due
	}
	if took := s.now.Sub(began); took < 90*time.Minute || took > 5*time.Hour {
		t.Errorf("the budget lasted %s", took)
	}
	next := job.Faulted(s.rec, "a panic", s.rules, s.now)
	s.commit(next)
	if next.Due > s.now {
		t.Errorf("the clean-up waits for %s", next.Due.Sub(s.now))
	}
	s.due = s.now
	s.finish(time.Hour)
	task := s.rec.Tasks[0]
	if task.Status != job.FailedController || task.Cause.Code != job.CodeController || !strings.Contains(task.Cause.Evidence, "a panic") {
		t.Errorf("%s: %+v", task.Status, task.Cause)
	}
	if s.rec.Tasks[1].Status != job.Cancelled {
		t.Errorf("the next task is %s", s.rec.Tasks[1].Status)
	}
}

// TestFaultedForgets ensures that six hours without a fault make the budget whole, and a single success does not.
func TestFaultedForgets(t *testing.T) {
	t.Parallel()
	s := running(t)
	for range 50 {
		s.commit(job.Faulted(s.rec, "a panic", s.rules, s.now))
		s.now = s.now.Add(6*time.Hour + time.Minute)
	}
	if s.rec.Fault.N != 1 || s.rec.Status() != job.Running {
		t.Errorf("%d faults are counted, %s", s.rec.Fault.N, s.rec.Status())
	}
}

// TestFaultedInCleanup ensures that the clean-up is never given up: a cancelled job's machines are tried on.
func TestFaultedInCleanup(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.cancel()
	next, _ := job.Decide(s.rec, job.Seen{}, s.rules, s.now)
	s.commit(next)
	for range 30 {
		next := job.Faulted(s.rec, "a panic", s.rules, s.now)
		s.commit(next)
		if wait := next.Due.Sub(s.now); next.Step != job.StepCleanup || next.Status() != job.Cancelling || wait <= 0 || wait > 45*time.Minute {
			t.Fatalf("%s at %s, due in %s", next.Status(), next.Step, wait)
		}
		s.now = next.Due
	}
	s.due = s.now
	s.finish(time.Hour)
	if s.rec.Status() != job.Cancelled {
		t.Errorf("the job is %s", s.rec.Status())
	}
}

// TestG7_CancelEndsAFaultsWait ensures that a cancel does not wait for the half hour after a fault of ours, nor for any other
// wait before a launch, and that a job which never had a machine is cancelled at once.
func TestG7_CancelEndsAFaultsWait(t *testing.T) {
	t.Parallel()
	fresh := newSim(t, newWorld(1, chances{}))
	for name, s := range map[string]*sim{"running": running(t), "pending": fresh} {
		for range 8 {
			s.commit(job.Faulted(s.rec, "a panic", s.rules, s.now))
		}
		before := s.rec.Status()
		asked := s.now
		s.cancel()
		s.finish(time.Hour)
		if took := s.now.Sub(asked); s.rec.Status() != job.Cancelled || took > 5*time.Minute {
			t.Errorf("%s: %s, then %s after %s", name, before, s.rec.Status(), took)
		}
	}
}

// TestFaultsAreNoRecoveries ensures that faults of ours leave the status, the recoveries and the run time of a job that
// runs as they are, and that one which waits to be launched stays PENDING.
func TestFaultsAreNoRecoveries(t *testing.T) {
	t.Parallel()
	s := running(t)
	was := s.rec.Tasks[0]
	for range 5 {
		s.commit(job.Faulted(s.rec, "a panic", s.rules, s.now))
		s.now = s.rec.Due
	}
	if now := s.rec.Tasks[0]; now.Status != job.Running || now.Recoveries != was.Recoveries || now.RunMS != was.RunMS || now.Attempts != was.Attempts {
		t.Errorf("before %+v, after %+v", was, now)
	}
	pending := job.NewRecord(job.Head{ID: 1, Tasks: make([]job.TaskHead, 1)})
	if next := job.Faulted(pending, "a panic", job.DefaultRules, 1000); next.Status() != job.Pending || next.Wait.For.Code != job.CodeController {
		t.Errorf("a job that waits became %s, for %+v", next.Status(), next.Wait.For)
	}
}

// TestFaultedTextIsCut ensures that a long error does not end up in every look at the record.
func TestFaultedTextIsCut(t *testing.T) {
	t.Parallel()
	rec := job.NewRecord(job.Head{ID: 1, Tasks: make([]job.TaskHead, 1)})
	next := job.Faulted(rec, strings.Repeat("é", 10_000), job.DefaultRules, 1000)
	if b, err := json.Marshal(next.Clone()); err != nil || len(b) > 2<<10 || strings.Contains(string(b), `\ufffd`) {
		t.Errorf("%d bytes, %v: %s", len(b), err, b[:100])
	}
}

// TestUnknownStep ensures that a record which a newer version has written is left alone, with its machines.
func TestUnknownStep(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.rec.Step = "dream"
	next, do := job.Decide(s.rec, job.Seen{}, s.rules, s.now)
	if do.Kind != job.DoWait || do.Until <= s.now || next.Fault.N != 1 || next.Step != "dream" {
		t.Errorf("told to %s at %s, %d faults", do.Kind, next.Step, next.Fault.N)
	}
	if diff := cmp.Diff(s.rec.Live, next.Live); diff != "" {
		t.Errorf("machines (-before +after):\n%s", diff)
	}
}

// BenchmarkDecideQuiet is what one look at a job that only runs costs besides its input and output.
func BenchmarkDecideQuiet(b *testing.B) {
	s := running(b)
	p := &job.Probe{Attempt: 1, At: s.now, State: job.RunAlive}
	b.ReportAllocs()
	for b.Loop() {
		job.Decide(s.rec, job.Seen{Probe: p}, s.rules, s.now)
	}
}

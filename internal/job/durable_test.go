package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG3_LostEndings ensures that a store which loses its last second after an ending was decided, whatever was done about it
// by then, is told the same ending again by the machine: the code never runs a second time, and a failure is no loss of the
// machine.
func TestG3_LostEndings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		plan   func() func(int, int) code
		policy job.Recovery
		status job.Status
		runs   int
	}{
		{"success", always(0), job.Recovery{}, job.Succeeded, 1},
		{"failure", always(1), job.Recovery{}, job.Failed, 1},
		{"failing setup", func() func(int, int) code { return ends(job.Exit{Stage: "setup", Code: 1}) }, job.Recovery{}, job.FailedSetup, 1},
		{"a counted restart", always(1), job.Recovery{MaxRestartsOnErrors: 1}, job.Failed, 2},
	} {
		for _, kind := range []job.DoKind{job.DoSave, job.DoTerminate} {
			for nth := range tt.runs {
				t.Run(fmt.Sprintf("%s, after %s %d", tt.name, kind, nth+1), func(t *testing.T) {
					t.Parallel()
					for seed := range uint64(30) {
						w := newWorld(seed, chances{})
						w.plan, w.settle = tt.plan(), 0
						s := newSim(t, w, job.TaskHead{Recovery: tt.policy})
						s.losesSecondAfter(kind, nth+1)
						s.finish(time.Hour)
						if task := s.rec.Tasks[0]; task.Status != tt.status || s.started[0] != tt.runs || task.Attempts != tt.runs {
							t.Errorf("seed %d: %s after %d runs in %d attempts, want %s after %d:\n%+v", seed, task.Status, s.started[0], task.Attempts, tt.status, tt.runs, task)
						}
					}
				})
			}
		}
	}
}

func always(exit int) func() func(int, int) code {
	return func() func(int, int) code { return exits(exit) }
}

// losesSecondAfter lets the driver die when it has done something for the nth time, and the store lose its last second. Machines
// that are told to end have ended by then: nothing is left to ask.
func (s *sim) losesSecondAfter(kind job.DoKind, nth int) {
	s.forget = 100
	done := 0
	s.dieAfter = func(do job.Do) bool {
		if do.Kind != kind {
			return false
		}
		for _, v := range s.vms {
			if s.now >= v.leaving {
				v.ends = s.now
			}
		}
		done++
		return done == nth
	}
}

// TestG7_ALostCancelEndsNothing ensures that a cancel which the store has lost has not ended the code: the job runs on, and
// its user sees that it does.
func TestG7_ALostCancelEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(7, chances{})
	w.settle = 0
	w.plan = func(int, int) code { return code{after: time.Hour, exit: job.Exit{Stage: "run"}} }
	s := newSim(t, w)
	s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
	before := s.rec.Clone()
	s.cancel()
	decided := s.now
	s.onDo = func(do job.Do) {
		if do.Kind != job.DoSurvey && do.Kind != job.DoProbe && s.now.Sub(decided) <= time.Second {
			t.Errorf("%s was done %s after the cancel", do.Kind, s.now.Sub(decided))
		}
	}
	s.drive() // it is cancelling now
	if s.rec.Status() != job.Cancelling {
		t.Fatalf("it is %s", s.rec.Status())
	}
	s.rec, s.due, s.onDo = before, s.now.Add(15*time.Second), nil // that is lost
	s.finish(2 * time.Hour)
	if s.rec.Status() != job.Succeeded || s.started[0] != 1 {
		t.Errorf("%s after %d runs, want SUCCEEDED after one", s.rec.Status(), s.started[0])
	}
}

// TestG3_DurableCountsFromTheCommit ensures that a machine whose code has ended is kept until the record of that is old enough, not
// the decision. The schedule: an ending is decided; the driver stands still for five seconds, then commits; the next driver
// comes a moment later. Were the machine ended now, a Redis that loses its last second would run the code again.
func TestG3_DurableCountsFromTheCommit(t *testing.T) {
	t.Parallel()
	const decided = job.Time(1_700_000_000_000)
	rules := job.DefaultRules
	for _, tt := range []struct {
		late time.Duration
		kept time.Duration // after the commit, at least
	}{
		{0, rules.Durable},
		{50 * time.Millisecond, rules.Durable * 3 / 4},
		{5 * time.Second, rules.Durable * 3 / 4},
	} {
		rec := launching(job.PhaseStarted, decided)
		rec.Live[0].Phase, rec.Live[0].ClosingAt, rec.Live[0].Saved = job.PhaseClosing, decided, true
		rec.Live[0].StartedAt, rec.Live[0].Exit = decided.Add(-time.Hour), &job.Exit{Stage: "run"}
		rec.Step, rec.Tasks[0].Status = job.StepCleanup, job.Succeeded
		rec.Shut = decided.Add(tt.late)
		now := rec.Shut.Add(time.Millisecond)
		for do := (job.Do{}); do.Kind != job.DoTerminate; {
			var next job.Record
			if next, do = job.Decide(rec, job.Seen{}, rules, now); do.Kind == job.DoWait {
				now = do.Until
			}
			rec = next.Clone()
		}
		if kept := now.Sub(rec.Shut); kept < tt.kept || kept > tt.kept+rules.Durable {
			t.Errorf("committed %s late, its machine is kept for %s, want %s", tt.late, kept, tt.kept)
		}
	}
}

package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG3_NoticeMakesAReplacementReadyAndStartsItLater ensures that a replacement is made while the code still runs on
// the machine that will be taken, and that the code starts on it only when that machine is gone.
func TestG3_NoticeMakesAReplacementReadyAndStartsItLater(t *testing.T) {
	t.Parallel()
	s := running(t)
	old := s.vms[0]
	s.take(old, 2*time.Minute)
	ready := false
	s.onCommit = func(_, after *job.Record) {
		if len(after.Live) == 2 && after.Live[1].Phase == job.PhaseReady && s.now < old.ends {
			ready = true
			if after.HoldsSlot() {
				s.fail("G9: a launch slot is held while the replacement only waits")
			}
		}
	}
	s.until(time.Hour, "running again", func() bool { return s.started[0] == 2 && s.rec.Status() == job.Running })
	if !ready {
		t.Error("the replacement was not ready before the old machine was taken")
	}
	if late := s.now.Sub(old.ends); late > time.Minute {
		t.Errorf("running again %s after the old machine was taken", late)
	}
	if n := s.rec.Tasks[0].Recoveries; n != 1 || s.rec.Status() != job.Running {
		t.Errorf("%d recoveries, %s", n, s.rec.Status())
	}
	for _, e := range s.events { // of the two attempts, the history names the one that was lost (G13)
		if e.To == string(job.Recovering) && e.Attempt != 1 {
			t.Errorf("attempt %d is said to be lost", e.Attempt)
		}
	}
}

// TestG3_ReplacementLostWhileTheOldCodeRuns ensures that the code on the leaving machine is looked after also while
// a lost replacement is being closed: its success counts.
func TestG3_ReplacementLostWhileTheOldCodeRuns(t *testing.T) {
	t.Parallel()
	s := running(t)
	old := s.vms[0]
	s.take(old, 5*time.Minute)
	ending := false
	s.onCommit = func(_, after *job.Record) {
		switch {
		case len(after.Live) == 2 && after.Live[1].Phase == job.PhaseBooting:
			s.take(s.vms[1], 0)
		case after.Step == job.StepRecover && !ending:
			ending = true
			s.outage = s.now.Add(time.Hour) // the lost replacement cannot be closed for a while
			old.code.ends, old.code.exit = s.now.Add(10*time.Second), job.Exit{Stage: "run"}
		}
	}
	s.until(2*time.Minute, "succeeded", func() bool { return s.rec.Status() == job.Succeeded })
	if !ending || len(s.rec.Live) != 2 {
		t.Errorf("succeeded beside %d live attempts", len(s.rec.Live))
	}
	s.finish(2 * time.Hour)
}

// TestG3_LostAnswersAreClosedFirst ensures that after a create whose answer was lost no other offer is tried before
// what may have been made is gone.
//
// skypilot #4431, #4443: a machine appeared after the list had said that there was none.
func TestG3_LostAnswersAreClosedFirst(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(seed, chances{Lost: 80, Capacity: 30, Refused: 40})
		s := newSim(t, w)
		s.crash = 10
		s.onCommit = func(before, after *job.Record) {
			if after.Tasks[0].Attempts == before.Tasks[0].Attempts {
				return
			}
			for _, v := range s.vms {
				if s.now < v.ends {
					s.fail("attempt %d is begun while %s of attempt %d is there", after.Tasks[0].Attempts, v.id, v.attempt)
				}
			}
		}
		s.finish(12 * time.Hour)
	}
}

// TestG3_ForgottenMachines ensures that a store which lost its last second does not double what it forgot: machines
// of this task with a higher number, or with the same one in another place, are closed before any is made.
func TestG3_ForgottenMachines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		attempt  int
		offer    int
		attempts int // highest number in the end
		machines int
	}{
		{"a higher number in the same place", 5, 0, 6, 2},
		{"a higher number in another place", 5, 3, 6, 2},
		{"the same number in another place", 1, 3, 2, 2},
		{"the same number in the same place is adopted", 1, 0, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, chances{})
			s := newSim(t, w)
			w.create(&job.Attempt{Number: tt.attempt, Offer: w.offers[tt.offer], Token: job.Token("test", simID, "", 0, tt.attempt)}, false)
			forgotten := s.vms[0]
			forgotten.code = &code{ends: s.now.Add(3 * time.Second), exit: job.Exit{Stage: "run"}}
			if tt.machines > 1 {
				forgotten.code.ends = never
			}
			s.now = s.now.Add(10 * time.Second)
			s.finish(time.Hour)
			if got := s.rec.Tasks[0].Attempts; got != tt.attempts || len(s.vms) != tt.machines {
				t.Errorf("%d attempts, %d machines, want %d and %d", got, len(s.vms), tt.attempts, tt.machines)
			}
			if s.rec.Status() != job.Succeeded {
				t.Errorf("the job is %s", s.rec.Status())
			}
		})
	}
}

// TestG3_CreateIsCountedBeforeItsCall ensures that a driver which dies in a create leaves word of it: a refusal that the
// next driver gets does not settle the attempt then, since the first call may have made a machine.
func TestG3_CreateIsCountedBeforeItsCall(t *testing.T) {
	t.Parallel()
	const now = job.Time(1_000_000)
	rec := launching(job.PhaseIntent, now)
	yes := true
	seen := job.Seen{Slot: &yes, Survey: &job.Survey{At: now}}
	for drivers := 1; drivers <= 2; drivers++ {
		next, do := job.Decide(rec, seen, job.DefaultRules, now)
		if do.Kind != job.DoCreate || next.Live[0].Tries != drivers {
			t.Fatalf("driver %d: told to %s after %d calls", drivers, do.Kind, next.Live[0].Tries)
		}
		rec = next
	}
	seen.Create = &job.Created{Attempt: 1, Fault: &job.Fault{Class: job.Capacity, Text: "none left"}}
	next, _ := job.Decide(rec, seen, job.DefaultRules, now)
	if a := next.Attempt(1); a == nil || a.Phase != job.PhaseClosing {
		t.Errorf("the attempt is not closed: %+v", a)
	}
}

package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG9_CallsWaitForTheirTurnWithoutASlot ensures that a job whose calls have to wait for their turn says so, holds no
// launch slot meanwhile before anything was made, and gets on all the same.
func TestG9_CallsWaitForTheirTurnWithoutASlot(t *testing.T) {
	t.Parallel()
	s := newSim(t, newWorld(1, chances{Limited: 80, NoSlot: 30}))
	waits := 0
	s.onCommit = func(_, after *job.Record) {
		if after.Wait.For.Code != job.CodeRateLimit || after.Wait.Until <= s.now {
			return
		}
		waits++
		made := len(after.Live) > 0 && (after.Live[0].Phase != job.PhaseIntent || after.Live[0].Tries > 0)
		if after.HoldsSlot() && !made {
			s.fail("it holds a slot while it waits for its turn")
		}
	}
	s.finish(24 * time.Hour)
	if s.rec.Status() != job.Succeeded || waits < 5 {
		t.Errorf("%s after %d waits", s.rec.Status(), waits)
	}
	if n := s.rec.Tasks[0].Attempts; n != 1 {
		t.Errorf("%d attempts: a call that was not made was taken for one that failed", n)
	}
}

// TestG8_WaitingForATurnCountsAsNoFailure ensures that a call which was not made counts against nothing, and that it does
// not begin the back-off of those that did fail anew.
func TestG8_WaitingForATurnCountsAsNoFailure(t *testing.T) {
	t.Parallel()
	now := job.Time(1_700_000_000_000)
	yes, later := true, &job.Fault{Class: job.Throttled, Text: "not called yet", Wait: 7 * time.Second}
	wait := func(t *testing.T, rec job.Record, seen job.Seen) job.Record {
		t.Helper()
		next, do := job.Decide(rec, seen, job.DefaultRules, now)
		if do.Kind != job.DoWait || do.Until != now.Add(later.Wait) || next.Wait.For.Code != job.CodeRateLimit {
			t.Errorf("%s until %d for %+v", do.Kind, do.Until, next.Wait)
		}
		return next
	}
	clean := &job.Survey{At: now}
	t.Run("create", func(t *testing.T) {
		t.Parallel()
		rec := launching(job.PhaseIntent, now)
		rec.Live[0].Tries, rec.Wait = 3, job.Waiting{For: job.Cause{Code: job.CodeProvider}, Tries: 2}
		next := wait(t, rec, job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Fault: later}})
		if next.Live[0].Tries != 2 || next.Wait.Tries != 2 {
			t.Errorf("%d tries of the create, %d failures in a row", next.Live[0].Tries, next.Wait.Tries)
		}
		again, _ := job.Decide(next, job.Seen{Slot: &yes, Survey: &job.Survey{At: now.Add(8 * time.Second), Fault: &job.Fault{Class: job.Transient}}}, job.DefaultRules, now.Add(8*time.Second))
		if again.Wait.Tries != 3 {
			t.Errorf("the next failure is number %d in a row", again.Wait.Tries)
		}
	})
	t.Run("terminate", func(t *testing.T) {
		t.Parallel()
		rec := launching(job.PhaseClosing, now)
		rec.Step, rec.Tasks[0].Status = job.StepCleanup, job.Cancelling
		for range 20 {
			rec = wait(t, rec, job.Seen{Terminate: &job.Outcome{Attempt: 1, At: now, Fault: later}})
			rec.Wait.Until = 0
		}
		if len(rec.Events) > 0 || rec.Wait.Tries > 0 {
			t.Errorf("it alarms somebody: %+v %+v", rec.Events, rec.Wait)
		}
	})
	t.Run("preempt", func(t *testing.T) {
		t.Parallel()
		rec := launching(job.PhaseStarted, now)
		rec.Step, rec.Tasks[0].Status = job.StepWatch, job.Running
		rec.Live[0].Nodes, rec.Preempt = []job.Node{{ID: "m"}}, &job.Preempt{At: now}
		next, do := job.Decide(rec, job.Seen{Preempt: &job.Outcome{Attempt: 1, Fault: later}, Probe: &job.Probe{Attempt: 1, At: now, State: job.RunAlive}}, job.DefaultRules, now)
		if next.Preempt == nil || len(next.Events) > 0 || do.Kind != job.DoWait {
			t.Errorf("%s, wish %+v, events %+v", do.Kind, next.Preempt, next.Events)
		}
	})
}

// TestG9_WhoNeedsASlot ensures that a slot which a job has held for a while is its own only as long as it launches, somebody
// drives it, or it can still come for what it was granted.
func TestG9_WhoNeedsASlot(t *testing.T) {
	t.Parallel()
	const now = job.Time(1000)
	intent, booting := job.Attempt{Phase: job.PhaseIntent}, job.Attempt{Phase: job.PhaseBooting}
	for _, c := range []struct {
		name           string
		rec            job.Record
		taken, granted bool // what is wanted of a slot that was taken, and of one that was only granted
	}{
		{"never driven", job.Record{Step: job.StepLaunch}, false, true},
		{"driven", job.Record{Step: job.StepLaunch, HeldTo: now + 1}, true, true},
		{"driven no more", job.Record{Step: job.StepLaunch, HeldTo: now}, false, true},
		{"waits for capacity", job.Record{Step: job.StepLaunch, Wait: job.Waiting{For: job.Cause{Code: job.CodeBackoff}}}, false, true},
		{"is to create", job.Record{Step: job.StepLaunch, Live: []job.Attempt{intent}}, true, true},
		{"boots", job.Record{Step: job.StepLaunch, Live: []job.Attempt{booting}}, true, true},
		{"runs", job.Record{Step: job.StepWatch, Live: []job.Attempt{{Phase: job.PhaseStarted}}}, false, false},
		{"runs, and is looked at", job.Record{Step: job.StepWatch, HeldTo: now + 1}, true, true},
		{"recovers", job.Record{Step: job.StepRecover, Live: []job.Attempt{{Phase: job.PhaseClosing}}}, false, false},
		{"is done", job.Record{Step: job.StepDone}, false, false},
	} {
		if taken, granted := c.rec.NeedsSlot(false, now), c.rec.NeedsSlot(true, now); taken != c.taken || granted != c.granted {
			t.Errorf("%s: needs a slot %t, one it was granted %t", c.name, taken, granted)
		}
	}
}

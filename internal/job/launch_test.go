package job_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestFirstLaunchRetriesForEver ensures that a lack of capacity never ends a job, that its rounds back off, and that it
// holds no launch slot while it waits (G9).
//
// skypilot #10203: 490,000 launches were tried in six days, one a second.
func TestFirstLaunchRetriesForEver(t *testing.T) {
	t.Parallel()
	s := newSim(t, newWorld(1, chances{Capacity: 100}))
	var rounds []time.Duration
	s.onCommit = func(before, after *job.Record) {
		if after.Tasks[0].Search.Round <= before.Tasks[0].Search.Round {
			return
		}
		rounds = append(rounds, after.Wait.Until.Sub(s.now))
		if after.HoldsSlot() || after.Wait.For.Code != job.CodeBackoff || after.Wait.For.Evidence == "" {
			s.fail("in back-off: holds a slot %t, waits for %+v", after.HoldsSlot(), after.Wait.For)
		}
	}
	end := s.now.Add(24 * time.Hour)
	for s.now < end {
		s.now = max(s.now, s.due)
		s.drive()
	}
	if s.rec.Status() != job.Starting || len(rounds) < 100 || len(rounds) > 600 {
		t.Errorf("%s after %d rounds", s.rec.Status(), len(rounds))
	}
	for i, wait := range rounds {
		if wait < 35*time.Second || wait > 420*time.Second || i > 5 && wait < 175*time.Second {
			t.Errorf("round %d: wait of %s", i, wait)
		}
	}
	s.quietly()
	s.finish(time.Hour)
	if s.rec.Status() != job.Succeeded {
		t.Errorf("the job is %s", s.rec.Status())
	}
}

// TestEagerAndFailover ensures where a strategy looks first after a loss, and that the loss of an earlier machine does
// not lead a later hunt.
//
// skypilot #10021: the region that was just lost was never left out.
func TestEagerAndFailover(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		strategy job.Strategy
		want     []string
	}{
		{job.EagerNextRegion, []string{"a", "b", "a"}}, // b is then the lost region
		{job.Failover, []string{"a", "a", "a"}},
	} {
		w := newWorld(1, chances{})
		w.plan = forever
		s := newSim(t, w, job.TaskHead{Recovery: job.Recovery{Strategy: tt.strategy}})
		takenAt(2, time.Minute, 0)(s)
		s.until(time.Hour, "recovered twice", func() bool { return s.rec.Tasks[0].Recoveries == 2 })
		var got []string
		for _, v := range s.vms {
			got = append(got, v.offer.Region)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: regions (-want +got):\n%s", tt.strategy, diff)
		}
		if s.rec.Tasks[0].Search.Lost != nil {
			t.Errorf("%s: the hunt is over and still thinks of %+v", tt.strategy, s.rec.Tasks[0].Search.Lost)
		}
	}
}

// launching is a record with one attempt in a phase.
func launching(phase job.Phase, now job.Time) job.Record {
	rec := job.NewRecord(job.Head{ID: simID, Tasks: make([]job.TaskHead, 1)})
	rec.Tasks[0].Status, rec.Tasks[0].Attempts = job.Starting, 1
	a := job.Attempt{Number: 1, Phase: phase, Token: job.Token("", simID, "", 0, 1), IntentAt: now, Offer: job.Offer{Provider: "sim", Region: "a"}}
	if phase != job.PhaseIntent {
		a.CreatedAt, a.Nodes = now, []job.Node{{ID: "vm", Address: "vm"}}
	}
	if phase == job.PhaseReady {
		a.ReadyAt = now
	}
	rec.Live = []job.Attempt{a}
	return rec
}

func fault(c job.Class) *job.Fault { return &job.Fault{Class: c, Text: "said no"} }

// TestLaunchSteps has one row for each rule about a single answer in a launch.
func TestLaunchSteps(t *testing.T) {
	t.Parallel()
	const at = job.Time(1_000_000)
	now := at.Add(time.Minute)
	yes := true
	clean := &job.Survey{At: now}
	tried := func(phase job.Phase, n int) job.Record {
		r := launching(phase, at)
		r.Live[0].Tries = n
		return r
	}
	old := func(phase job.Phase, tries int) job.Record {
		r := tried(phase, tries)
		r.Live[0].CreatedAt, r.Live[0].ReadyAt = at.Add(-time.Hour), at.Add(-time.Hour)
		return r
	}
	booting := &job.Survey{At: now, Nodes: []job.SeenNode{{Attempt: 1, State: job.NodeBooting}}}
	stopping := &job.Survey{At: now, Nodes: []job.SeenNode{{Attempt: 1, State: job.NodeStopping}}}
	runs := []job.SeenNode{{Node: job.Node{ID: "vm", Address: "vm"}, Attempt: 1, State: job.NodeRunning}}
	for _, tt := range []struct {
		rule  string
		rec   job.Record
		seen  job.Seen
		do    job.DoKind
		step  job.Step
		phase job.Phase // "" for an attempt that is out of the record
	}{
		{"a slot is renewed before a create", launching(job.PhaseIntent, at), job.Seen{}, job.DoHold, job.StepLaunch, job.PhaseIntent},
		{"a view comes before the create", launching(job.PhaseIntent, at), job.Seen{Slot: &yes}, job.DoSurvey, job.StepLaunch, job.PhaseIntent},
		{"an older view does not do", launching(job.PhaseIntent, at), job.Seen{Slot: &yes, Survey: &job.Survey{At: at - 1}}, job.DoSurvey, job.StepLaunch, job.PhaseIntent},
		{"then the machine is made", launching(job.PhaseIntent, at), job.Seen{Slot: &yes, Survey: clean}, job.DoCreate, job.StepLaunch, job.PhaseIntent},
		{"without a view nothing is made", launching(job.PhaseIntent, at), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Fault: fault(job.Transient)}}, job.DoWait, job.StepLaunch, job.PhaseIntent},
		{"views denied for good: nothing was made, nothing is to be closed", launching(job.PhaseIntent, at), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Fault: fault(job.Denied)}}, job.DoNext, job.StepLaunch, ""},
		{"the answer to another attempt's create is not ours", launching(job.PhaseIntent, at), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 9, Nodes: runs}}, job.DoCreate, job.StepLaunch, job.PhaseIntent},
		{"made and running is ready", tried(job.PhaseIntent, 1), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Nodes: runs}}, job.DoNext, job.StepLaunch, job.PhaseReady},
		{"an answer without machines is not ready", tried(job.PhaseIntent, 1), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1}}, job.DoNext, job.StepLaunch, job.PhaseBooting},
		{"no capacity at the only call: the next offer at once", tried(job.PhaseIntent, 1), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Fault: fault(job.Capacity)}}, job.DoNext, job.StepLaunch, ""},
		{"no capacity after a lost answer: closed first", tried(job.PhaseIntent, 2), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Fault: fault(job.Capacity)}}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"throttled: the same again", tried(job.PhaseIntent, 1), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Fault: fault(job.Throttled)}}, job.DoWait, job.StepLaunch, job.PhaseIntent},
		{"failed too often: closed, another offer", tried(job.PhaseIntent, 5), job.Seen{Slot: &yes, Survey: clean, Create: &job.Created{Attempt: 1, Fault: fault(job.Transient)}}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"a slot is renewed while a machine boots", launching(job.PhaseBooting, at), job.Seen{}, job.DoHold, job.StepLaunch, job.PhaseBooting},
		{"still booting", launching(job.PhaseBooting, at), job.Seen{Slot: &yes, Survey: booting}, job.DoWait, job.StepLaunch, job.PhaseBooting},
		{"booting for too long is closed", old(job.PhaseBooting, 1), job.Seen{Slot: &yes, Survey: booting}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"up after too long is up", old(job.PhaseBooting, 1), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Nodes: runs}}, job.DoNext, job.StepLaunch, job.PhaseReady},
		{"no view is no verdict on a boot, however long", old(job.PhaseBooting, 1), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Fault: fault(job.Transient)}}, job.DoWait, job.StepLaunch, job.PhaseBooting},
		{"taken while booting is closed", launching(job.PhaseBooting, at), job.Seen{Slot: &yes, Survey: stopping}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"missing in one view is no proof, and is looked at again", launching(job.PhaseBooting, at), job.Seen{Slot: &yes, Survey: clean}, job.DoSurvey, job.StepLaunch, job.PhaseBooting},
		{"ready is started", launching(job.PhaseReady, at), job.Seen{Slot: &yes}, job.DoStart, job.StepLaunch, job.PhaseReady},
		{"started runs", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Start: &job.Probe{Attempt: 1, At: now, State: job.RunAlive}}, job.DoWait, job.StepWatch, job.PhaseStarted},
		{"ended at once runs too, for the watch to judge", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Start: &job.Probe{Attempt: 1, At: now, State: job.RunExited, Exit: &job.Exit{Stage: "run"}}}, job.DoWait, job.StepWatch, job.PhaseStarted},
		{"an ambiguous start takes a new machine", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Start: &job.Probe{Attempt: 1, At: now, State: job.RunLost}}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"files that are not there fail the setup", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Invalid)}}, job.DoNext, job.StepCleanup, job.PhaseReady},
		{"no answer to a start asks the provider", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Transient)}}, job.DoSurvey, job.StepLaunch, job.PhaseReady},
		{"one failed start long after the machine was ready is no verdict", old(job.PhaseReady, 0), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Nodes: runs}, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Transient)}}, job.DoWait, job.StepLaunch, job.PhaseReady},
		{"secrets that this worker cannot open: no machine is taken", job.NewRecord(job.Head{ID: simID, Tasks: make([]job.TaskHead, 1)}), job.Seen{Slot: &yes, Choice: &job.Chosen{Fault: fault(job.Locked)}}, job.DoWait, job.StepLaunch, ""},
		{"nor at the start: the machine is kept for another worker", launching(job.PhaseReady, at), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Nodes: runs}, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Locked)}}, job.DoWait, job.StepLaunch, job.PhaseReady},
		{"but not for ever", old(job.PhaseReady, 0), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Nodes: runs}, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Locked)}}, job.DoNext, job.StepRecover, job.PhaseClosing},
		{"many failed starts for long are", old(job.PhaseReady, 9), job.Seen{Slot: &yes, Survey: &job.Survey{At: now, Nodes: runs}, Start: &job.Probe{Attempt: 1, At: now, Fault: fault(job.Transient)}}, job.DoNext, job.StepRecover, job.PhaseClosing},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			next, do := job.Decide(tt.rec, tt.seen, job.DefaultRules, now)
			if do.Kind != tt.do || next.Step != tt.step {
				t.Errorf("%s at %s, want %s at %s", do.Kind, next.Step, tt.do, tt.step)
			}
			var phase job.Phase
			if a := next.Attempt(1); a != nil {
				phase = a.Phase
			}
			if phase != tt.phase {
				t.Errorf("the attempt is %q, want %q", phase, tt.phase)
			}
		})
	}
}

// TestLateAnswers ensures that what came of an attempt which is being closed, or of any other, changes no decision.
//
// hatchet #4969: an answer to an earlier try was taken for that of the present one.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.take(s.vms[0], 0)
	s.onCommit = func(before, _ *job.Record) {
		stray := &job.Probe{Attempt: 99, At: s.now, State: job.RunExited, Exit: &job.Exit{Stage: "run"}}
		out := &job.Outcome{Attempt: 99, At: s.now}
		seen := job.Seen{Create: &job.Created{Attempt: 99}, Probe: stray, Start: stray, Stop: out, Save: out, Terminate: out}
		want, wantDo := job.Decide(*before, job.Seen{}, s.rules, s.now)
		got, gotDo := job.Decide(*before, seen, s.rules, s.now)
		if diff := cmp.Diff(want, got); diff != "" || gotDo != wantDo {
			s.fail("answers of attempt 99 lead to %+v instead of %+v, record:\n%s", gotDo, wantDo, diff)
		}
	}
	s.until(time.Hour, "recovered", func() bool { return s.rec.Tasks[0].Recoveries == 1 })
	s.cancel()
	s.finish(time.Hour)
}

// TestDecideChangesNothing ensures that the record which is decided on stays as it is: a driver decides again from it.
func TestDecideChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(9, chances{Lost: 20, Capacity: 30, Preempt: 20, Notice: 50})
	w.plan = exits(7, 7, 0)
	s := newSim(t, w, job.TaskHead{Recovery: job.Recovery{RecoverOnExitCodes: []int{7}}})
	s.onCommit = func(before, _ *job.Record) {
		kept := s.through(*before)
		next, _ := job.Decide(*before, job.Seen{}, s.rules, s.now)
		next.Tasks[0].Search = next.Tasks[0].Search.Failed(s.offers[0], *fault(job.Capacity), s.now)
		if diff := cmp.Diff(kept, s.through(*before)); diff != "" {
			s.fail("the record changed under its decision:\n%s", diff)
		}
	}
	s.finish(10 * time.Hour)
}

// TestSearch ensures that a hunt remembers each failed offer once, for its time, and permanent ones for good.
func TestSearch(t *testing.T) {
	t.Parallel()
	const at = job.Time(1_000_000)
	a, b := job.Offer{Provider: "sim", Region: "a"}, job.Offer{Provider: "sim", Region: "b"}
	s := job.Search{}.Failed(a, *fault(job.Capacity), at).Failed(a, *fault(job.Transient), at).Failed(b, *fault(job.Denied), at)
	if diff := cmp.Diff([]string{a.Key(), b.Key()}, s.Tried); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
	later := at.Add(24 * time.Hour)
	s = s.RoundOver().Failed(b, *fault(job.Capacity), later)
	if len(s.Penalties) != 1 || s.Penalties[b.Key()].Fault.Class != job.Denied || s.Round != 1 {
		t.Errorf("a day later: %+v", s)
	}
	s.Lost = &a
	if s = s.Won(later); s.Round != 0 || s.Tried != nil || s.Lost != nil || len(s.Penalties) != 1 {
		t.Errorf("after the hunt: %+v", s)
	}
}

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// The tests of this file are named after what users of other systems have reported; docs/public-reports.md has them all.

// TestG4_MachineThatAppearsAfterTheCancel ensures that a cancel which comes while a create call is under way, whose answer is
// lost and whose machine shows up late, leaves no machine.
//
// skypilot #4410, #4443: cancelled during a recovery, said to be cleaned up, and the machine ran on and was billed.
func TestG4_MachineThatAppearsAfterTheCancel(t *testing.T) {
	t.Parallel()
	for _, recovering := range []bool{false, true} {
		late := 0
		for seed := range uint64(40) {
			w := newWorld(seed, chances{})
			w.settle, w.plan = 20*time.Second, forever
			s := newSim(t, w)
			if recovering {
				s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
				s.take(s.vms[0], 0)
			}
			s.Lost = 100
			s.onDo = func(do job.Do) {
				if do.Kind == job.DoCreate && s.rec.Cancel == nil {
					s.cancel()
				}
			}
			var ordered job.Time // when the end of the new machine was ordered first
			s.onCommit = func(_, after *job.Record) {
				if len(after.Live) > 0 && ordered == 0 && s.rec.Cancel != nil {
					ordered = after.Live[0].TermAt
				}
			}
			s.finish(10 * time.Minute)
			v := s.vms[len(s.vms)-1]
			if ordered == 0 || s.now < v.ends {
				t.Fatalf("seed %d: told to end at %d, ends at %d", seed, ordered, v.ends)
			}
			if v.born > ordered {
				late++
			}
			if s.rec.Status() != job.Cancelled {
				t.Fatalf("seed %d: %s", seed, s.rec.Status())
			}
		}
		if late == 0 {
			t.Errorf("recovering %t: no machine came late, so nothing was tested", recovering)
		}
	}
}

// TestG6_TakenInEveryPhase ensures that a machine which its provider takes, or somebody deletes by hand, is given up by what
// the provider says, in whichever phase that happens: no time-out has to run out first.
//
// dstack #2732, #1358, #2917: seen only after 2 to 20 minutes of silence, or polled for ever. skypilot #7318: a machine deleted
// by hand while it was made, and a job that was stuck.
func TestG6_TakenInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, phase := range []job.Phase{job.PhaseBooting, job.PhaseReady, job.PhaseStarted, job.PhaseClosing} {
		for _, shown := range []bool{true, false} { // as taken, or not at all any more
			w := newWorld(3, chances{StartLost: 100}) // so that a look sees the phase ready
			w.plan = func(_, n int) code { return code{after: time.Hour, exit: job.Exit{Stage: "run"}} }
			s := newSim(t, w)
			s.onCommit = func(_, after *job.Record) {
				if a := after.Attempt(1); a != nil && a.Phase == phase && !s.vms[0].taken {
					s.vms[0].runs = min(s.vms[0].runs, s.now)
					s.take(s.vms[0], 0)
					if !shown {
						s.vms[0].gone = s.now
					}
					s.StartLost = 0
				}
				if after.Status() == job.Running && phase == job.PhaseClosing && s.rec.Cancel == nil {
					s.cancel()
				}
				if a := after.Attempt(1); a != nil && a.Phase == job.PhaseReady && phase != job.PhaseReady {
					s.StartLost = 0
				}
			}
			s.until(time.Hour, "without its machine", func() bool { return len(s.vms) > 0 && s.vms[0].taken })
			at := s.now
			if phase == job.PhaseClosing {
				s.finish(2 * time.Minute)
				continue
			}
			s.until(2*time.Minute, "on another machine", func() bool { return s.rec.Tasks[0].Attempts > 1 })
			if took := s.now.Sub(at); took > time.Minute {
				t.Errorf("%s, shown %t: it took %s to look for another machine", phase, shown, took)
			}
		}
	}
}

// TestG7_NoGraceForAMachineThatIsGone ensures that a cancel with a long grace does not wait for it when the machine is gone.
//
// karpenter-provider-aws #9226: long graces kept ghosts after the spot machine had gone.
func TestG7_NoGraceForAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	for _, notice := range []time.Duration{0, 10 * time.Second} {
		s := running(t, job.TaskHead{Grace: 10 * time.Hour})
		s.vms[0].code.deaf = true
		s.take(s.vms[0], notice)
		s.cancel()
		s.finish(5 * time.Minute)
		if s.rec.Status() != job.Cancelled {
			t.Errorf("notice %s: %s", notice, s.rec.Status())
		}
	}
}

// TestG4_TerminateIsDeniedForDays ensures that the end of a machine is ordered until it is had, however long the provider
// refuses the credentials, that this is told once, not every time, and that the ending of the job stays.
//
// skypilot #4433, #2738, #7313, #7774: credentials had run out, and machines could not be deleted.
func TestG4_TerminateIsDeniedForDays(t *testing.T) {
	t.Parallel()
	rec := launching(job.PhaseReady, 1_700_000_000_000)
	rec.Step, rec.Tasks[0].Status = job.StepCleanup, job.Succeeded
	rec.Tasks[0].Cause = job.Cause{Code: job.CodeSucceeded, Text: "the user's code ended with exit code 0"}
	start := rec.Live[0].ReadyAt
	now, orders, told := start, 0, 0
	for now < start.Add(72*time.Hour) {
		next, do := job.Decide(rec, job.Seen{}, job.DefaultRules, now)
		if do.Kind == job.DoTerminate {
			orders++
			denied := &job.Outcome{Attempt: 1, At: now, Fault: &job.Fault{Class: job.Denied, Text: "ExpiredToken"}}
			next, do = job.Decide(next, job.Seen{Terminate: denied}, job.DefaultRules, now)
		}
		for _, e := range next.Events {
			if e.Kind == "note" && e.Cause.Code == job.CodeDenied {
				told++
			}
		}
		if do.Kind == job.DoWait {
			now = do.Until
		}
		rec = next.Clone()
	}
	if rec.Step != job.StepCleanup || rec.Tasks[0].Status != job.Succeeded || rec.Fault.N != 0 {
		t.Errorf("step %s, %s, %+v", rec.Step, rec.Tasks[0].Status, rec.Fault)
	}
	if orders < 72*60/8 || orders > 72*60/2 || told != 1 { // every five minutes, more or less
		t.Errorf("ordered %d times, told %d times", orders, told)
	}
	if _, do := job.Decide(rec, job.Seen{}, job.DefaultRules, now); do.Kind != job.DoTerminate {
		t.Errorf("when the credentials are there again, it is told to %s", do.Kind)
	}
}

// TestG4_ATokenIsForOneOffer ensures that a create call is repeated with its token for the same offer only, and that another
// offer has another token: a provider that has made a machine for a token returns that one, or refuses the new parameters.
//
// skypilot #656, karpenter-provider-oci #97, ubicloud #5898: a retry after a lost answer made a second machine, or was refused.
func TestG4_ATokenIsForOneOffer(t *testing.T) {
	t.Parallel()
	again := 0
	for seed := range uint64(30) {
		w := newWorld(seed, chances{Lost: 50, Refused: 30, Capacity: 30, Preempt: 20})
		s := newSim(t, w)
		s.crash = 5
		offers := map[string]string{}
		s.onDo = func(do job.Do) {
			if do.Kind != job.DoCreate {
				return
			}
			a := s.rec.Attempt(do.Attempt)
			switch was, ok := offers[a.Token]; {
			case ok && was != a.Offer.Key():
				s.fail("token %s was for %s and is for %s", a.Token, was, a.Offer.Key())
			case ok:
				again++
			}
			offers[a.Token] = a.Offer.Key()
		}
		s.finish(100 * time.Hour)
	}
	if again == 0 {
		t.Error("no create call was repeated, so nothing was tested")
	}
}

// TestG8_PreemptionSpendsNoBudget ensures that a job which loses its machine again and again spends none of the restarts that
// its user allows for failures, and waits for none of the back-off that failures have earned.
//
// kubernetes #130881, kelos #1348, opentargets #3314: a preemption used up the budget for errors, or waited for its back-off.
func TestG8_PreemptionSpendsNoBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	w.plan = func(_, n int) code {
		if n <= 3 { // fails at once, three times
			return code{after: time.Second, exit: job.Exit{Stage: "run", Code: 1}}
		}
		return code{after: 1000 * time.Hour, exit: job.Exit{Stage: "run"}}
	}
	s := newSim(t, w, job.TaskHead{Recovery: job.Recovery{MaxRestartsOnErrors: 4}})
	s.until(time.Hour, "running again", func() bool { return s.rec.Tasks[0].Attempts == 4 && s.rec.Status() == job.Running })
	for range 10 {
		n := s.rec.Tasks[0].Recoveries
		s.take(s.vms[len(s.vms)-1], 0)
		at := s.now
		s.until(time.Hour, "recovered", func() bool { return s.rec.Tasks[0].Recoveries == n+1 })
		if took := s.now.Sub(at); took > 2*time.Minute { // a look, an end, two lists and a boot
			t.Errorf("recovery %d took %s", n+1, took)
		}
		s.now = s.now.Add(20 * time.Minute) // else the offers are under a penalty
	}
	if s.rec.Tasks[0].Restarts != 3 {
		t.Errorf("%d restarts are counted, of 3", s.rec.Tasks[0].Restarts)
	}
}

// TestG8_EmptyListsMakeNoLaunchStorm ensures that a provider which lists none of the machines that it makes is asked for no
// more than a round of offers every five minutes, and for each only when the one before is ended.
//
// skypilot #10517: a change of a provider's API led to empty lists, and those to a storm of launches.
func TestG8_EmptyListsMakeNoLaunchStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	w.plan = forever
	s := newSim(t, w)
	most := 0
	s.onCommit = func(_, _ *job.Record) {
		exist := 0
		for _, v := range s.vms {
			v.gone, v.taken = v.born, true // from the lists only, and to the invariants it has vanished
			if s.now < v.leaving {
				exist++
			}
		}
		most = max(most, exist)
	}
	const hours = 12
	for end := s.now.Add(hours * time.Hour); s.now < end; s.now = max(s.now, s.due) {
		s.drive()
	}
	perHour := len(s.vms) / hours
	if perHour > 12*len(s.offers) { // a round every five minutes
		t.Errorf("%d machines an hour", perHour)
	}
	if most > 1 {
		t.Errorf("%d machines at a time", most)
	}
	if s.rec.Status().Terminal() {
		t.Errorf("it is %s: %+v", s.rec.Status(), s.rec.Tasks[0].Cause)
	}
}

// TestG13_EachAttemptHasItsOwnExit ensures that a success after failures shows nothing of them, and that the history keeps
// them where they belong.
//
// nextflow #6926, #6779: the exit code of a failed try was shown after the one that succeeded.
func TestG13_EachAttemptHasItsOwnExit(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	w.plan = exits(7, 9, 0)
	s := newSim(t, w, job.TaskHead{Recovery: job.Recovery{RecoverOnExitCodes: []int{7}, MaxRestartsOnErrors: 1}})
	s.finish(time.Hour)
	got := s.rec.Tasks[0]
	if got.Status != job.Succeeded || got.Cause.Code != job.CodeSucceeded || len(got.Later) > 0 || strings.Contains(got.Cause.Text+got.Cause.Evidence, "9") {
		t.Errorf("%s: %+v, and then %v", got.Status, got.Cause, got.Later)
	}
	for i, want := range []int{7, 9, 0} {
		if a := s.past[i]; a.Number != i+1 || a.Exit == nil || a.Exit.Code != want {
			t.Errorf("attempt %d has the exit %+v, want %d", a.Number, a.Exit, want)
		}
	}
}

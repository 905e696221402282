package job_test

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// check holds for each decision, whatever happens in the world.
func (s *sim) check(before, after *job.Record) {
	for i := range after.Tasks {
		s.checkTask(i, before.Tasks[i], after.Tasks[i])
	}
	for _, e := range after.Events {
		s.checkEvent(e)
	}
	s.checkLive(before, after)
	s.checkCalm(after)
	if after.Step == job.StepDone && before.Step != job.StepDone {
		s.checkDone(after)
	}
	if after.Cur < before.Cur {
		s.fail("the chain went back from task %d to %d", before.Cur, after.Cur)
	}
	if after.Cancel != nil && before.Cancel != nil && after.Step != job.StepCleanup && after.Step != job.StepDone && after.Fault.N == before.Fault.N {
		if before.Step != job.StepCleanup { // a chain may take one decision to its next task
			s.fail("G7: a cancelled job is at step %s", after.Step)
		}
	}
}

// checkCalm ensures that a record which says so would be decided on alike by any look that finds nothing new.
func (s *sim) checkCalm(rec *job.Record) {
	if !rec.Calm {
		return
	}
	want := rec.Clone()
	for _, later := range []time.Duration{time.Millisecond, time.Second, time.Hour, 1000 * time.Hour} {
		now := s.now.Add(later)
		if limit := rec.Deadline(); !limit.IsZero() && now.Add(s.rules.Quiet) > limit {
			return
		}
		a := rec.Started()
		next, do := job.Decide(*rec, job.Seen{Probe: &job.Probe{
			Attempt: a.Number, At: now, State: job.RunAlive, Tail: rec.Look.Tail, Kept: rec.Look.Kept,
		}}, s.rules, now)
		want.Calm, want.Due = true, next.Due
		if diff := cmp.Diff(want, next); diff != "" || do.Kind != job.DoWait || do.Until != now.Add(s.rules.Quiet) {
			s.fail("a calm record was changed by a quiet look %s later: %s until %d\n%s", later, do.Kind, do.Until, diff)
		}
	}
	s.calm++
}

func (s *sim) checkTask(i int, before, after job.Task) {
	if before.Status != after.Status {
		if before.Status.Terminal() {
			s.fail("G5: task %d went from %s to %s", i, before.Status, after.Status)
		}
		if !job.CanMove(before.Status, after.Status) {
			// a decision may make two moves, but only through what the table allows
			s.fail("task %d went from %s to %s", i, before.Status, after.Status)
		}
	}
	if before.Status.Terminal() && (after.EndedAt != before.EndedAt || after.Cause != before.Cause) {
		s.fail("G5: the ending of task %d was rewritten: %+v to %+v", i, before, after)
	}
	if after.Status.Terminal() && (after.Cause.Code == "" || after.Cause.Text == "" || after.EndedAt.IsZero()) {
		s.fail("G13: task %d is %s without a cause or a time: %+v", i, after.Status, after)
	}
	if after.Status == job.Recovering && (after.Cause.Code == "" || after.Cause.Text == "") {
		s.fail("G13: task %d recovers without a cause", i)
	}
	if after.Attempts < before.Attempts || after.Recoveries < before.Recoveries || after.Restarts < before.Restarts || after.RunMS < before.RunMS {
		s.fail("G8: a counter of task %d went back: %+v to %+v", i, before, after)
	}
	if after.Recoveries > after.Attempts {
		s.fail("task %d has %d recoveries in %d attempts", i, after.Recoveries, after.Attempts)
	}
}

// checkEvent ensures that the history explains endings and recoveries, and that no machine is given up for gone that
// is not (G6, G13).
func (s *sim) checkEvent(e job.Event) {
	if e.Kind == "status" {
		if to := job.Status(e.To); (to.Terminal() || to == job.Recovering || to == job.Cancelling) && (e.Cause.Code == "" || e.Cause.Text == "") {
			s.fail("G13: the history tells %s without a cause", to)
		}
		if e.From == string(job.Recovering) && e.To == string(job.Running) && e.Cause.Code == "" {
			s.fail("G13: the history tells a recovery without a cause")
		}
		return
	}
	if e.Kind != "attempt" || e.To != string(job.PhaseClosing) {
		return
	}
	for _, v := range s.vms {
		if v.task != e.Task || v.attempt != e.Attempt {
			continue
		}
		switch e.Cause.Code {
		case job.CodePreempted, job.CodeVanished:
			if !v.taken && s.now < v.leaving {
				s.fail("G6: %s is said to be %s and is not", v.id, e.Cause.Code)
			}
		case job.CodeUnreachable:
			if s.now.Sub(v.answered) < s.rules.ProbeTime {
				s.fail("G6: %s answered %s ago", v.id, s.now.Sub(v.answered))
			}
		case job.CodeUserExit, job.CodeUserSignal, job.CodeUserMemory, job.CodeSetupExit:
			if v.code != nil && v.code.byTaking {
				s.fail("the provider took %s, and the user's code is blamed", v.id)
			}
		}
	}
}

func (s *sim) checkLive(before, after *job.Record) {
	started := 0
	numbers := map[int]bool{}
	for _, a := range after.Live {
		if numbers[a.Number] || a.Number > after.Tasks[after.Cur].Attempts || a.Task != after.Cur {
			s.fail("attempt %d of task %d in a record at task %d: %+v", a.Number, a.Task, after.Cur, after.Live)
		}
		numbers[a.Number] = true
		if want := job.Token("test", simID, "", a.Task, a.Number); a.Token != want {
			s.fail("attempt %d has token %q, want %q", a.Number, a.Token, want)
		}
		if a.Phase == job.PhaseStarted {
			started++
		}
		if old := before.Attempt(a.Number); old != nil && old.Task == a.Task {
			if order(a.Phase) < order(old.Phase) {
				s.fail("attempt %d went back from %s to %s", a.Number, old.Phase, a.Phase)
			}
		} else if before.Cur == after.Cur && a.Number <= before.Tasks[after.Cur].Attempts {
			s.fail("attempt number %d was used twice", a.Number)
		}
	}
	if started > 1 || len(after.Live) > 2 && s.forget == 0 {
		s.fail("%d attempts are live, %d of them started", len(after.Live), started)
	}
}

func order(p job.Phase) int {
	for i, q := range []job.Phase{job.PhaseIntent, job.PhaseBooting, job.PhaseReady, job.PhaseStarted, job.PhaseClosing, job.PhaseGone} {
		if p == q {
			return i
		}
	}
	return -1
}

// checkDone ensures that a job which is done has left nothing (G4). What a driver without a lease made after the
// attempt was given up is for the collector.
func (s *sim) checkDone(rec *job.Record) {
	if !rec.Ended() || len(rec.Live) != 0 {
		s.fail("done with %d live attempts, status %s", len(rec.Live), rec.Status())
	}
	for _, v := range s.vms {
		if s.now < v.ends && !v.stray {
			s.fail("G4: the job is done and %s of attempt %d is still there", v.id, v.attempt)
		}
	}
}

// checkWait ensures that a wait is one, and not for longer than any back-off may take.
func (s *sim) checkWait(do job.Do) {
	wait := do.Until.Sub(s.now)
	if wait <= 0 || wait > 50*time.Minute {
		s.fail("a wait of %s", wait)
	}
	if s.rec.Fault.N == 0 && wait > 8*time.Minute {
		s.fail("a wait of %s", wait)
	}
	s.checkLimit(do)
}

// checkLimit ensures that nobody waits beyond a limit of the user, nor goes on when one is reached. Code whose failing exit
// was seen does not run any more.
func (s *sim) checkLimit(do job.Do) {
	limit := s.rec.Deadline()
	if a := s.rec.Started(); limit.IsZero() || a != nil && a.Exit != nil {
		return
	}
	if limit <= s.now || do.Until > limit {
		s.fail("a wait of %s at %s, with a limit %s away", do.Until.Sub(s.now), s.rec.Status(), limit.Sub(s.now))
	}
}

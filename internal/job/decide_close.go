package job

import (
	"fmt"
	"time"
)

// recover closes the attempts that were put aside, then looks for the next machine. It also runs while the code on a
// machine of which notice was given still runs, if the machine that was to replace it was lost.
func (d *decision) recover() Do {
	if old := d.Started(); old != nil {
		if do, yes := d.watchLeaving(old); yes {
			return do
		}
	}
	if a := d.closing(); a != nil {
		return d.lookingAfter(d.finishOff(a))
	}
	if d.task().Search.Lost != nil && d.policy().Strategy == Never {
		return d.end(FailedNoResource, Cause{Code: CodeNeverRecover, Text: "the machine was lost and job_recovery is NEVER", Evidence: d.task().Cause.Text})
	}
	d.clear()
	d.Step = StepLaunch
	return d.next()
}

// cleanup closes everything that is left of a task that has ended, then goes on with the chain or ends the job.
func (d *decision) cleanup() Do {
	for i := range d.Live {
		if a := &d.Live[i]; a.Phase != PhaseClosing {
			mayRun := a.Phase == PhaseStarted || a.Phase == PhaseReady // if ready, a start may be under way
			d.close(a, d.task().Cause)
			a.Stop = mayRun && d.task().Status != Succeeded && a.Exit == nil
		}
	}
	if a := d.closing(); a != nil {
		return d.finishOff(a)
	}
	d.clear()
	t := d.task()
	if !t.Status.Terminal() && !d.must(d.Cur, Cancelled, Cause{}) {
		return d.refused()
	}
	if t.Status == Succeeded && d.Cur+1 < len(d.Tasks) {
		d.Cur++
		d.task().SoughtAt = d.now
		d.Step, d.Look, d.Doubt = StepLaunch, Look{}, 0
		return d.next() // a cancel that came meanwhile is honoured there
	}
	d.Step = StepDone
	return Do{Kind: DoEnd}
}

// closing is the oldest attempt being closed.
func (d *decision) closing() *Attempt {
	for i := range d.Live {
		if d.Live[i].Phase == PhaseClosing {
			return &d.Live[i]
		}
	}
	return nil
}

// finishOff brings one attempt from closing to gone:
//
//	stop the code (cancel only) ─► save its log ─► terminate ─► two views without it
//
// The store may lose its last second, and with it the decision to close the attempt. What can be taken back by nobody, to stop
// the code and to end the machine with what it remembers, waits until that decision is safe; see firm.
func (d *decision) finishOff(a *Attempt) Do {
	firm := d.firm(a)
	switch {
	case d.now < d.Wait.Until:
		return Do{Kind: DoWait, Until: d.Wait.Until, Leave: d.now < firm}
	case a.Stop && d.now < firm:
		return d.untilFirm(firm)
	case a.Stop:
		return d.stop(a)
	case !a.Saved && !a.StartedAt.IsZero():
		return d.save(a)
	case a.TermAt.IsZero() && d.now < firm:
		return d.untilFirm(firm)
	case a.TermAt.IsZero():
		return d.terminate(a)
	}
	s := d.seen.Survey
	oldest := max(a.ReadAt+1, a.TermAt)
	switch {
	case s == nil || s.At < oldest:
		return Do{Kind: DoSurvey, Newer: oldest}
	case s.Fault != nil: // no view is no proof (G6)
		if s.Fault.Wait == 0 {
			a.Reads = 0
		}
		return d.retry(CodeProvider, s.Fault, maxCloseWait)
	}
	a.ReadAt = s.At
	nodes := s.of(a.Task, a.Number)
	for _, n := range nodes {
		if n.State != NodeEnded {
			return d.stillThere(a, n, s)
		}
	}
	if settled := a.TermAt.Add(s.Settle); s.At < settled {
		return d.wait(Cause{Code: CodeClosing, Text: "waits until the provider's answers have settled"}, settled)
	}
	if !d.provenGone(a, nodes, s) {
		if again := s.confirms(a.MissAt); again > d.now {
			return d.wait(Cause{Code: CodeClosing, Text: "looks once more whether the machine is gone"}, again)
		}
		return Do{Kind: DoSurvey, Newer: s.At + 1}
	}
	d.clear()
	d.retire(a.Number, a.Why)
	return d.next()
}

// firm is when an attempt may be closed for good. Was its code seen to end, or is it ended by us, then the store must not be
// able to lose that any more: it would find no machine that tells, and run the code again. If it does lose it, the machine is
// still there, and tells it again. For a machine that the provider took, nothing is lost with it.
func (d *decision) firm(a *Attempt) Time {
	status := d.task().Status
	ours := status.Terminal() || status == Cancelling
	seen := a.Exit != nil && a.Notice == nil
	if a.Stop || !a.StartedAt.IsZero() && (ours || seen) {
		return max(a.ClosingAt, d.Shut.Add(-d.rules.Durable/late)).Add(d.rules.Durable)
	}
	return 0
}

// late is the part of [Rules].Durable by which a commit may come after its decision without prolonging the wait: every one comes
// a little later. What is decided by a driver that then stands still is not safe before it is written.
const late = 4

// untilFirm waits for that. It is short, but there may be thousands: nobody stays for it.
func (d *decision) untilFirm(firm Time) Do {
	do := d.wait(Cause{Code: CodeClosing, Text: "keeps the machine until what is known of its end is on the disk of Redis"}, firm)
	do.Leave = true
	return do
}

// provenGone counts a view in which nothing of an attempt runs. Two that show its machines as ended are proof; where one is not
// shown at all, it may be a lapse.
func (d *decision) provenGone(a *Attempt, nodes []SeenNode, s *Survey) bool {
	if len(nodes) < max(len(a.Nodes), 1) {
		return s.miss(&a.Reads, &a.MissAt)
	}
	a.Reads++
	return a.Reads >= cleanReads
}

// terminate orders the machines' end. It is tried for ever, and said so: a machine that cannot be ended costs money (G4).
func (d *decision) terminate(a *Attempt) Do {
	o := d.seen.Terminate
	switch {
	case o == nil || o.Attempt != a.Number:
		return Do{Kind: DoTerminate, Attempt: a.Number}
	case o.Fault == nil:
		a.TermAt = o.At
		d.clear()
		return d.next()
	case o.Fault.Wait > 0:
		return d.turn(o.Fault)
	}
	if d.tries(CodeClosing)+1 >= alarmTries {
		d.alarm(a, Cause{Code: codeOf(*o.Fault), Text: "a machine cannot be ended and may cost money; it is tried on", Evidence: o.Fault.Text})
	}
	return d.retry(CodeClosing, o.Fault, maxCloseWait)
}

// A machine that cannot be ended is told when the order has failed so often in a row, or the machine is still there so long
// after its attempt was closed, though the provider takes the order.
const (
	alarmTries = 5
	alarmStays = 15 * time.Minute
)

// alarm tells once of an attempt that its machines cannot be ended. Which try it is does not say whether that was told: failures
// of other calls may count before, and a wait may be longer than another.
func (d *decision) alarm(a *Attempt, cause Cause) {
	if a.AlarmAt.IsZero() {
		a.AlarmAt = d.now
		d.note(cause)
	}
}

// stillThere waits for a machine that was told to end. One that does not go, or that appeared after the order since
// its create call was under way, is told again, ever more rarely.
func (d *decision) stillThere(a *Attempt, n SeenNode, s *Survey) Do {
	a.Reads = 0
	a.Tries++
	d.Wait.Tries = 0 // the calls do not fail
	if s.At.Sub(a.TermAt) > s.Settle+orderAgain {
		a.TermAt = 0
	}
	if s.At.Sub(a.ClosingAt) > s.Settle+alarmStays {
		d.alarm(a, Cause{Code: CodeClosing, Text: "a machine is still there, though the provider takes the order to end it, and may cost money; it is tried on", Evidence: n.ID})
	}
	return d.wait(Cause{Code: CodeClosing, Text: "waits for the provider to end the machine", Evidence: n.ID},
		d.now.Add(grow(pollFirst, quietGrowth, a.Tries-1, maxCallWait)))
}

// orderAgain is how long a machine may take to end before it is told again.
const orderAgain = 2 * time.Second

// stop ends the user's code with its grace before the machine goes.
func (d *decision) stop(a *Attempt) Do {
	grace := d.stopGrace()
	o, p := d.seen.Stop, d.seen.Probe
	switch {
	case o == nil || o.Attempt != a.Number:
		return Do{Kind: DoStop, Attempt: a.Number, Grace: grace}
	case o.Fault != nil: // not reachable: terminating will end it
		return d.stopped(a)
	case p == nil || p.Attempt != a.Number || p.At < o.At:
		return Do{Kind: DoProbe, Attempt: a.Number}
	case p.Fault != nil:
		return d.stopped(a)
	}
	if a.StopAt.IsZero() {
		a.StopAt = o.At
	}
	if a.StartedAt.IsZero() && (p.State == RunAlive || p.State == RunExited) {
		a.StartedAt, d.Look = a.ReadyAt, Look{} // by a driver that died before it could say so; this probe read another log
		return d.next()
	}
	d.Look.Tail, d.Look.Kept = max(d.Look.Tail, p.Tail), max(d.Look.Kept, p.Kept)
	if p.State != RunAlive || d.now.Sub(a.StopAt) > grace+stopSlack {
		if p.State == RunExited {
			a.ended(p.Exit, d.now)
		}
		return d.stopped(a)
	}
	a.Tries++
	return d.wait(Cause{Code: CodeClosing, Text: "waits for the user's code to end"}, d.now.Add(grow(shortest, quietGrowth, a.Tries-1, pollMax)))
}

// stopped goes on with the closing: nothing more is to be told to the user's code.
func (d *decision) stopped(a *Attempt) Do {
	a.Stop, a.Tries = false, 0
	d.clear()
	return d.next()
}

// stopSlack is for the agent, which kills at the end of the grace, to say so.
const stopSlack = 5 * time.Second

// stopGrace is what the canceller asked for, else the task's own, else the default.
func (d *decision) stopGrace() time.Duration {
	switch own := d.Head.Tasks[d.Cur].Grace; {
	case d.Cancel != nil && d.Cancel.Grace >= 0:
		return d.Cancel.Grace
	case own > 0:
		return own
	default:
		return d.rules.StopGrace
	}
}

// save brings the log to the archive before the machine goes (G11). An archive that is away, or whose disk is full, holds the
// machine for a while that is worth its price, not for ever: that would cost money for nobody. What waits for the machine to
// go, the next one or a cancel that is not over yet, is held up for less.
func (d *decision) save(a *Attempt) Do {
	o := d.seen.Save
	switch {
	case o == nil || o.Attempt != a.Number:
		return Do{Kind: DoSave, Attempt: a.Number}
	case o.Fault == nil:
		a.Saved = true
		d.clear()
		return d.next()
	}
	if a.Exit != nil && d.task().Status == Cancelling && !d.must(d.Cur, Cancelled, Cause{}) { // only the log is waited for
		return d.refused()
	}
	tries, patience := d.tries(CodeStore)+1, savePatience
	if d.heldUp() {
		patience = savePatienceHeldUp
	}
	if tries == 1 { // told also where the end of the job is told already
		d.note(Cause{Code: CodeStore, Text: fmt.Sprintf("the end of the log cannot be archived now: its machine is kept for up to %s", patience), Evidence: o.Fault.Text})
	}
	if tries < saveTries || d.now.Sub(d.Wait.Since) < patience {
		return d.retry(CodeStore, o.Fault, maxCallWait)
	}
	d.note(Cause{Code: CodeStore, Text: "the end of the log could not be archived", Evidence: o.Fault.Text})
	a.Saved = true
	d.clear()
	return d.next()
}

// heldUp reports whether something waits for an attempt to be closed: the task goes on, or is yet to be told cancelled, or
// the next one of the chain begins.
func (d *decision) heldUp() bool {
	t := d.task()
	return !t.Status.Terminal() || t.Status == Succeeded && d.Cur+1 < len(d.Tasks)
}

package job

import "time"

// recover closes the attempts that were put aside, then looks for the next machine.
func (d *decision) recover() Do {
	if a := d.closing(); a != nil {
		return d.finishOff(a)
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
			stop := a.Phase == PhaseStarted && d.task().Status != Succeeded && a.Exit == nil
			d.close(a, d.task().Cause)
			a.Stop = stop
		}
	}
	if a := d.closing(); a != nil {
		return d.finishOff(a)
	}
	d.clear()
	t := d.task()
	if t.Status == Cancelling && !d.must(d.Cur, Cancelled, Cause{}) {
		return Do{Kind: DoWait, Until: d.Wait.Until}
	}
	if t.Status == Succeeded && d.Cur+1 < len(d.Tasks) {
		if d.Cancel != nil { // it came after the last task ended well and before the next began
			d.Cur++
			return d.cancel()
		}
		d.Cur++
		d.Step, d.Look, d.Doubt = StepLaunch, Look{}, 0
		return d.next()
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
func (d *decision) finishOff(a *Attempt) Do {
	switch {
	case d.now < d.Wait.Until:
		return Do{Kind: DoWait, Until: d.Wait.Until}
	case a.Stop:
		return d.stop(a)
	case !a.Saved && !a.StartedAt.IsZero():
		return d.save(a)
	case a.TermAt.IsZero():
		return d.terminate(a)
	}
	s := d.seen.Survey
	oldest := max(a.ReadAt+1, a.TermAt)
	if s == nil || s.At < oldest {
		return Do{Kind: DoSurvey, Newer: oldest}
	}
	if s.Fault != nil {
		return d.retry(CodeProvider, s.Fault, maxCloseWait)
	}
	a.ReadAt = s.At
	for _, n := range s.of(a.Task, a.Number) {
		if n.State != NodeEnded {
			return d.stillThere(a, n, s)
		}
	}
	if settled := a.TermAt.Add(s.Settle); s.At < settled {
		return d.wait(Cause{Code: CodeClosing, Text: "waits until the provider's answers have settled"}, settled)
	}
	if a.Reads++; a.Reads < cleanReads {
		return Do{Kind: DoSurvey, Newer: s.At + 1}
	}
	d.clear()
	d.retire(a.Number, a.Why)
	return d.next()
}

// terminate orders the machines' end. It is tried for ever, and said so: a machine that cannot be ended costs money (G4).
func (d *decision) terminate(a *Attempt) Do {
	o := d.seen.Terminate
	switch {
	case o == nil || o.Attempt != a.Number:
		return Do{Kind: DoTerminate, Attempt: a.Number}
	case o.Fault == nil:
		a.TermAt, a.Tries = o.At, 0
		return d.next()
	}
	if a.Tries++; a.Tries == createTries {
		d.note(Cause{Code: codeOf(*o.Fault), Text: "a machine cannot be ended and may cost money; it is tried on", Evidence: o.Fault.Text})
	}
	d.Wait.Tries = a.Tries - 1
	return d.retry(CodeClosing, o.Fault, maxCloseWait)
}

// stillThere waits for a machine that was told to end. One that does not go, or that appeared after the order since
// its create call was under way, is told again.
func (d *decision) stillThere(a *Attempt, n SeenNode, s *Survey) Do {
	a.Reads = 0
	a.Tries++
	if s.At.Sub(a.TermAt) > s.Settle+orderAgain {
		a.TermAt = 0
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
		a.Stop = false
		return d.next()
	case p == nil || p.Attempt != a.Number || p.At < o.At:
		return Do{Kind: DoProbe, Attempt: a.Number}
	case p.Fault != nil || p.State != RunAlive || d.now.Sub(a.ClosingAt) > grace+stopSlack:
		if p.State == RunExited {
			a.Exit, a.EndedAt = p.Exit, d.now
		}
		d.Look.Tail, d.Look.Kept = max(d.Look.Tail, p.Tail), max(d.Look.Kept, p.Kept)
		a.Stop, a.Tries = false, 0
		d.clear()
		return d.next()
	}
	a.Tries++
	return d.wait(Cause{Code: CodeClosing, Text: "waits for the user's code to end"}, d.now.Add(grow(stopPoll, quietGrowth, a.Tries-1, pollMax)))
}

const (
	stopSlack = 5 * time.Second // the agent kills at the end of the grace; this is for it to say so
	stopPoll  = 20 * time.Millisecond
)

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

// save brings the log to the archive before the machine goes (G11). A broken archive holds the machine for a few
// tries, not for ever: that would cost money for nobody.
func (d *decision) save(a *Attempt) Do {
	o := d.seen.Save
	switch {
	case o == nil || o.Attempt != a.Number:
		return Do{Kind: DoSave, Attempt: a.Number}
	case o.Fault == nil:
		a.Saved, a.Tries = true, 0
		d.clear()
		return d.next()
	}
	if a.Tries++; a.Tries < saveTries {
		d.Wait.Tries = a.Tries - 1
		return d.retry(CodeStore, o.Fault, maxCallWait)
	}
	d.note(Cause{Code: CodeStore, Text: "the end of the log could not be archived", Evidence: o.Fault.Text})
	a.Saved, a.Tries = true, 0
	d.clear()
	return d.next()
}

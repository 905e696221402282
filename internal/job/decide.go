package job

import (
	"fmt"
	"strconv"
	"time"
)

// Decide says what is to be done about a job: the record to commit now, and the one thing to do in the world after
// that. It is pure. r is not changed. Every rule of the specification is in the files decide_*.go.
func Decide(r Record, seen Seen, rules Rules, now Time) (Record, Do) {
	d := decision{Record: r.Clone(), seen: seen, rules: rules, now: now}
	do := d.decide()
	return d.Record, do
}

// Faulted is the record after an error of our own: the job is looked at again after a growing wait, and ends as
// FAILED_CONTROLLER when the budget is spent. Its machines are closed then, as after any other ending.
func Faulted(r Record, text string, rules Rules, now Time) Record {
	d := decision{Record: r.Clone(), rules: rules, now: now}
	f := &d.Fault
	if now.Sub(f.Last) > faultForget {
		f.N = 0
	}
	f.N, f.Last, f.Text = f.N+1, now, text
	cause := Cause{Code: CodeController, Text: "an error inside Outlast, not in the job", Evidence: text}
	if f.N > faultBudget && d.Step != StepCleanup {
		d.end(FailedController, cause)
		return d.Record
	}
	wait := jitter(grow(faultFirst, 2, f.N-1, faultMax), 0.5, d.seed("fault", f.N))
	d.note(cause)
	d.wait(cause, now.Add(wait))
	return d.Record
}

// decision is a record in the making.
type decision struct {
	Record
	seen  Seen
	rules Rules
	now   Time
}

func (d *decision) decide() Do {
	switch {
	case d.Step == StepDone:
		return Do{Kind: DoEnd}
	case d.Cancel != nil && !d.task().Status.Terminal() && d.task().Status != Cancelling:
		return d.cancel()
	case d.Preempt != nil && d.Step != StepCleanup:
		if do, yes := d.preempt(); yes {
			return do
		}
	}
	switch d.Step {
	case StepLaunch:
		return d.launch()
	case StepWatch:
		return d.watch()
	case StepRecover:
		return d.recover()
	default:
		return d.cleanup()
	}
}

// next commits what was decided and decides again.
func (d *decision) next() Do { return Do{Kind: DoNext} }

// move is the one function that changes a status. It refuses what the table does not have; a move to where the
// task already is does nothing.
func (d *decision) move(task int, to Status, cause Cause) error {
	t := &d.Tasks[task]
	if t.Status == to {
		return nil
	}
	if !CanMove(t.Status, to) {
		return &IllegalMoveError{Task: task, From: t.Status, To: to}
	}
	d.Events = append(d.Events, Event{At: d.now, Kind: "status", Task: task, Attempt: t.Attempts, From: string(t.Status), To: string(to), Cause: cause})
	if t.Status == Running && !t.LastRecoveredAt.IsZero() {
		t.RunMS += d.now.Sub(t.LastRecoveredAt).Milliseconds()
	}
	if to.Terminal() {
		t.EndedAt = d.now
	}
	switch {
	case to == Running:
		t.LastRecoveredAt = d.now
		if t.StartedAt.IsZero() {
			t.StartedAt = d.now
		}
		t.Cause = Cause{} // the recovery is over; the history keeps its cause
	case !cause.IsZero() && t.Cause.IsZero():
		t.Cause = cause
	case !cause.IsZero() && t.Cause.Code != cause.Code && len(t.Later) < maxLater:
		t.Later = append(t.Later, cause.Code)
	}
	t.Status = to
	return nil
}

// maxLater bounds the causes kept beside the first one.
const maxLater = 8

// must is move where the decision has already looked at the status. An illegal move is a fault of ours: it is
// counted and told, and the job is tried again later, unchanged.
func (d *decision) must(task int, to Status, cause Cause) bool {
	if err := d.move(task, to, cause); err != nil {
		d.Record = Faulted(d.Record, err.Error(), d.rules, d.now)
		return false
	}
	return true
}

// note adds a line to the history without a change of status.
func (d *decision) note(cause Cause) {
	d.Events = append(d.Events, Event{At: d.now, Kind: "note", Task: d.Cur, Attempt: d.task().Attempts, Cause: cause})
}

// wait says what the job waits for. The tries that led to it are kept.
func (d *decision) wait(cause Cause, until Time) Do {
	if d.Wait.For.Code != cause.Code {
		d.Wait.Since = d.now
	}
	d.Wait.For, d.Wait.Until = cause, until
	d.Due = until
	return Do{Kind: DoWait, Until: until}
}

// retry waits after a failed call, longer each time.
func (d *decision) retry(code Code, f *Fault, limit time.Duration) Do {
	d.Wait.Tries++
	pause := jitter(grow(callFirst, callGrowth, d.Wait.Tries-1, limit), 0.4, d.seed("call", d.Wait.Tries))
	return d.wait(Cause{Code: code, Text: "a call failed and is repeated", Evidence: f.Text}, d.now.Add(pause))
}

// clear forgets what was waited for.
func (d *decision) clear() { d.Wait = Waiting{} }

// end gives the current task a final status, stops the chain and leaves the machines to the clean-up.
func (d *decision) end(to Status, cause Cause) Do {
	if !d.must(d.Cur, to, cause) {
		return Do{Kind: DoWait, Until: d.Wait.Until}
	}
	if to != Succeeded {
		d.stopChain()
	}
	d.clear()
	d.Step = StepCleanup
	return d.next()
}

// stopChain cancels the tasks after the current one, which never held anything.
func (d *decision) stopChain() {
	cause := Cause{Code: CodeChainStopped, Text: fmt.Sprintf("task %d of the chain did not succeed", d.Cur)}
	for i := d.Cur + 1; i < len(d.Tasks); i++ {
		if !d.Tasks[i].Status.Terminal() {
			d.must(i, Cancelled, cause)
		}
	}
}

// cancel honours the user's wish, at whatever step the job is.
func (d *decision) cancel() Do {
	cause := Cause{Code: CodeCancelled, Text: "cancelled by " + orSomebody(d.Cancel.By)}
	if !d.must(d.Cur, Cancelling, cause) {
		return Do{Kind: DoWait, Until: d.Wait.Until}
	}
	d.stopChain()
	d.clear()
	d.Step = StepCleanup
	return d.next()
}

func orSomebody(name string) string {
	if name == "" {
		return "the user"
	}
	return name
}

// preempt passes the user's wish to lose a machine on to the provider, once.
func (d *decision) preempt() (Do, bool) {
	a := d.newest()
	switch {
	case d.seen.Preempt != nil:
		d.Preempt = nil
		if f := d.seen.Preempt.Fault; f != nil {
			d.note(Cause{Code: CodeProvider, Text: "the machine could not be taken away", Evidence: f.Text})
		}
		return Do{}, false
	case a == nil || len(a.Nodes) == 0: // no machine to lose yet: it stands until there is one
		return Do{}, false
	default:
		return Do{Kind: DoPreempt, Attempt: a.Number, Grace: d.Preempt.Notice}, true
	}
}

// seed makes jitter differ between jobs, tasks and tries.
func (d *decision) seed(what string, n int) string {
	return what + "/" + strconv.FormatInt(int64(d.ID), 10) + "/" + strconv.Itoa(d.Cur) + "/" + strconv.Itoa(n)
}

// close puts an attempt aside for good: nothing will be started on it any more.
func (d *decision) close(a *Attempt, why Cause) {
	if a.Phase == PhaseClosing {
		return
	}
	a.Phase, a.ClosingAt, a.Why = PhaseClosing, d.now, why
	a.Tries, a.Reads, a.ReadAt = 0, 0, 0
	if a.EndedAt.IsZero() && !a.StartedAt.IsZero() {
		a.EndedAt = d.now
	}
	d.Events = append(d.Events, Event{At: d.now, Kind: "attempt", Task: a.Task, Attempt: a.Number, To: string(PhaseClosing), Cause: why})
}

// retire takes an attempt out of the record: nothing of it exists any more, or nothing ever did.
func (d *decision) retire(number int, why Cause) {
	for i, a := range d.Live {
		if a.Number != number {
			continue
		}
		if a.Why.IsZero() {
			a.Why = why
		}
		a.Phase, a.GoneAt = PhaseGone, d.now
		d.Past = append(d.Past, a)
		d.Live = append(d.Live[:i], d.Live[i+1:]...)
		return
	}
}

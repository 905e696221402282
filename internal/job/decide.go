package job

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/internal/planted"
)

// Decide says what is to be done about a job: the record to commit now, and the one thing to do in the world after
// that. It is pure. r is not changed. Every rule of the specification is in the files decide_*.go.
func Decide(r Record, seen Seen, rules Rules, now Time) (Record, Do) {
	d := decision{Record: r.Clone(), seen: seen, rules: rules, now: now}
	do := d.atDeadline(d.decide())
	return d.Record, do
}

// Faulted is the record after an error of our own: the job is looked at again after a growing wait, and ends as
// FAILED_CONTROLLER when the budget is spent. Its machines are closed then, as after any other ending. A job that has
// ended already is not touched (G5): its clean-up is tried on at the slowest pace.
func Faulted(r Record, text string, rules Rules, now Time) Record {
	d := decision{Record: r.Clone(), rules: rules, now: now}
	if d.Step == StepDone {
		return d.Record
	}
	f := &d.Fault
	if now.Sub(f.Last) > faultForget {
		f.N = 0
	}
	f.N, f.Last, f.Text = f.N+1, now, brief(text)
	cause := Cause{Code: CodeController, Text: "an error inside Outlast, not in the job", Evidence: text}
	if f.N > faultBudget && CanMove(d.task().Status, FailedController) && d.Step != StepCleanup {
		d.end(FailedController, cause)
		d.Due = now
		return d.Record
	}
	wait := jitter(grow(faultFirst, 2, f.N-1, faultMax), 0.5, d.seed("fault", f.N))
	d.note(cause)
	d.atDeadline(d.wait(cause, now.Add(wait)))
	return d.Record
}

// Paused returns r with a wait in it, for a driver that cannot go on where another one may (G10). It counts against no
// budget, however often it happens.
func Paused(r Record, text string, now Time) Record {
	d := decision{Record: r.Clone(), now: now}
	if d.Step == StepDone {
		return d.Record
	}
	cause := Cause{Code: CodeProvider, Text: "waits for a worker that can reach the provider", Evidence: text}
	if d.Wait.For != cause.brief() {
		d.note(cause)
	}
	d.wait(cause, now.Add(pauseTime))
	return d.Record
}

// decision is a record in the making.
type decision struct {
	Record
	seen  Seen
	rules Rules
	now   Time
	moved bool // the log has grown, or more of it was archived, since the look before
}

func (d *decision) decide() Do {
	switch {
	case d.Step == StepDone:
		return Do{Kind: DoEnd}
	case planted.On(planted.G5) && d.Cancel != nil && d.task().Status == Succeeded:
		d.task().Status = Cancelled
	case planted.On(planted.G7) && d.Cancel != nil && d.Step == StepLaunch:
	case d.Cancel != nil && !d.task().Status.Terminal() && d.task().Status != Cancelling:
		return d.cancel()
	case d.Preempt != nil && d.Step != StepCleanup:
		if do, yes := d.preempt(); yes {
			return do
		}
	}
	if d.waitedOut() {
		return d.stopWaiting()
	}
	switch d.Step {
	case StepLaunch:
		return d.launch()
	case StepWatch:
		return d.watch()
	case StepRecover:
		return d.recover()
	case StepCleanup:
		return d.cleanup()
	default: // a record that a newer version has written: hands off
		return d.fault(fmt.Sprintf("the record is at an unknown step %q", d.Step))
	}
}

// fault gives up this decision for an error of our own. What it had decided so far is dropped.
func (d *decision) fault(text string) Do {
	d.Record = Faulted(d.Record, text, d.rules, d.now)
	return d.refused()
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
	cause = t.explain(to, cause.brief())
	d.Events = append(d.Events, Event{At: d.now, Kind: "status", Task: task, Attempt: d.concerned(task), From: string(t.Status), To: string(to), Cause: cause})
	if t.Status == Running && !t.LastRecoveredAt.IsZero() {
		t.RunMS += d.now.Sub(t.LastRecoveredAt).Milliseconds()
	}
	if to.Terminal() {
		t.EndedAt = d.now
	}
	if to == Recovering {
		t.SoughtAt = d.now
	}
	if to == Running {
		t.LastRecoveredAt = d.now
		if t.StartedAt.IsZero() {
			t.StartedAt = d.now
		}
	}
	t.Status = to
	return nil
}

// maxLater bounds the causes kept beside the first one.
const maxLater = 8

// explain keeps the cause of a move to a status and returns the one that the history tells. The first cause of an
// ending stays, later ones are added as codes (G13). An ending in the middle of a recovery has its own cause, and
// the loss that led to it is the evidence.
func (t *Task) explain(to Status, cause Cause) Cause {
	first := t.Cause
	switch {
	case to == Running: // the recovery is over; the history keeps its cause
		t.Cause = Cause{}
		return first
	case cause.IsZero():
		return first
	case first.IsZero():
		t.Cause = cause
		return cause
	case t.Status == Recovering:
		if cause.Evidence == "" {
			cause.Evidence = first.Text
		}
		t.Cause = cause
		t.beside(first.Code)
	default:
		t.beside(cause.Code)
	}
	return cause
}

// beside keeps the code of a cause other than the first.
func (t *Task) beside(code Code) {
	if code != t.Cause.Code && !slices.Contains(t.Later, code) && len(t.Later) < maxLater {
		t.Later = append(t.Later, code)
	}
}

// must is move where the decision has already looked at the status. An illegal move is a fault of ours: it is
// counted and told, and the job is tried again later.
func (d *decision) must(task int, to Status, cause Cause) bool {
	if err := d.move(task, to, cause); err != nil {
		d.fault(err.Error())
		return false
	}
	return true
}

// refused is what to do after a fault: to wait as it says, or to go on with the ending that it has brought.
func (d *decision) refused() Do {
	if d.Due <= d.now {
		return d.next()
	}
	return Do{Kind: DoWait, Until: d.Due}
}

// concerned is the attempt that a change of a task's status is about: the one whose code was started, though a replacement may
// be made ready beside it, or else the newest.
func (d *decision) concerned(task int) int {
	if a := d.Started(); a != nil && a.Task == task {
		return a.Number
	}
	return d.Tasks[task].Attempts
}

// note adds a line to the history without a change of status.
func (d *decision) note(cause Cause) {
	d.Events = append(d.Events, Event{At: d.now, Kind: "note", Task: d.Cur, Attempt: d.task().Attempts, Cause: cause.brief()})
}

// wait says what the job waits for. The tries that led to it are kept. It is never empty: a wait that was over before
// it began would go round without a pause.
func (d *decision) wait(cause Cause, until Time) Do {
	until = max(until, d.now.Add(shortest))
	if d.Wait.For.Code != cause.Code {
		d.Wait.Since = d.now
	}
	d.Wait.For, d.Wait.Until = cause.brief(), until
	d.Due = until
	return Do{Kind: DoWait, Until: until}
}

// retry waits after a failed call, longer each time.
func (d *decision) retry(code Code, f *Fault, limit time.Duration) Do {
	if f.Wait > 0 {
		return d.turn(f)
	}
	d.Wait.Tries = d.tries(code) + 1
	pause := jitter(grow(callFirst, callGrowth, d.Wait.Tries-1, limit), 0.4, d.seed("call", d.Wait.Tries))
	return d.wait(Cause{Code: code, Text: "a call failed and is repeated", Evidence: f.Text}, d.now.Add(pause))
}

// turn waits until a call that is limited may be made. It counts as no failure.
func (d *decision) turn(f *Fault) Do {
	return d.wait(Cause{Code: CodeRateLimit, Text: "waits for its turn: the calls of the provider are limited", Evidence: f.Text}, d.now.Add(f.Wait))
}

// tries is how many calls have failed in a row that were waited for with this code. To wait for a turn in between changes
// nothing about that.
func (d *decision) tries(code Code) int {
	if d.Wait.For.Code != code && d.Wait.For.Code != CodeRateLimit {
		return 0
	}
	return d.Wait.Tries
}

// clear forgets what was waited for.
func (d *decision) clear() { d.Wait = Waiting{} }

// end gives the current task a final status, stops the chain and leaves the machines to the clean-up.
func (d *decision) end(to Status, cause Cause) Do {
	if planted.On(planted.G13) {
		cause = Cause{}
	}
	if !d.must(d.Cur, to, cause) {
		return d.refused()
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
		return d.refused()
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
	case d.seen.Preempt != nil && d.seen.Preempt.Fault != nil && d.seen.Preempt.Fault.Wait > 0: // its turn comes with another look
		return Do{}, false
	case d.seen.Preempt != nil:
		d.Preempt = nil
		if f := d.seen.Preempt.Fault; f != nil {
			d.note(Cause{Code: CodeProvider, Text: "the machine could not be taken away", Evidence: f.Text})
		}
		return Do{}, false
	case a == nil || len(a.Nodes) == 0: // no machine to lose yet: the wish stands until there is one
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
	a.Phase, a.ClosingAt, a.Why = PhaseClosing, d.now, why.brief()
	a.Tries, a.Reads, a.ReadAt, a.MissAt = 0, 0, 0, 0
	if a.EndedAt.IsZero() && !a.StartedAt.IsZero() {
		a.EndedAt = d.now
	}
	d.Events = append(d.Events, Event{At: d.now, Kind: "attempt", Task: a.Task, Attempt: a.Number, To: string(PhaseClosing), Cause: a.Why})
}

// retire takes an attempt out of the record: nothing of it exists any more, or nothing ever did.
func (d *decision) retire(number int, why Cause) {
	for i, a := range d.Live {
		if a.Number != number {
			continue
		}
		if a.Why.IsZero() {
			a.Why = why.brief()
		}
		a.Phase, a.GoneAt = PhaseGone, d.now
		d.Past = append(d.Past, a)
		d.Live = append(d.Live[:i], d.Live[i+1:]...)
		return
	}
}

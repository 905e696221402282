package cloud

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// VerdictKind says what is to be thought of a machine.
type VerdictKind string

// The kinds. Only an Orphan is nobody's business but the collector's.
const (
	VerdictOK        VerdictKind = "ok"        // its attempt is live, or it is too young to be judged
	VerdictClosing   VerdictKind = "closing"   // its attempt is being closed: its job ends it
	VerdictEnded     VerdictKind = "ended"     // the provider still shows it, nothing runs on it
	VerdictForgotten VerdictKind = "forgotten" // newer than the record: its job closes it before it makes another
	VerdictOrphan    VerdictKind = "orphan"    // nobody will ever use or end it
)

// Verdict is what is to be thought of a machine, and why, in a sentence for people.
type Verdict struct {
	Kind VerdictKind `json:"verdict"`
	Why  string      `json:"why,omitempty"`
}

// DefaultMinAge is how young a machine is never judged: its record may have been read before it was made.
const DefaultMinAge = 30 * time.Second

// Judge compares a machine with the record of the job whose tags it carries; r is nil if there is no such job. The
// machine must have been listed before the record was read, otherwise a new one looks like an orphan. A machine
// whose provider does not say when it was made counts as old: to leave it alone for ever would cost money.
//
// A store that lost its last second knows less than there is. What it has forgotten, its job closes before it makes another
// machine; but a job whose code runs may make none for days, and code may run on the forgotten one as well (G3).
//
// The collector and `enqueue machines` judge alike, by this one rule (G4).
func Judge(n Node, r *job.Record, now time.Time, minAge time.Duration) Verdict {
	if n.State.Ended() {
		return Verdict{VerdictEnded, n.Reason}
	}
	v := judgeLiving(n, r)
	if age := now.Sub(n.CreatedAt); v.Kind == VerdictOrphan && !n.CreatedAt.IsZero() && age < minAge {
		return Verdict{VerdictOK, fmt.Sprintf("younger than %s: not judged yet", minAge)}
	}
	return v
}

// judgeLiving judges a machine that may run code, whatever its age.
func judgeLiving(n Node, r *job.Record) Verdict {
	switch {
	case r == nil:
		return Verdict{VerdictOrphan, fmt.Sprintf("job %d is unknown", n.Job)}
	case !n.Of(r.Nonce):
		return Verdict{VerdictOrphan, fmt.Sprintf("it was made for another job %d, which the store has lost", n.Job)}
	case r.Step == job.StepDone:
		return Verdict{VerdictOrphan, fmt.Sprintf("job %d is done (%s)", n.Job, r.Status())}
	case n.Task < r.Cur:
		return Verdict{VerdictOrphan, fmt.Sprintf("task %d of job %d has ended", n.Task, n.Job)}
	case n.Task > r.Cur:
		return Verdict{VerdictForgotten, fmt.Sprintf("job %d is still at task %d", n.Job, r.Cur)}
	}
	a, started := r.Attempt(n.Attempt), r.Started()
	switch newest := r.Tasks[r.Cur].Attempts; {
	case a != nil && a.Phase == job.PhaseClosing:
		return Verdict{VerdictClosing, a.Why.Text}
	case a != nil && a == started && len(a.Nodes) > 0 && !slices.ContainsFunc(a.Nodes, func(of job.Node) bool { return of.ID == n.ID }):
		return Verdict{VerdictOrphan, fmt.Sprintf("the code of attempt %d runs on another machine", n.Attempt)}
	case a != nil:
		return Verdict{Kind: VerdictOK}
	case n.Attempt > newest && started != nil && r.Step == job.StepWatch && r.Look.Fails == 0 && r.Look.Misses == 0:
		return Verdict{VerdictOrphan, fmt.Sprintf("attempt %d was forgotten, and the code runs in attempt %d", n.Attempt, started.Number)}
	case n.Attempt > newest:
		return Verdict{VerdictForgotten, fmt.Sprintf("attempt %d is newer than the record, which knows %d", n.Attempt, newest)}
	default:
		return Verdict{VerdictOrphan, fmt.Sprintf("attempt %d of job %d is over", n.Attempt, n.Job)}
	}
}

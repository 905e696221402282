package account

import (
	"cmp"
	"fmt"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// History is all that is known about a job.
type History struct {
	Job
	Cost     float64   `json:"cost"` // of its machines so far, as far as their prices tell
	Attempts []Attempt `json:"attempts"`
	Events   []Event   `json:"events"`
}

// Attempt is one machine that a task had, or tried to have.
type Attempt struct {
	Task    int        `json:"task"`
	Number  int        `json:"n"`
	Phase   job.Phase  `json:"phase"`
	Offer   job.Offer  `json:"offer"`
	Nodes   []job.Node `json:"nodes,omitempty"`
	Intent  Time       `json:"intent_at"`
	Created Time       `json:"created_at"`
	Ready   Time       `json:"ready_at"`
	Started Time       `json:"started_at"`
	Ended   Time       `json:"ended_at"`
	Closing Time       `json:"closing_at"`
	Gone    Time       `json:"gone_at"`
	Cost    float64    `json:"cost"` // so far, in the provider's currency
	Exit    *job.Exit  `json:"exit,omitempty"`
	Why     *job.Cause `json:"why,omitempty"`
}

// Event is a line of a job's history.
type Event struct {
	At      Time       `json:"at"`
	Kind    string     `json:"kind"`
	Task    int        `json:"task"`
	Attempt int        `json:"attempt,omitempty"`
	From    string     `json:"from,omitempty"`
	To      string     `json:"to,omitempty"`
	Cause   *job.Cause `json:"cause,omitempty"`
}

// EventOf is an event as programs read it.
func EventOf(e job.Event) Event {
	return Event{Time(e.At), e.Kind, e.Task, e.Attempt, e.From, e.To, causeOrNil(e.Cause)}
}

// Event is what it was made of.
func (e Event) Event() job.Event {
	out := job.Event{At: job.Time(e.At), Kind: e.Kind, Task: e.Task, Attempt: e.Attempt, From: e.From, To: e.To}
	if e.Cause != nil {
		out.Cause = *e.Cause
	}
	return out
}

// HistoryOf puts together all that is known about a job at a time by the store's clock: its record, its attempts that
// are gone, and its events.
func HistoryOf(r *job.Record, past []job.Attempt, events []job.Event, now job.Time) History {
	h := History{Job: Of(r, now), Attempts: []Attempt{}, Events: []Event{}}
	for _, list := range [][]job.Attempt{past, r.Live} {
		for _, at := range list {
			h.Attempts = append(h.Attempts, attemptOf(at, now))
			h.Cost += h.Attempts[len(h.Attempts)-1].Cost
		}
	}
	for _, e := range events {
		h.Events = append(h.Events, EventOf(e))
	}
	return h
}

func attemptOf(at job.Attempt, now job.Time) Attempt {
	return Attempt{
		Task: at.Task, Number: at.Number, Phase: at.Phase, Offer: at.Offer, Nodes: at.Nodes,
		Intent: Time(at.IntentAt), Created: Time(at.CreatedAt), Ready: Time(at.ReadyAt), Started: Time(at.StartedAt),
		Ended: Time(at.EndedAt), Closing: Time(at.ClosingAt), Gone: Time(at.GoneAt),
		Cost: cost(at, now), Exit: at.Exit, Why: causeOrNil(at.Why),
	}
}

// cost is what the machines of an attempt have cost until now. A machine costs from its creation until it is gone.
func cost(at job.Attempt, now job.Time) float64 {
	end := at.GoneAt
	if end.IsZero() {
		end = now
	}
	if at.CreatedAt.IsZero() || end < at.CreatedAt {
		return 0
	}
	return at.Offer.Price * float64(max(1, len(at.Nodes))) * end.Sub(at.CreatedAt).Hours()
}

// EndOf is why an attempt ended, in few words; "" if it goes on.
func EndOf(a Attempt) string {
	switch {
	case a.Exit != nil && (a.Why == nil || a.Exit.Code == 0 || a.Why.Code == job.CodeUserExit):
		return fmt.Sprintf("exit code %d", a.Exit.Code)
	case a.Why != nil:
		return render.Text(cmp.Or(a.Why.Text, string(a.Why.Code)))
	default:
		return ""
	}
}

// causeOrNil keeps causes that say anything: some only have a sentence.
func causeOrNil(c job.Cause) *job.Cause {
	if c.IsZero() && c.Text == "" {
		return nil
	}
	return &c
}

// EventLine tells one event of a history in words that follow "job 7" or a time.
func EventLine(e job.Event, chain bool) string {
	line := ""
	if chain {
		line = fmt.Sprintf("task %d: ", e.Task)
	}
	cause := ""
	if e.Cause != (job.Cause{}) {
		cause = Explain(e.Cause)
	}
	switch {
	case e.Kind == "note":
		return line + cause
	case e.Kind == "attempt" && e.To == string(job.PhaseIntent):
		return line + fmt.Sprintf("attempt %d ", e.Attempt) + cause
	case e.Kind == "attempt":
		line += fmt.Sprintf("attempt %d %s", e.Attempt, render.Text(e.To))
		cause = render.Text(e.Cause.Text) // its evidence stands with the change of status
	default:
		line += render.Text(e.To)
	}
	if cause != "" && e.To != string(job.Running) { // what it has recovered from was told before
		line += ": " + cause
	}
	return line
}

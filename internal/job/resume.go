package job

import (
	"fmt"
	"strconv"
)

// NotResumableError says why a job cannot go again, and what to do instead.
type NotResumableError struct {
	ID      ID
	Why     string
	Closing bool // its machines are still being closed: it can go again soon
}

func (e *NotResumableError) Error() string {
	return "job " + strconv.FormatInt(int64(e.ID), 10) + " cannot be resumed: " + e.Why
}

// Resumed is the record of a job that a person wants to go again: a second life under the same id, from the first task
// that did not succeed. It is the one way out of a final status (G5), so it is no decision and no row of the transition
// table: no tick, act or event ever comes here.
//
// What would mix the two lives up goes on: attempt numbers, of which tokens and logs are made, and dispatch numbers. What
// a person would have to wait for or be stopped by begins anew: restarts, the budget for faults, back-offs, penalties and
// limits. Recoveries and run time are the job's, and stay.
func Resumed(r Record, by string, now Time) (Record, error) {
	if err := resumable(&r); err != nil {
		return Record{}, err
	}
	next := r.Clone()
	first := -1
	for i := range next.Tasks {
		t := &next.Tasks[i]
		if t.Status == Succeeded {
			continue
		}
		if first < 0 {
			first = i
		}
		next.Events = append(next.Events, Event{
			At: now, Kind: "status", Task: i, Attempt: t.Attempts, From: string(t.Status), To: string(Pending),
			Cause: Cause{Code: CodeResumed, Text: "resumed by " + orSomebody(by), Evidence: endedBefore(t)}.brief(),
		})
		*t = Task{
			Status: Pending, RunMS: t.RunMS, SpentMS: t.RunMS, Recoveries: t.Recoveries, Attempts: t.Attempts,
		}
	}
	next.Tasks[first].SoughtAt = now
	next.Cur, next.Step, next.Due = first, StepLaunch, now
	next.Dispatch = max(r.Dispatch, r.Ran) + 1
	next.Look, next.Wait, next.Fault = Look{}, Waiting{}, Faults{}
	next.Cancel, next.Preempt, next.Follow, next.Doubt = nil, nil, 0, 0
	return next, nil
}

// resumable returns nil or why a job cannot go again.
func resumable(r *Record) error {
	status := r.Status()
	switch {
	case status == Succeeded:
		return &NotResumableError{ID: r.ID, Why: "it has succeeded; submit it again with launch"}
	case !r.Ended():
		return &NotResumableError{ID: r.ID, Why: fmt.Sprintf("it is %s; cancel it first, or let it end", status)}
	case r.Step != StepDone:
		return &NotResumableError{ID: r.ID, Why: "it has ended, but its machines are still being closed; try again when they are gone", Closing: true}
	default:
		return nil
	}
}

// endedBefore is how a task had ended, for the history.
func endedBefore(t *Task) string {
	s := "it was " + string(t.Status)
	if t.Cause.IsZero() {
		return s
	}
	return s + ": " + t.Cause.Text
}

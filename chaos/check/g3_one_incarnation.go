package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/outlast-dev/outlast/chaos/history"
)

// oneIncarnation: the user's code of a job, of all its tasks and attempts, never ran twice at a time: neither by the ledger
// of the sim nor by what code on local machines wrote, and no code found the lock of its job held by another one. Code that ran
// by the word of the record has left its traces there: else nothing would be known of it.
func oneIncarnation(f *file, report func(Violation)) {
	for _, id := range slices.Sorted(maps.Keys(f.runs)) { // also of jobs that no client was told of
		var longest run // of those so far, the one that ends last
		for i, r := range f.runs[id] {
			if i > 0 && r.from < longest.to {
				report(Violation{
					Job: id, At: r.from,
					Text:     fmt.Sprintf("the code of attempt %d started %s while that of attempt %d still ran", r.attempt, f.clock(r.from), longest.attempt),
					Evidence: fmt.Sprintf("on %s, and on %s%s", r.where, longest.where, f.until(longest)),
				})
			}
			if r.to > longest.to {
				longest = r
			}
		}
	}
	f.eachJob(func(_ *history.Submission, j *history.Job) {
		for _, a := range j.Attempts {
			if mustHaveRun(j, a) && !f.ran(j.ID, a) {
				report(Violation{Job: j.ID, At: at(a.Started), Text: fmt.Sprintf("its record says that attempt %d ran, and nothing saw it run", a.Number), Evidence: "a machine of " + a.Offer.Provider})
			}
		}
	})
	for _, t := range f.Traces {
		if t.Op == "double" && !slices.Contains(f.namesakes, t.Job) { // the lock bears the number
			report(Violation{Job: t.Job, At: t.At, Text: fmt.Sprintf("the code of attempt %d found the lock of the job held by another one", t.Attempt), Evidence: fmt.Sprintf("process %d, %s", t.PID, f.clock(t.At))})
		}
	}
}

// until tells when a run ended.
func (f *file) until(r run) string {
	if r.to == forever {
		return ", which never ended"
	}
	return " until " + f.clock(r.to)[len("at "):]
}

// mustHaveRun reports whether an attempt must have left traces of its code: on the sim if it became RUNNING, on a local machine
// if the code came to its end. One that was killed there may not have come to write anything.
func mustHaveRun(j *history.Job, a history.Attempt) bool {
	switch a.Offer.Provider {
	case "sim":
		return slices.ContainsFunc(j.Events, func(e history.Event) bool {
			return e.To == "RUNNING" && e.Task == a.Task && e.Attempt == a.Number
		})
	case "local":
		return a.Exit != nil && a.Exit.Stage == "run" && a.Exit.Code == 0
	}
	return false
}

func (f *file) ran(id int64, a history.Attempt) bool {
	return slices.ContainsFunc(f.runs[id], func(r run) bool {
		return r.task == a.Task && r.attempt == a.Number && (r.where == "local") == (a.Offer.Provider == "local")
	})
}

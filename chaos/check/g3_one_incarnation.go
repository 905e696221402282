package check

import (
	"fmt"
	"maps"
	"slices"
)

// oneIncarnation: the user's code of a job, of all its tasks and attempts, never ran twice at a time: neither by the ledger
// of the sim nor by what code on local machines wrote, and no code found the lock of its job held by another one.
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
	for _, t := range f.Traces {
		if t.Op == "double" {
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

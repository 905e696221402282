package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// aftermath is how long after an outage an ending may still be one that it led to.
const aftermath = time.Minute

// outage is a fault in which the store or a provider does not serve for a while.
func outage(x history.Fault) bool {
	return stopsSome(x) || slices.Contains([]string{"throttled", "unavailable", "lost", "late", "lag", "short", "half", "hang", "slow", "unreachable", "capacity"}, x.Kind)
}

// outageIsAPause: no job that should have ended otherwise failed during an outage of the store or a provider, or soon after
// one, nor for a reason that is none of its own.
func outageIsAPause(f *file, report func(Violation)) {
	f.eachJob(func(asked *history.Submission, j *history.Job) {
		if !failure(j.Status) || slices.Contains(asked.Expect, j.Status) {
			return
		}
		ended := at(j.Ended)
		for _, x := range f.Faults {
			if x.Failed == "" && outage(x) && x.At <= ended && end(x) >= ended.Add(-aftermath) {
				report(Violation{
					Job: j.ID, At: ended, Text: fmt.Sprintf("it failed %s as %s with an outage: %s", f.clock(ended), j.Status, nameOf(x)), Evidence: cause(j.Cause),
				})
				return
			}
		}
		if j.Status == failedController {
			report(Violation{Job: j.ID, At: ended, Text: "it failed for an error that was not its own", Evidence: cause(j.Cause)})
		}
	})
}

// nameOf is a fault for people.
func nameOf(x history.Fault) string {
	name := x.Name
	if x.Op != "" && x.Kind != "" {
		name = x.Op + " " + x.Kind
	}
	if x.Target != "" {
		name += " of " + x.Target
	}
	return name
}

package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// file is a history with its indexes: the file of a case.
type file struct {
	history.History
	asked    map[int64]*history.Submission // by job
	jobs     map[int64]*history.Job
	ledger   map[int64][]history.Entry // by job, in the order of time
	machines map[string]*machine       // of the sim, by name
	runs     map[int64][]run           // times in which the user's code ran, by job and start
	accepted []int64                   // jobs, in order
	// jobs whose number another one had before, on a local machine: Redis had lost it
	namesakes []int64
	shared    []int64 // jobs that more than one submission was told to be its own
}

func open(h history.History) *file {
	f := &file{
		History: h, asked: map[int64]*history.Submission{}, jobs: map[int64]*history.Job{},
		ledger: map[int64][]history.Entry{}, machines: map[string]*machine{}, runs: map[int64][]run{},
	}
	for i := range h.Submissions {
		for _, id := range h.Submissions[i].Jobs {
			if old := f.asked[id]; old != nil && old.Key != h.Submissions[i].Key {
				f.shared = append(f.shared, id)
			}
			f.asked[id] = &h.Submissions[i]
			f.accepted = append(f.accepted, id)
		}
	}
	slices.Sort(f.accepted)
	f.accepted = slices.Compact(f.accepted)
	for i := range h.Jobs {
		f.jobs[h.Jobs[i].ID] = &h.Jobs[i]
	}
	f.Faults = append(slices.Clip(f.Faults), togetherAll(h)...)
	f.readLedger()
	f.readTraces()
	for _, runs := range f.runs {
		slices.SortStableFunc(runs, func(a, b run) int { return int(a.from - b.from) })
	}
	return f
}

// eachJob calls visit with each accepted job of which there is a record.
func (f *file) eachJob(visit func(asked *history.Submission, j *history.Job)) {
	for _, id := range f.accepted {
		if j := f.jobs[id]; j != nil && j.Missing == "" && !j.Damaged {
			visit(f.asked[id], j)
		}
	}
}

// The final statuses.
const (
	succeeded        = "SUCCEEDED"
	cancelled        = "CANCELLED"
	failedController = "FAILED_CONTROLLER"
)

var finals = map[string]bool{
	succeeded: true, cancelled: true, "FAILED": true, "FAILED_SETUP": true, "FAILED_PRECHECKS": true, "FAILED_NO_RESOURCE": true,
	failedController: true,
}

// failure reports whether a status is an ending that is neither a success nor a wish.
func failure(status string) bool { return finals[status] && status != succeeded && status != cancelled }

// code of a cause; "" if there is none.
func code(c *history.Cause) string {
	if c == nil {
		return ""
	}
	return c.Code
}

// at is a time of the product as a history has it; 0 for none.
func at(t time.Time) history.Time {
	if t.IsZero() {
		return 0
	}
	return history.TimeOf(t)
}

// clock is a moment of a run for people: seconds since it began.
func (f *file) clock(t history.Time) string {
	return fmt.Sprintf("at %.1fs", t.Sub(f.Run.Began).Seconds())
}

// about is a length of time for people.
func about(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

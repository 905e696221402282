package check

import (
	"fmt"
	"slices"

	"github.com/outlast-dev/outlast/chaos/history"
)

// terminalIsFinal: an ending that a client was told is what later clients are told, and the ending at the end, with the same
// cause; nothing in the history leads out of a final status; and the record says what its history says. Only a person who
// resumes a job that has not succeeded begins another life of it, which has an ending of its own. What was told at a moment that
// Redis has lost is told anew.
func terminalIsFinal(f *file, report func(Violation)) {
	if len(f.Seen) == 0 && len(f.Jobs) > 0 {
		report(Violation{Text: "nobody has asked for a job while the run went on, so nothing is known of what they were told"})
	}
	told := map[int64]bool{}
	ended := map[int64]history.Seen{} // as it was told first
	for _, s := range f.Seen {
		j := f.jobs[s.Job]
		if before, yes := ended[s.Job]; yes && f.resumed(before, max(s.At, s.Got)) {
			delete(ended, s.Job) // this may be another life
		}
		if before, yes := ended[s.Job]; yes && before.Status != s.Status && !told[s.Job] {
			report(Violation{Job: s.Job, At: s.At, Text: fmt.Sprintf("it was %s %s, and %s %s", before.Status, f.clock(before.At), s.Status, f.clock(s.At)), Evidence: "told by " + before.Via + " and " + s.Via})
			told[s.Job] = true
		}
		if !finals[s.Status] || j == nil || j.Missing != "" || told[s.Job] || f.forgot(s.At, max(s.At, s.Got)) {
			continue
		}
		if _, yes := ended[s.Job]; !yes {
			ended[s.Job] = s
		}
		if f.resumed(s, forever) {
			continue
		}
		switch {
		case j.Status != s.Status:
			report(Violation{Job: s.Job, At: s.At, Text: fmt.Sprintf("it was %s %s, and is %s now", s.Status, f.clock(s.At), j.Status), Evidence: "told by " + s.Via})
		case s.Cause != "" && s.Cause != code(j.Cause):
			report(Violation{Job: s.Job, At: s.At, Text: fmt.Sprintf("it was %s for %q %s, and is for %q now", s.Status, s.Cause, f.clock(s.At), code(j.Cause)), Evidence: "told by " + s.Via})
		default:
			continue
		}
		told[s.Job] = true
	}
	f.eachJob(func(_ *history.Submission, j *history.Job) {
		last := map[int]history.Event{}
		for i, e := range j.Events {
			if e.Kind != "status" {
				continue
			}
			if finals[e.From] && (code(e.Cause) != "resumed" || e.From == succeeded || !f.resumed(history.Seen{Job: j.ID}, at(e.At).Add(clockSlack))) {
				report(Violation{Job: j.ID, At: at(e.At), Text: fmt.Sprintf("task %d left %s for %s", e.Task, e.From, e.To), Evidence: fmt.Sprintf("event %d%s", i, brackets(cause(e.Cause)))})
			}
			last[e.Task] = e
		}
		for _, t := range j.Tasks {
			if e, told := last[t.Index]; told && finals[e.To] && e.To != t.Status {
				report(Violation{Job: j.ID, At: at(e.At), Text: fmt.Sprintf("task %d ended as %s, and its record says %s", t.Index, e.To, t.Status), Evidence: "its last event: " + cause(e.Cause)})
			}
		}
	})
}

// resumed reports whether somebody resumed a job after what was seen of it, which was no success, and before another moment.
func (f *file) resumed(seen history.Seen, before history.Time) bool {
	return seen.Status != succeeded && slices.ContainsFunc(f.Resumes, func(r history.Resume) bool {
		return r.Job == seen.Job && r.At >= seen.At && r.At <= before
	})
}

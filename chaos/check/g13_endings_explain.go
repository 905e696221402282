package check

import (
	"fmt"
	"slices"

	"github.com/outlast-dev/outlast/chaos/history"
)

// shown are the causes that rest on what somebody said: without that they are only a claim.
var shown = []string{
	"user_exit", "user_signal", "user_memory", "setup_exit", "preempted", "unreachable", "never_recover", "denied", "quota",
	"no_capacity", "controller_fault", "archive_failed",
}

// endingsExplain: each ending of a job and of its tasks, each recovery and each attempt that was closed has a code and a
// sentence, and evidence where the code is about what somebody said.
func endingsExplain(f *file, report func(Violation)) {
	f.eachJob(func(_ *history.Submission, j *history.Job) {
		if finals[j.Status] {
			if why := unexplained(j.Cause); why != "" {
				report(Violation{Job: j.ID, At: at(j.Ended), Text: fmt.Sprintf("it ended as %s %s", j.Status, why), Evidence: cause(j.Cause)})
			}
		}
		for _, t := range j.Tasks {
			if why := unexplained(t.Cause); finals[t.Status] && why != "" && len(j.Tasks) > 1 {
				report(Violation{Job: j.ID, At: at(t.Ended), Text: fmt.Sprintf("task %d ended as %s %s", t.Index, t.Status, why), Evidence: cause(t.Cause)})
			}
		}
		for i, e := range j.Events {
			why := ""
			switch {
			case e.Kind == "status" && e.To == "RECOVERING":
				why = unexplained(e.Cause)
			case e.Kind == "attempt" && e.To == "closing" && (code(e.Cause) == "" || text(e.Cause) == ""):
				why = "without a cause"
			}
			if why != "" {
				report(Violation{Job: j.ID, At: at(e.At), Text: fmt.Sprintf("attempt %d became %s %s", e.Attempt, e.To, why), Evidence: fmt.Sprintf("event %d%s", i, brackets(cause(e.Cause)))})
			}
		}
	})
}

// unexplained tells what a cause lacks; "" for one that explains.
func unexplained(c *history.Cause) string {
	switch {
	case c == nil || c.Code == "":
		return "without a cause"
	case c.Text == "":
		return "without a sentence"
	case slices.Contains(shown, c.Code) && c.Evidence == "":
		return "without evidence"
	}
	return ""
}

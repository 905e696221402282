package check

import (
	"fmt"
	"strings"

	"github.com/outlast-dev/outlast/chaos/history"
)

// logsOutlive: the log of each job that has ended can be read, and that of one that has succeeded holds all lines that its
// code must have written, in their order.
func logsOutlive(f *file, report func(Violation)) {
	f.eachJob(func(asked *history.Submission, j *history.Job) {
		if !finals[j.Status] || j.Started.IsZero() {
			return
		}
		if j.LogError != "" {
			report(Violation{Job: j.ID, Text: "its log cannot be read", Evidence: j.LogError})
			return
		}
		if j.Status != succeeded {
			return
		}
		if n := inOrder(j.Log, asked.Lines); n < len(asked.Lines) {
			report(Violation{
				Job: j.ID, At: at(j.Ended), Text: fmt.Sprintf("line %d of the %d that its code must have written is not in its log: %q", n+1, len(asked.Lines), asked.Lines[n]),
				Evidence: fmt.Sprintf("the log has %d bytes and ends with %q", len(j.Log), ending(j.Log)),
			})
		}
	})
}

// inOrder counts how many of the wanted lines are in a log, in their order.
func inOrder(log string, want []string) int {
	n := 0
	for line := range strings.SplitSeq(log, "\n") {
		if n < len(want) && strings.Contains(line, want[n]) {
			n++
		}
	}
	return n
}

// ending is the last of a text, for people.
func ending(text string) string {
	const most = 60
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return text
}

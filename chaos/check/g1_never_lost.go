package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/chaos/history"
)

// neverLost: a job that was accepted is of one submission, is known at the end, has ended with a status and a cause that are
// right for it, and was never due for longer than 20 s without anybody taking it while somebody could; nor did a chain of ticks
// stand still so long.
func neverLost(f *file, report func(Violation)) {
	for _, id := range f.shared {
		report(Violation{Job: id, Text: "two submissions were told that it is theirs, so one of them is lost", Evidence: "key " + f.asked[id].Key + " is the last of them"})
	}
	for _, id := range f.accepted {
		j, asked := f.jobs[id], f.asked[id]
		switch {
		case j == nil:
			report(Violation{Job: id, Text: "it was accepted, and nothing is known of it", Evidence: "key " + asked.Key})
		case j.Missing != "":
			report(Violation{Job: id, Text: "it was accepted, and the client does not find it", Evidence: j.Missing})
		case j.Damaged:
			report(Violation{Job: id, Text: "its record cannot be read"})
		case !finals[j.Status]:
			report(Violation{Job: id, Text: "it has not ended, though everything was healed " + f.clock(f.Run.Healed), Evidence: standing(j)})
		case !slices.Contains(asked.Expect, j.Status):
			report(Violation{
				Job: id, At: at(j.Ended), Text: fmt.Sprintf("it ended as %s; right for kind %s is %s", j.Status, asked.Kind, strings.Join(asked.Expect, " or ")),
				Evidence: cause(j.Cause),
			})
		case len(asked.Causes) > 0 && !slices.Contains(asked.Causes, code(j.Cause)):
			report(Violation{
				Job: id, At: at(j.Ended), Text: fmt.Sprintf("it ended as %s for %q; right for kind %s is %s", j.Status, code(j.Cause), asked.Kind, strings.Join(asked.Causes, " or ")),
				Evidence: cause(j.Cause),
			})
		}
	}
	f.gaps(report)
}

// gaps reports the times without a driver, each once.
func (f *file) gaps(report func(Violation)) {
	told := map[string]history.Time{}
	tell := func(s history.Sample, who string, job int64) {
		if told[who] == 0 || s.At.Sub(told[who]) > driveWithin {
			report(Violation{Job: job, At: s.At, Text: fmt.Sprintf("%s was left alone for more than %s while somebody could have driven it", who, driveWithin), Evidence: f.clock(s.At)})
		}
		told[who] = s.At
	}
	for _, s := range f.Samples {
		if f.waited(s.At, s.Overdue, stopsAll) > driveWithin {
			tell(s, "it", s.Job)
		}
		if f.waited(s.At, s.Silence, stopsAll) > driveWithin {
			tell(s, "chain "+s.Chain, 0)
		}
	}
}

// standing tells how far a job has come.
func standing(j *history.Job) string {
	text := j.Status
	if j.Waits != nil {
		text += ", waits: " + cause(j.Waits)
	}
	if n := len(j.Events); n > 0 {
		e := j.Events[n-1]
		text += fmt.Sprintf("; last event: %s %s%s", e.Kind, e.To, brackets(cause(e.Cause)))
	}
	return text
}

func brackets(text string) string {
	if text == "" {
		return ""
	}
	return " [" + text + "]"
}

// cause is a cause on one line.
func cause(c *history.Cause) string {
	if c == nil {
		return ""
	}
	text := c.Code + ": " + c.Text
	if c.Evidence != "" {
		text += ": " + strings.ReplaceAll(c.Evidence, "\n", "; ")
	}
	return text
}

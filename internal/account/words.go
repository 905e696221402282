package account

import (
	"fmt"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// Lasted is a duration in seconds for people, "" for none.
func Lasted(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return render.Duration(time.Duration(seconds * float64(time.Second)))
}

// Ran is how long the user's code ran in an attempt.
func (a Attempt) Ran(now job.Time) string {
	if a.Started == 0 {
		return ""
	}
	end := now
	if a.Ended != 0 {
		end = job.Time(a.Ended)
	}
	return render.Duration(end.Sub(job.Time(a.Started)))
}

// Money is a sum, as exact as it matters.
func Money(sum float64) string {
	switch {
	case sum == 0:
		return "0"
	case sum < 0.0001:
		return "<0.0001"
	case sum < 1:
		return strconv.FormatFloat(sum, 'f', 4, 64)
	default:
		return strconv.FormatFloat(sum, 'f', 2, 64)
	}
}

// Note is the one thing worth knowing about a job beside its status: why it ended or waits, or where it runs. say tells a
// cause, as long as there is room for.
func (j Job) Note(say func(job.Cause) string) string {
	switch {
	case j.Cause != nil && (j.Status.Failure() || j.Status == job.Recovering):
		return say(*j.Cause)
	case j.Waits != nil:
		return "waits: " + say(j.Waits.Cause)
	case j.Cancelling && !j.Status.Terminal():
		return "a cancel was asked for"
	default:
		return j.Where
	}
}

// BeginLine stands before the output of an attempt, where that of several is shown.
func BeginLine(a job.Attempt) string {
	line := fmt.Sprintf("── attempt %d", a.Number)
	if a.Task > 0 {
		line = fmt.Sprintf("── task %d, attempt %d", a.Task, a.Number)
	}
	if a.Offer.Provider != "" {
		line += " on " + Place(a.Offer)
	}
	return line + " ──"
}

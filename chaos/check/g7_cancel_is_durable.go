package check

import (
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// honour is how long a cancel may take beside the code's own grace: a driver may die on it (G1), and the agent has 5 s after
// the grace to say that it has killed.
const honour = driveWithin + 10*time.Second

// cancelIsDurable: after a cancel was acknowledged, no code of the job is started and none runs on for longer than it takes to
// honour it, and the job ends as CANCELLED, unless its code had ended by itself before. A cancel is for one life of its job: what
// comes when somebody has resumed it afterwards is none of its business.
func cancelIsDurable(f *file, report func(Violation)) {
	for _, c := range f.Cancels {
		j := f.jobs[c.Job]
		if c.Got == 0 || c.Late || j == nil || j.Missing != "" {
			continue
		}
		start := f.deadline(c.Got, f.Run.Times.Lease+lateStart, either(stopsSome, ofCloud("dial")))
		stop := f.deadline(c.Got, honour+f.grace(c), either(stopsAll, ofCloud("dial", "terminate", "list")))
		runs, again := f.runs[c.Job], f.again(c)
		for _, r := range runs {
			if r.from >= again {
				break
			}
			if r.from > start {
				report(Violation{Job: c.Job, At: r.from, Text: fmt.Sprintf("its code was started %s after its cancel was acknowledged", about(r.from.Sub(c.Got))), Evidence: fmt.Sprintf("attempt %d on %s; it was %s when it was cancelled", r.attempt, r.where, c.Saw)})
			} else if r.to > stop {
				report(Violation{Job: c.Job, At: r.from, Text: "its code ran on after its cancel was acknowledged " + f.clock(c.Got), Evidence: fmt.Sprintf("attempt %d on %s%s", r.attempt, r.where, f.until(r))})
			}
		}
		if again != forever {
			continue
		}
		if !finals[j.Status] && f.Run.EndedAt > stop {
			report(Violation{Job: c.Job, At: c.Got, Text: fmt.Sprintf("its cancel was acknowledged %s, and it is still %s", f.clock(c.Got), j.Status), Evidence: standing(j)})
		}
		if finals[j.Status] && j.Status != cancelled && !endedBefore(runs, at(j.Ended), c, stop) {
			report(Violation{Job: c.Job, At: c.Got, Text: fmt.Sprintf("its cancel was acknowledged %s, and it is %s", f.clock(c.Got), j.Status), Evidence: fmt.Sprintf("it was %s when it was cancelled; %s", c.Saw, cause(j.Cause))})
		}
	}
}

// again is when the life of a job that was cancelled can have been followed by another one.
func (f *file) again(c history.Cancel) history.Time {
	for _, r := range f.Resumes { // in the order of time
		if r.Job == c.Job && r.At >= c.Got {
			return r.At
		}
	}
	return forever
}

// grace is how long the code of a cancelled job may take to end.
func (f *file) grace(c history.Cancel) time.Duration {
	if c.Grace > 0 {
		return c.Grace
	}
	return f.Run.Times.Grace
}

// endedBefore reports whether a job may have ended otherwise in spite of its cancel: it ended before the cancel can have been
// known, or its code came to its own end before it could be stopped.
func endedBefore(runs []run, ended history.Time, c history.Cancel, stop history.Time) bool {
	if ended != 0 && ended <= c.Got.Add(clockSlack) {
		return true
	}
	if len(runs) == 0 {
		return false
	}
	last := runs[len(runs)-1]
	return last.to <= stop && (last.byself || last.where == "local")
}

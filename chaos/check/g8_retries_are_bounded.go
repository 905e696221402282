package check

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// The waits of the product, as its documents tell them. Each is as much as 40 % shorter or longer by chance.
const (
	chance      = 0.4
	roundGrowth = 1.6 // of the wait between rounds of offers
	roundMost   = 5   // times the first wait
	crashFirst  = time.Second
	crashGrowth = 2 // of the wait before the next machine of code that fails again and again
	crashMost   = 5 * time.Minute
	crashSoon   = time.Minute // after its start; code that ran for longer has not crashed
	createCalls = 5           // for one attempt
	waitSlack   = 300 * time.Millisecond
)

// retriesAreBounded: the wait after each round of offers, and before each machine of code that crashes in a loop, grew as it
// should; an attempt was asked for no more often than five times for each driver that it may have had; and no counter was
// ever higher than at the end.
func retriesAreBounded(f *file, report func(Violation)) {
	f.eachJob(func(_ *history.Submission, j *history.Job) {
		f.rounds(j, report)
		f.crashes(j.ID, report)
		f.creates(j.ID, report)
	})
	f.counters(report)
}

var roundNote = regexp.MustCompile(`every offer failed in round (\d+)`)

// rounds compares the times between rounds of offers with the waits that were due.
func (f *file) rounds(j *history.Job, report func(Violation)) {
	base := f.Run.Times.Backoff
	next := map[int]history.Time{} // by task: before this no other round can have ended
	for _, e := range j.Events {
		if e.Kind != "note" && e.To != "intent" { // a machine that was lost meanwhile ends the wait: the job is recovered at once
			next[e.Task] = 0
		}
		m := roundNote.FindStringSubmatch(text(e.Cause))
		if code(e.Cause) != "backoff" || m == nil || base == 0 {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		now := at(e.At)
		if early := next[e.Task].Sub(now); next[e.Task] != 0 && early > waitSlack {
			report(Violation{Job: j.ID, At: now, Text: fmt.Sprintf("round %d of offers ended %s before the wait in front of it can have been over", n, about(early)), Evidence: fmt.Sprintf("the first wait is %s, and grows by %g", base, roundGrowth)})
		}
		wait := float64(base) * min(math.Pow(roundGrowth, float64(n-1)), roundMost) * (1 - chance)
		next[e.Task] = now.Add(time.Duration(wait))
	}
}

func text(c *history.Cause) string {
	if c == nil {
		return ""
	}
	return c.Text
}

// crashes compares the times between runs of code that fails soon after its start with the waits that were due.
func (f *file) crashes(id int64, report func(Violation)) {
	n := 0
	runs := f.runs[id]
	for i, r := range runs {
		if i > 0 && runs[i-1].task != r.task {
			n = 0
		}
		if i > 0 && n > 1 {
			wait := min(time.Duration(float64(crashFirst)*math.Pow(crashGrowth, float64(n-2))), crashMost)
			least := time.Duration(float64(wait) * (1 - chance))
			if got := r.from.Sub(runs[i-1].to); got < least-waitSlack {
				report(Violation{Job: id, At: r.from, Text: fmt.Sprintf("code that had crashed %d times in a row got its next machine after %s", n, about(got)), Evidence: fmt.Sprintf("at least %s was due; attempt %d", about(least), r.attempt)})
			}
		}
		switch {
		case !r.byself || r.exit == 0:
			// a lost machine says nothing of the code
		case r.to != forever && f.forgot(r.to, r.to.Add(clockSlack)):
			// it is not counted any more
		case r.to.Sub(r.from) < crashSoon:
			n++
		default:
			n = 0
		}
	}
}

// creates counts the calls for each attempt. A driver that takes over from another one begins anew.
func (f *file) creates(id int64, report func(Violation)) {
	type key struct{ task, attempt int }
	type calls struct {
		n           int
		first, last history.Time
	}
	all := map[key]*calls{}
	for _, e := range f.ledger[id] {
		if e.Op != "create" && e.Op != "again" && e.Op != "refused" {
			continue
		}
		k := key{e.Task, e.Attempt}
		if all[k] == nil {
			all[k] = &calls{first: e.At}
		}
		all[k].n++
		all[k].last = e.At
	}
	for k, c := range all {
		drivers := 1
		for _, x := range f.Faults {
			if stopsSome(x) && x.At <= c.last && end(x) >= c.first {
				drivers++
			}
		}
		if c.n > createCalls*drivers {
			report(Violation{Job: id, At: c.last, Text: fmt.Sprintf("attempt %d of task %d was asked for %d times", k.attempt, k.task, c.n), Evidence: fmt.Sprintf("within %s, with %d drivers at most", about(c.last.Sub(c.first)), drivers)})
		}
	}
}

// counters compares the counters that clients saw with those at the end.
func (f *file) counters(report func(Violation)) {
	type counts struct{ recoveries, attempts, restarts int }
	told := map[int64]bool{}
	for _, s := range f.Seen {
		j := f.jobs[s.Job]
		again := f.resumed(history.Seen{Job: s.Job, At: s.At}, forever) // which counts restarts anew
		if j == nil || j.Missing != "" || told[s.Job] || f.forgot(s.At, max(s.At, s.Got)) {
			continue
		}
		end := counts{recoveries: j.Recoveries}
		for _, t := range j.Tasks {
			end.attempts += t.Attempts
			end.restarts += t.Restarts
		}
		if s.Recoveries > end.recoveries || s.Attempts > end.attempts || s.Restarts > end.restarts && !again {
			told[s.Job] = true
			report(Violation{Job: s.Job, At: s.At, Text: "a counter of its went back", Evidence: fmt.Sprintf("recoveries, attempts, restarts: %d, %d, %d %s; %d, %d, %d at the end", s.Recoveries, s.Attempts, s.Restarts, f.clock(s.At), end.recoveries, end.attempts, end.restarts)})
		}
	}
}

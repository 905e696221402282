package check

import (
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// oneDriver: what a driver did that had lost its lease took effect nowhere. On the provider's side no machine was made for
// an attempt after somebody had ended it, no attempt had two machines at a time, and no code was started on a machine long
// after it was told to end. In the record each change of status begins where the one before ended, times do not go back,
// attempts are counted up by one, and none is closed twice or runs after it was closed.
func oneDriver(f *file, report func(Violation)) {
	for _, id := range f.accepted {
		f.staleCalls(id, report)
		if j := f.jobs[id]; j != nil {
			staleWrites(id, j.Events, report)
		}
	}
}

// lateStart is how long after the order to end a machine code may still be started on it by a call that was under way, beside
// a lease: such a call names an attempt that is over, and G3 waits for its end as for any other.
const lateStart = 5 * time.Second

func (f *file) staleCalls(id int64, report func(Violation)) {
	type key struct{ task, attempt int }
	ordered := map[key]history.Entry{} // to end
	begun := map[key]history.Time{}
	living := map[key]*machine{}
	for _, e := range f.ledger[id] {
		k := key{e.Task, e.Attempt}
		m := f.machines[e.World+"/"+e.Machine]
		begun[k] = first(begun[k], e.At)
		switch e.Op {
		case "create":
			forgotten := f.forgot(begun[k].Add(-clockSlack), e.At) // then the attempt is begun once more
			if o, over := ordered[k]; over && e.At > o.At && !forgotten {
				report(Violation{
					Job: id, At: e.At, Text: fmt.Sprintf("%s made a machine for attempt %d after %s had ended that attempt", e.By, e.Attempt, o.By),
					Evidence: fmt.Sprintf("machine %s, %s later", e.Machine, about(e.At.Sub(o.At))),
				})
			}
			if old := living[k]; old != nil && old != m && old.gone > e.At && !forgotten {
				report(Violation{
					Job: id, At: e.At, Text: fmt.Sprintf("attempt %d of task %d has two machines", e.Attempt, e.Task),
					Evidence: fmt.Sprintf("%s, and %s by %s", old.name, e.Machine, e.By),
				})
			}
			living[k] = m
		case "terminate":
			if e.By != "" {
				ordered[k] = e
			}
		case "started_again": // refused by the machine, but asked for
			report(Violation{
				Job: id, At: e.At, Text: e.By + " would have started another attempt's code on the machine of one",
				Evidence: fmt.Sprintf("machine %s of attempt %d, token %s", e.Machine, e.Attempt, e.Token),
			})
		case "start":
			if m.ordered != 0 && e.At.Sub(m.ordered) > f.Run.Times.Lease+lateStart {
				report(Violation{
					Job: id, At: e.At, Text: e.By + " started the code on a machine that had been told to end",
					Evidence: fmt.Sprintf("machine %s, %s later", e.Machine, about(e.At.Sub(m.ordered))),
				})
			}
		}
	}
}

const (
	// clockSlack is by how much the times that two drivers take for the same moment may differ: a slow round trip to Redis.
	clockSlack = 5 * time.Second
	// kept is how many events Redis keeps of a job; of more, the first are gone.
	kept = 200
)

// staleWrites finds the traces of two drivers in a job's history, which stands in the order of the commits.
func staleWrites(id int64, events []history.Event, report func(Violation)) {
	type key struct{ task, attempt int }
	status, begun, closed := map[int]string{}, map[int]int{}, map[key]bool{}
	whole := len(events) < kept
	var last history.Time
	for i, e := range events {
		now := at(e.At)
		if last.Sub(now) > clockSlack {
			report(Violation{Job: id, At: now, Text: "a commit was written that was decided before others that are there", Evidence: fmt.Sprintf("event %d lies %s before the one in front of it", i, about(last.Sub(now)))})
		}
		last = max(last, now)
		switch k := (key{e.Task, e.Attempt}); {
		case e.Kind == "status":
			was, known := status[e.Task]
			if !known && whole {
				was, known = "PENDING", true
			}
			if known && was != e.From && e.To != "PENDING" {
				report(Violation{Job: id, At: now, Text: fmt.Sprintf("task %d moved from %s, and had been %s", e.Task, e.From, was), Evidence: fmt.Sprintf("event %d, to %s", i, e.To)})
			}
			if e.To == "RUNNING" && closed[k] {
				report(Violation{Job: id, At: now, Text: fmt.Sprintf("attempt %d of task %d runs after it was closed", e.Attempt, e.Task), Evidence: fmt.Sprintf("event %d", i)})
			}
			status[e.Task] = e.To
		case e.Kind == "attempt" && e.To == "intent":
			if e.Attempt <= begun[e.Task] {
				report(Violation{Job: id, At: now, Text: fmt.Sprintf("attempt %d of task %d was begun when %d had been", e.Attempt, e.Task, begun[e.Task]), Evidence: fmt.Sprintf("event %d", i)})
			}
			begun[e.Task] = max(begun[e.Task], e.Attempt)
		case e.Kind == "attempt" && e.To == "closing":
			if closed[k] {
				report(Violation{Job: id, At: now, Text: fmt.Sprintf("attempt %d of task %d was closed twice", e.Attempt, e.Task), Evidence: fmt.Sprintf("event %d", i)})
			}
			closed[k] = true
		}
	}
}

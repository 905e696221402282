package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// onlyProof: whatever a recovery says was its reason really happened before. A machine that was taken or vanished was taken,
// a notice was given, a machine without an answer could not be reached for as long as a verdict takes, a code that failed did.
// And when the next attempt's code started, the machine before was gone.
func onlyProof(f *file, report func(Violation)) {
	f.eachJob(func(asked *history.Submission, j *history.Job) {
		if asked.NoRecovery && j.Recoveries > 0 {
			report(Violation{Job: j.ID, Text: fmt.Sprintf("it was recovered %d times, and nobody ever took a machine of its", j.Recoveries), Evidence: recoveries(j)})
		}
		for _, e := range j.Events {
			if e.Kind == "status" && e.To == "RECOVERING" {
				if why := f.unproven(j, e); why != "" {
					report(Violation{Job: j.ID, At: at(e.At), Text: fmt.Sprintf("attempt %d was given up %s for %q, %s", e.Attempt, f.clock(at(e.At)), code(e.Cause), why), Evidence: cause(e.Cause)})
				}
			}
		}
		f.replaced(j, report)
	})
}

func recoveries(j *history.Job) string {
	var causes []string
	for _, e := range j.Events {
		if e.Kind == "status" && e.To == "RECOVERING" {
			causes = append(causes, cause(e.Cause))
		}
	}
	return strings.Join(causes, "; ")
}

// unproven tells what does not hold of the reason of a recovery; "" if nothing speaks against it.
func (f *file) unproven(j *history.Job, e history.Event) string {
	now := at(e.At).Add(clockSlack)
	m := f.machineOf(j.ID, e.Task, e.Attempt)
	switch code(e.Cause) {
	case "preempted", "machine_vanished":
		if m != nil && m.gone > now && (m.notice == 0 || m.notice > now) {
			return "and the provider had not taken it" + f.stillThere(m)
		}
		if m == nil && !f.tookLocal(j, e, now) {
			return "and nobody had taken it"
		}
	case "preemption_notice":
		if m != nil && (m.notice == 0 || m.notice > now) {
			return "and the provider had given no notice"
		}
		if m == nil && !f.tookLocal(j, e, now) {
			return "and nobody had given notice"
		}
	case "unreachable":
		if !f.unreached(at(e.At)) {
			return "and no machine had been out of reach for " + about(f.Run.Times.ProbeTime)
		}
	case "agent_lost":
		if m != nil && m.gone > now && !f.during(m.made, now, ofCloud("dial")) {
			return "and nothing had happened to its agent" + f.stillThere(m)
		}
	case "user_exit", "user_signal", "user_memory", "setup_exit":
		return f.didNotFail(j.ID, e)
	case "":
		return "and does not say why"
	}
	return ""
}

func (f *file) stillThere(m *machine) string {
	if m.gone == forever {
		return ": it is still there"
	}
	return fmt.Sprintf(": it was %s %s", m.how, f.clock(m.gone))
}

// tookLocal reports whether the machine of an attempt on the local provider had been taken on purpose.
func (f *file) tookLocal(j *history.Job, e history.Event, now history.Time) bool {
	names := map[string]bool{}
	for _, a := range j.Attempts {
		if a.Task == e.Task && a.Number == e.Attempt {
			for _, n := range a.Nodes {
				names[n.ID] = true
			}
		}
	}
	for _, p := range f.Preemptions {
		if p.At <= now && (names[p.Machine] || p.Job == j.ID) {
			return true
		}
	}
	for _, x := range f.Faults {
		if names[x.Target] && x.At <= now {
			return true
		}
	}
	return false
}

// unreached reports whether machines could not be reached for as long as a verdict takes, up to a moment. Two such faults
// that meet are one, and a probe that began during the last of them may be answered for a while after its end.
func (f *file) unreached(now history.Time) bool {
	const probing = 15 * time.Second
	var from, to history.Time
	for _, x := range f.Faults { // in the order of their begin
		if x.Op != "dial" || x.Failed != "" || x.At > now {
			continue
		}
		if x.At.Sub(to) > clockSlack || to == 0 {
			from = x.At
		}
		to = max(to, min(end(x), now))
		if now.Sub(to) <= probing && to.Sub(from) >= f.Run.Times.ProbeTime-time.Second {
			return true
		}
	}
	return false
}

// didNotFail tells if the code of an attempt that was restarted for a failure had not failed.
func (f *file) didNotFail(id int64, e history.Event) string {
	for _, r := range f.runs[id] {
		if r.task != e.Task || r.attempt != e.Attempt || r.where == "local" {
			continue
		}
		switch {
		case r.to > at(e.At).Add(clockSlack):
			return "and its code still ran"
		case r.byself && r.exit == 0:
			return "and its code had succeeded"
		}
	}
	return ""
}

// replaced checks of each attempt whose code was followed by that of another one that it was closed for a reason, and that
// its machine was gone when the next code started.
func (f *file) replaced(j *history.Job, report func(Violation)) {
	type key struct{ task, attempt int }
	closed := map[key]string{}
	for _, e := range j.Events {
		if e.Kind == "attempt" && e.To == "closing" {
			closed[key{e.Task, e.Attempt}] = cause(e.Cause)
		}
	}
	runs := f.runs[j.ID]
	for i := 1; i < len(runs); i++ {
		old, next := runs[i-1], runs[i]
		if old.attempt == next.attempt && old.task == next.task {
			continue // G3 has it
		}
		if m := f.machineOf(j.ID, old.task, old.attempt); m != nil && m.gone > next.from {
			report(Violation{Job: j.ID, At: next.from, Text: fmt.Sprintf("the code of attempt %d started %s without proof that the machine of attempt %d was gone", next.attempt, f.clock(next.from), old.attempt), Evidence: "machine " + m.name + f.stillThere(m)})
		}
		if _, yes := closed[key{old.task, old.attempt}]; !yes && len(j.Events) < kept && !f.forgot(old.from, next.from) {
			report(Violation{Job: j.ID, At: next.from, Text: fmt.Sprintf("attempt %d was followed by attempt %d and never closed", old.attempt, next.attempt)})
		}
	}
}

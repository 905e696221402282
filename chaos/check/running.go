package check

import (
	"encoding/json"
	"math"

	"github.com/outlast-dev/outlast/chaos/history"
)

// forever is the end of what has no end in the history.
const forever = history.Time(math.MaxInt64)

// machine is a machine of the sim, as its ledger tells.
type machine struct {
	name    string
	job     int64
	task    int
	attempt int
	made    history.Time
	ordered history.Time // when somebody of the fleet told it to end; 0 if nobody did
	notice  history.Time // when the provider said that it will take it; 0 if it did not
	gone    history.Time // nothing runs on it from then on; forever if it is still there
	how     string       // preempted or terminated; "" if it is still there
}

// run is a time in which the user's code ran in one attempt. For local machines it is what is certain of it: from its first
// to its last own word.
type run struct {
	where   string // machine or process
	task    int
	attempt int
	from    history.Time
	to      history.Time // forever if it never ended
	exit    int
	byself  bool // it ended before anybody told it to
	ended   bool // how it ended is known: always for the sim's, else if the code said so itself
}

// plan is the detail of a ledger's start and stop.
type plan struct {
	Ends history.Time `json:"ends"`
	Exit int          `json:"exit"`
}

// readLedger works out what the machines of the sim did, and when code ran on them.
func (f *file) readLedger() {
	started := map[string]*run{}
	namesakes := map[string]bool{} // machines
	var order []string
	for _, e := range f.Ledger {
		name := e.World + "/" + e.Machine
		if f.ofNamesake(e.Job, e.At) {
			namesakes[name] = true
		}
		if !namesakes[name] {
			f.ledger[e.Job] = append(f.ledger[e.Job], e)
		}
		m := f.machines[name]
		if m == nil {
			m = &machine{name: e.Machine, job: e.Job, task: e.Task, attempt: e.Attempt, gone: forever}
			f.machines[name] = m
		}
		var p plan
		if e.Op == "start" || e.Op == "stop" {
			_ = json.Unmarshal([]byte(e.Detail), &p) // one that cannot be read has no end
		}
		switch e.Op {
		case "create":
			m.made = e.At
		case "notice":
			m.notice = first(m.notice, e.At)
		case "terminate":
			if e.By != "" { // else the provider takes back what it made by halves
				m.ordered = first(m.ordered, e.At)
			}
		case "terminated", "preempted":
			m.gone, m.how = min(m.gone, e.At), e.Op
		case "start":
			r := &run{where: e.Machine, task: e.Task, attempt: e.Attempt, from: e.At, to: forever, exit: p.Exit, ended: true}
			if p.Ends > 0 {
				r.to, r.byself = p.Ends, true
			}
			if started[name] != nil { // the same machine once more: kept apart, so that G3 sees both
				name += "+"
			}
			if started[name] == nil && !namesakes[name] {
				order = append(order, name)
			}
			started[name] = r
		case "stop":
			if r := started[name]; r != nil && p.Ends > 0 && p.Ends < r.to {
				r.to, r.byself = p.Ends, false
			}
		}
	}
	for _, name := range order {
		r := started[name]
		m := f.machines[trimPlus(name)]
		if m.gone < r.to {
			r.to, r.byself = m.gone, false
		}
		f.runs[m.job] = append(f.runs[m.job], *r)
	}
}

// trimPlus gives the machine of a run's name.
func trimPlus(name string) string {
	for len(name) > 0 && name[len(name)-1] == '+' {
		name = name[:len(name)-1]
	}
	return name
}

// first is the earlier of two times, of which 0 is none.
func first(a, b history.Time) history.Time {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// readTraces works out when code ran on local machines.
func (f *file) readTraces() {
	type key struct {
		job           int64
		task, attempt int
		pid           int
	}
	runs := map[key]*run{}
	var order []key
	for _, t := range f.Traces {
		if t.Op == "double" {
			continue // it ran nothing: G3 has it
		}
		k := key{t.Job, t.Task, t.Attempt, t.PID}
		r := runs[k]
		if r == nil {
			r = &run{where: "local", task: t.Task, attempt: t.Attempt, from: t.At, to: t.At}
			runs[k] = r
			order = append(order, k)
		}
		r.from, r.to = min(r.from, t.At), max(r.to, t.At)
		if t.Op == "end" {
			r.ended = true
		}
	}
	for _, k := range order {
		if f.ofNamesake(k.job, runs[k].from) {
			f.namesakes = append(f.namesakes, k.job)
			continue
		}
		f.runs[k.job] = append(f.runs[k.job], *runs[k])
	}
}

// machineOf is the sim's machine of an attempt that was made last; nil if there was none.
func (f *file) machineOf(job int64, task, attempt int) *machine {
	var found *machine
	for _, e := range f.ledger[job] {
		if e.Op == "create" && e.Task == task && e.Attempt == attempt {
			found = f.machines[e.World+"/"+e.Machine]
		}
	}
	return found
}

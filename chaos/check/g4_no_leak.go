package check

import (
	"fmt"

	"github.com/outlast-dev/outlast/chaos/history"
)

// noLeak: one collector interval after the last end no machine is there that may cost money, neither by the word of the
// clouds nor by the ledger of the sim, and no process of a local machine. Machines of jobs that have not ended are G1's.
func noLeak(f *file, report func(Violation)) {
	told := map[string]bool{}
	leak := func(name string, id int64, attempt int, text string) {
		if told[name] || f.goesOn(id) {
			return
		}
		told[name] = true
		report(Violation{Job: id, Text: fmt.Sprintf("machine %s of attempt %d is still there, %s after everything had ended", name, attempt, f.Run.Times.Collector), Evidence: text})
	}
	for _, m := range f.Machines {
		if !m.Ended {
			leak(m.ID, m.Job, m.Attempt, "its provider says "+m.State)
		}
	}
	for _, e := range f.Ledger {
		m := f.machines[e.World+"/"+e.Machine]
		if e.Op == "create" && m.gone == forever {
			leak(m.name, m.job, m.attempt, "nothing in the ledger has ended it")
		}
	}
	for _, p := range f.Processes {
		report(Violation{At: p.At, Text: fmt.Sprintf("process %d of machine %s is still there", p.PID, p.Machine), Evidence: p.Command})
	}
}

// goesOn reports whether a job is known not to have ended.
func (f *file) goesOn(id int64) bool {
	j := f.jobs[id]
	return j != nil && !finals[j.Status] && j.Missing == "" || f.Run.CalmAt == history.Time(0) && j == nil
}

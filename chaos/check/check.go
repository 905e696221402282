package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/outlast-dev/outlast/chaos/history"
)

// Violation is a guarantee that was broken, once.
type Violation struct {
	Guarantee string       // "G1" to "G13"
	Job       int64        // 0 if it is not about one job
	At        history.Time // 0 if it has no moment
	Text      string       // what was broken, in a sentence
	Evidence  string       // what shows it
}

// String is the violation on one line, for people.
func (v Violation) String() string {
	line := v.Guarantee + ": "
	if v.Job != 0 {
		line += fmt.Sprintf("job %d: ", v.Job)
	}
	line += v.Text
	if v.Evidence != "" {
		line += " (" + v.Evidence + ")"
	}
	return line
}

// judge looks for what broke one guarantee and reports each finding.
type judge struct {
	guarantee string
	means     string // what it holds against a run, in a few words for a table
	find      func(f *file, report func(Violation))
}

// judges are all of them, in the order of the guarantees.
var judges = []judge{
	{"G1", "every accepted job comes to a right end, and is driven all the time", neverLost},
	{"G2", "no stale driver wrote anything or touched a machine", oneDriver},
	{"G3", "the code of a job never ran twice at a time", oneIncarnation},
	{"G4", "no machine and no process is left", noLeak},
	{"G5", "no ending changed", terminalIsFinal},
	{"G6", "every recovery had its proof", onlyProof},
	{"G7", "every cancel was honoured", cancelIsDurable},
	{"G8", "waits grew, and no counter went back", retriesAreBounded},
	{"G9", "who waited held no launch slot", waitingHoldsNothing},
	{"G10", "no outage became a verdict", outageIsAPause},
	{"G11", "every log was whole", logsOutlive},
	{"G12", "the planted secret was nowhere", secretsStaySecret},
	{"G13", "every ending and every recovery explained itself", endingsExplain},
}

// Judge tells which guarantees a run has broken: none is what is hoped for. They come in the order of the guarantees, jobs
// and times.
func Judge(h history.History) []Violation {
	var found []Violation
	f := open(h)
	for _, j := range judges {
		j.find(f, func(v Violation) {
			v.Guarantee = j.guarantee
			found = append(found, v)
		})
	}
	order := map[string]int{}
	for i, j := range judges {
		order[j.guarantee] = i
	}
	slices.SortStableFunc(found, func(a, b Violation) int {
		return cmp.Or(order[a.Guarantee]-order[b.Guarantee], cmp.Compare(a.Job, b.Job), cmp.Compare(a.At, b.At))
	})
	return found
}

// Guarantee is what one judge looks after.
type Guarantee struct{ Name, Means string }

// Guarantees lists what is judged, in order.
func Guarantees() []Guarantee {
	out := make([]Guarantee, len(judges))
	for i, j := range judges {
		out[i] = Guarantee{j.guarantee, j.means}
	}
	return out
}

package account

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/render"
)

// Plan is what a job may expect before anything is started, as programs read it.
type Plan struct {
	Name   string        `json:"name"`
	Fits   bool          `json:"fits"`             // every task can be served
	Doubts []string      `json:"doubts,omitempty"` // why there may be more than is known
	Unused []string      `json:"unused,omitempty"` // what of the job file has no effect anywhere
	Tasks  []PlannedTask `json:"tasks"`
}

// PlannedTask is what one task may expect.
type PlannedTask struct {
	Index    int            `json:"index"`
	Name     string         `json:"name,omitempty"`
	Fits     bool           `json:"fits"`
	Idle     bool           `json:"idle,omitempty"` // it has nothing to run, and gets no machine
	Offers   []PlannedOffer `json:"offers"`         // those that would be tried, in this order
	RuledOut []PlannedOffer `json:"ruled_out"`
	Notes    []place.Note   `json:"notes,omitempty"` // what has no effect
	Then     []string       `json:"then,omitempty"`  // what happens after a loss or a failure
	Cause    *job.Cause     `json:"cause,omitempty"` // why nothing fits
}

// PlannedOffer is an offer with what rules it out.
type PlannedOffer struct {
	job.Offer
	Reason string `json:"reason,omitempty"`
}

// PlanOf looks ahead for all tasks of a job.
func PlanOf(r job.Request, m place.Market) Plan {
	p := Plan{Name: r.Name, Fits: true, Doubts: m.Doubts, Tasks: []PlannedTask{}}
	for i, t := range r.Tasks {
		planned := planTask(i, t, m)
		p.Fits = p.Fits && planned.Fits
		p.Tasks = append(p.Tasks, planned)
	}
	return p
}

func planTask(index int, t job.TaskRequest, m place.Market) PlannedTask {
	p := PlannedTask{Index: index, Name: t.Name, Offers: []PlannedOffer{}, RuledOut: []PlannedOffer{}}
	if t.Run == "" {
		p.Fits, p.Idle = true, true
		return p
	}
	ahead := place.OutlookOf(t, m.Catalogs)
	p.Fits, p.Notes, p.Cause = ahead.Fits(), ahead.Notes, ahead.Hopeless()
	for _, r := range ahead.Order {
		if r.Standing <= place.Late {
			p.Offers = append(p.Offers, PlannedOffer{Offer: r.Offer})
		} else {
			p.RuledOut = append(p.RuledOut, PlannedOffer{Offer: r.Offer, Reason: r.Reason})
		}
	}
	if p.Fits {
		p.Then = then(t.Recovery, p.Offers[0].Offer, ahead.Next)
	}
	return p
}

// then says what happens when the first machine is lost, and when the code fails.
func then(r job.Recovery, first job.Offer, next *job.Offer) []string {
	var out []string
	switch {
	case r.Strategy == job.Never:
		out = append(out, "if the machine is lost, the task ends: job_recovery is NEVER")
	case next != nil && *next == first:
		out = append(out, fmt.Sprintf("if %s is lost, the same is tried first", Short(first)))
	case next != nil:
		out = append(out, fmt.Sprintf("if %s is lost, %s at %s per hour is tried first", Short(first), Short(*next), Price(next.Price)))
	}
	if n := r.MaxRestartsOnErrors; n > 0 {
		out = append(out, "if the code fails, it is restarted up to "+count(n, "time", "times"))
	}
	if len(r.RecoverOnExitCodes) > 0 {
		codes := make([]string, len(r.RecoverOnExitCodes))
		for i, c := range r.RecoverOnExitCodes {
			codes[i] = strconv.Itoa(c)
		}
		out = append(out, "if it ends with exit code "+strings.Join(codes, " or ")+", it is restarted as often as it takes")
	}
	return out
}

// Price is what a machine costs per hour, as exact as it matters.
func Price(p float64) string {
	if p == 0 {
		return "0"
	}
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(p, 'f', 4, 64), "0"), ".")
}

// Short is an offer in a sentence: where and what it is.
func Short(o job.Offer) string { return render.Text(o.String()) }

// Accelerators are those of a machine, as in a job file: A100:8.
func Accelerators(o job.Offer) string {
	if o.Accelerator == "" {
		return ""
	}
	return render.Text(fmt.Sprintf("%s:%g", o.Accelerator, o.AcceleratorCount))
}

// Label names a task where a job has several.
func (t PlannedTask) Label() string {
	s := fmt.Sprintf("task %d", t.Index)
	if t.Name != "" {
		s += " (" + render.Text(t.Name) + ")"
	}
	return s
}

// Problems says of each task that nothing can serve why that is so, one line each.
func (p Plan) Problems() []string {
	var out []string
	for _, t := range p.Tasks {
		if t.Cause == nil {
			continue
		}
		prefix := ""
		if len(p.Tasks) > 1 {
			prefix = t.Label() + ": "
		}
		out = append(out, prefix+Explain(*t.Cause))
	}
	return out
}

// Notes says what of the job has no effect, one line each.
func (p Plan) Notes() []string {
	out := slices.Clone(p.Unused)
	for _, t := range p.Tasks {
		for _, n := range t.Notes {
			prefix := ""
			if len(p.Tasks) > 1 {
				prefix = t.Label() + ": "
			}
			out = append(out, prefix+render.Text(n.String()))
		}
	}
	return out
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

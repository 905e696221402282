package main

import (
	"fmt"
	"slices"

	"github.com/outlast-dev/outlast/chaos/history"
)

type violation struct {
	Guarantee string
	Job       int64
	What      string
}

func (v violation) String() string { return fmt.Sprintf("job %d: %s", v.Job, v.What) }

// judged is a stand-in until package check is there.
func judged(h history.History) []violation {
	var all []violation
	jobs := map[int64]history.Job{}
	for _, j := range h.Jobs {
		jobs[j.ID] = j
	}
	for _, s := range h.Submissions {
		for _, id := range s.Jobs {
			if j := jobs[id]; !slices.Contains(s.Expect, j.Status) {
				c := ""
				if j.Cause != nil {
					c = j.Cause.Code + " " + j.Cause.Text + " " + j.Cause.Evidence
				}
				all = append(all, violation{"G1", id, fmt.Sprintf("%s (%s): %q, want %v: %s", s.Key, s.Kind, j.Status, s.Expect, c)})
			}
		}
	}
	for _, t := range h.Traces {
		if t.Op == "double" {
			all = append(all, violation{"G3", t.Job, "double"})
		}
	}
	for _, m := range h.Machines {
		if !m.Ended {
			all = append(all, violation{"G4", m.Job, fmt.Sprintf("%+v", m)})
		}
	}
	for _, p := range h.Processes {
		all = append(all, violation{"G4", 0, fmt.Sprintf("%+v", p)})
	}
	for _, l := range h.Leaks {
		all = append(all, violation{"G12", 0, fmt.Sprintf("%+v", l)})
	}
	return all
}

package place

import (
	"fmt"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// Match reports whether o is a machine of the kind that want describes. Empty and zero fields of want accept
// anything, except UseSpot: a spot machine is only taken by someone who asked for one, and one who asked for a spot
// machine does not get an on-demand one at its price.
func Match(want job.Want, o job.Offer) bool { return mismatch(want, o) == "" }

// mismatch says what of o is not as want asks for, or "" if nothing.
func mismatch(want job.Want, o job.Offer) string {
	switch {
	case want.Provider != "" && want.Provider != o.Provider:
		return fmt.Sprintf("provider %q is not %q", o.Provider, want.Provider)
	case want.Region != "" && want.Region != o.Region:
		return fmt.Sprintf("region %q is not %q", o.Region, want.Region)
	case want.Zone != "" && want.Zone != o.Zone:
		return fmt.Sprintf("zone %q is not %q", o.Zone, want.Zone)
	case want.UseSpot && !o.Spot:
		return "on-demand, a spot machine is wanted"
	case !want.UseSpot && o.Spot:
		return "spot, an on-demand machine is wanted"
	case !want.CPUs.Accepts(o.CPUs):
		return fmt.Sprintf("%g CPUs, %s wanted", o.CPUs, amount(want.CPUs))
	case !want.MemoryGB.Accepts(o.MemoryGB):
		return fmt.Sprintf("%g GB of memory, %s wanted", o.MemoryGB, amount(want.MemoryGB))
	default:
		return ""
	}
}

// amount writes q as in a job file.
func amount(q job.Quantity) string {
	if q.AtLeast {
		return fmt.Sprintf("%g+", q.N)
	}
	return fmt.Sprintf("%g", q.N)
}

// firstMatch returns the index of the first entry of r that o matches, or -1 and what is wrong with o for each.
// Resources without entries accept any on-demand machine, as an empty job file does.
func firstMatch(r job.Resources, o job.Offer) (int, string) {
	wants := r.Any
	if len(wants) == 0 {
		wants = []job.Want{{}}
	}
	var wrong []string
	for i, w := range wants {
		m := mismatch(w, o)
		if m == "" {
			return i, ""
		}
		if len(wrong) == 0 || wrong[len(wrong)-1] != m {
			wrong = append(wrong, m)
		}
	}
	return -1, strings.Join(wrong, "; ")
}

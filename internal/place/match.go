package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// Match reports whether o is a machine of the kind that want describes. Empty and zero fields of want accept anything,
// with two exceptions. A spot machine is only taken by someone who asked for one, and one who asked for a spot machine
// does not get an on-demand one at its price. And a machine with accelerators is only taken by someone who asked for
// them, or for its type by name, however cheap it is: others wait for such machines.
//
// What a provider makes of the fields that are no property of an offer, [Support] tells.
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
	case want.Type != "" && want.Type != o.Type:
		return fmt.Sprintf("type %q is not %q", o.Type, want.Type)
	case want.UseSpot && !o.Spot:
		return "on-demand, a spot machine is wanted"
	case !want.UseSpot && o.Spot:
		return "spot, an on-demand machine is wanted"
	case !want.CPUs.Accepts(o.CPUs):
		return fmt.Sprintf("%g CPUs, %s wanted", o.CPUs, amount(want.CPUs))
	case !want.MemoryGB.Accepts(o.MemoryGB):
		return fmt.Sprintf("%g GB of memory, %s wanted", o.MemoryGB, amount(want.MemoryGB))
	case want.Accelerator != "" && !sameAccelerator(want, o):
		return fmt.Sprintf("%s, %s wanted", accelerators(o.Accelerator, o.AcceleratorCount), accelerators(want.Accelerator, want.AcceleratorCount))
	case want.Accelerator == "" && want.Type == "" && o.Accelerator != "":
		return "with accelerators, none are wanted"
	case want.MaxPrice > 0 && o.Price > want.MaxPrice:
		return fmt.Sprintf("%g per hour, at most %g wanted", o.Price, want.MaxPrice)
	default:
		return ""
	}
}

// sameAccelerator reports whether o has the accelerators of want: as many as that, not more, as in SkyPilot. Names are
// the same in upper and lower case.
func sameAccelerator(want job.Want, o job.Offer) bool {
	return strings.EqualFold(want.Accelerator, o.Accelerator) &&
		(want.AcceleratorCount == 0 || want.AcceleratorCount == o.AcceleratorCount)
}

// accelerators writes an amount of accelerators as in a job file.
func accelerators(name string, count float64) string {
	switch {
	case name == "":
		return "no accelerators"
	case count == 0:
		return name
	default:
		return fmt.Sprintf("%s:%g", name, count)
	}
}

// amount writes q as in a job file.
func amount(q job.Quantity) string {
	if q.AtLeast {
		return fmt.Sprintf("%g+", q.N)
	}
	return fmt.Sprintf("%g", q.N)
}

// wants are the acceptable kinds of machine. Resources without any accept what an empty job file does: a machine that is
// on demand and has no accelerators.
func wants(r job.Resources) []job.Want {
	if len(r.Any) == 0 {
		return []job.Want{{}}
	}
	return r.Any
}

// reasonsShown bounds what is told of one offer: resources may have hundreds of entries, and a provider thousands of
// offers.
const reasonsShown = 3

// firstMatch returns the index of the first wish that o may serve, or -1 and what is wrong with o for each.
func firstMatch(in Input, o job.Offer) (int, string) {
	support, known := in.Support[o.Provider]
	var wrong []string
	for i, w := range wants(in.Resources) {
		var m string
		if known && (w.Provider == "" || w.Provider == o.Provider) {
			m = support.refusal(o.Provider, append(wantFields(w), in.Beyond...)) // first: it is the same for all offers
		}
		if m = cmp.Or(m, mismatch(w, o)); m == "" {
			return i, ""
		}
		if !slices.Contains(wrong, m) {
			wrong = append(wrong, m)
		}
	}
	if more := len(wrong) - reasonsShown; more > 0 {
		wrong = append(wrong[:reasonsShown], fmt.Sprintf("and %d more reasons", more))
	}
	return -1, strings.Join(wrong, "; ")
}

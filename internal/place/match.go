package place

import (
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
	_, text := compare(want, o)
	return text
}

// compare returns how many of the properties of o, in their order, are as want asks for, and what is wrong with the next
// one, "" if there is none.
func compare(want job.Want, o job.Offer) (fine int, text string) {
	for i, wrong := range properties {
		if text := wrong(want, o); text != "" {
			return i, text
		}
	}
	return len(properties), ""
}

// properties are what a wish is compared with, each as a function that says what is wrong. Those that no change of the
// machine's size can mend come first: a wish is the nearer to an offer the more of them are fine.
var properties = []func(job.Want, job.Offer) string{
	func(w job.Want, o job.Offer) string { return other("provider", w.Provider, o.Provider, "infra") },
	func(w job.Want, o job.Offer) string { return other("region", w.Region, o.Region, "infra") },
	func(w job.Want, o job.Offer) string { return other("zone", w.Zone, o.Zone, "infra") },
	func(w job.Want, o job.Offer) string {
		switch {
		case w.UseSpot && !o.Spot:
			return "on-demand, a spot machine is wanted"
		case !w.UseSpot && o.Spot:
			return "spot, an on-demand machine is wanted"
		default:
			return ""
		}
	},
	func(w job.Want, o job.Offer) string { return other("type", w.Type, o.Type, "instance_type") },
	func(w job.Want, o job.Offer) string {
		switch {
		case w.Accelerator != "" && !sameAccelerator(w, o):
			return fmt.Sprintf("%s, %s wanted", accelerators(o.Accelerator, o.AcceleratorCount), accelerators(w.Accelerator, w.AcceleratorCount))
		case w.Accelerator == "" && w.Type == "" && o.Accelerator != "":
			return "with accelerators, none are wanted"
		default:
			return ""
		}
	},
	func(w job.Want, o job.Offer) string {
		if w.CPUs.Accepts(o.CPUs) {
			return ""
		}
		return fmt.Sprintf("%g CPUs, %s wanted", o.CPUs, amount(w.CPUs))
	},
	func(w job.Want, o job.Offer) string {
		if w.MemoryGB.Accepts(o.MemoryGB) {
			return ""
		}
		return fmt.Sprintf("%g GB of memory, %s wanted", o.MemoryGB, amount(w.MemoryGB))
	},
	func(w job.Want, o job.Offer) string {
		if w.MaxPrice == 0 || o.Price <= w.MaxPrice {
			return ""
		}
		return fmt.Sprintf("%g per hour, at most %g wanted", o.Price, w.MaxPrice)
	},
}

// other says that a property is not the one that a field of the job file asks for.
func other(what, want, have, field string) string {
	if want == "" || want == have {
		return ""
	}
	return fmt.Sprintf("%s %q, %q wanted (resources.%s)", what, have, want, field)
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

// firstMatch returns the index of the first wish that o may serve, or -1 and what is wrong with o. If it is wrong for
// each wish, that of the wishes that are nearest to it is told.
func firstMatch(in Input, o job.Offer) (int, string) {
	support, known := in.Support[o.Provider]
	var wrong []string
	nearest := -1
	for i, w := range wants(in.Resources) {
		fine, text := compare(w, o)
		if known && (w.Provider == "" || w.Provider == o.Provider) {
			// What no offer of a provider can mend is told of all of them alike.
			if refused := support.refusal(o.Provider, append(wantFields(w), in.Beyond...)); refused != "" {
				fine, text = len(properties), refused
			}
		}
		if text == "" {
			return i, ""
		}
		if fine > nearest {
			nearest, wrong = fine, nil
		}
		if fine == nearest && !slices.Contains(wrong, text) {
			wrong = append(wrong, text)
		}
	}
	if more := len(wrong) - reasonsShown; more > 0 {
		wrong = append(wrong[:reasonsShown], fmt.Sprintf("and %d more reasons", more))
	}
	return -1, strings.Join(wrong, "; ")
}

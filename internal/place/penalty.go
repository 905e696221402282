package place

import (
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// excluded returns the fault that rules o out for the life of the task. A permanent fault speaks only of the offer that
// was asked for, whatever scope it names: being wrong about its neighbours would end a job that could have run.
func excluded(s job.Search, o job.Offer) (job.Fault, bool) {
	p, ok := s.Penalties[o.Key()]
	return p.Fault, ok && p.Fault.Class.Permanent()
}

// late returns the penalty that puts o behind the others at now: its own, or that of an offer whose fault covers it. It
// only reorders: o is still tried when nothing better is left, so a wrong guess costs a detour and never a job.
// Of several it is the one that lasts longest, then the one with the smallest key, so that the answer is always the same.
func late(s job.Search, o job.Offer, now job.Time) (job.Penalty, bool) {
	var (
		found job.Penalty
		by    string
	)
	for key, p := range s.Penalties {
		if p.Fault.Class.Permanent() || p.Until <= now || !covers(key, p.Fault, o) {
			continue
		}
		if by == "" || p.Until > found.Until || p.Until == found.Until && key < by {
			found, by = p, key
		}
	}
	return found, by != ""
}

// covers reports whether a fault of the offer named by key speaks of o as well. A shortage of a zone is one of that
// kind of machine in it, so it covers the offer itself only; the wider scopes are as the provider says.
func covers(key string, f job.Fault, o job.Offer) bool {
	if key == o.Key() {
		return true
	}
	part := strings.Split(key, "/") // as job.Offer.Key writes it
	if len(part) != 5 {
		return false
	}
	provider, region, kind := part[0] == o.Provider, part[1] == o.Region, part[3] == o.Type
	switch f.Scope {
	case "cloud":
		return provider
	case "region":
		return provider && region
	case "type":
		return provider && region && kind
	default:
		return false
	}
}

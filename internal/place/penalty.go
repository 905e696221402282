package place

import (
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// How long an offer stays behind the others after it failed. A penalty only reorders: an offer under one is still
// tried when nothing better is left, so a wrong guess costs a detour and never a job.
const (
	// capacityPenalty: shortages of one kind of machine last minutes to hours; shorter than two waits between rounds
	// would send every round to the same empty zone first.
	capacityPenalty = 10 * time.Minute
	// quotaPenalty: a quota changes when somebody ends machines or asks the provider for more, which takes longer.
	quotaPenalty = 30 * time.Minute
	// otherPenalty: throttling and errors that nobody understands are usually over at the next call.
	otherPenalty = time.Minute
)

// penaltyFor returns how long a fault of this class keeps an offer behind the others. It has no meaning for
// permanent classes.
func penaltyFor(c job.Class) time.Duration {
	switch c {
	case job.Capacity:
		return capacityPenalty
	case job.Quota:
		return quotaPenalty
	default:
		return otherPenalty
	}
}

// active reports whether p still has an effect at now.
func active(p job.Penalty, now job.Time) bool { return p.Fault.Class.Permanent() || p.Until > now }

// excluded returns the fault that rules o out for the life of the task. A permanent fault speaks only of the offer that
// was asked for, whatever scope it names: being wrong about its neighbours would end a job that could have run.
func excluded(s job.Search, o job.Offer) (job.Fault, bool) {
	p, ok := s.Penalties[o.Key()]
	return p.Fault, ok && p.Fault.Class.Permanent()
}

// late returns the penalty that puts o behind the others at now: its own, or that of an offer whose fault covers it.
// Of several it is the one that lasts longest, then the one with the smallest key, so that the answer is always the same.
func late(s job.Search, o job.Offer, now job.Time) (job.Penalty, bool) {
	var (
		found job.Penalty
		by    string
	)
	for key, p := range s.Penalties {
		if p.Fault.Class.Permanent() || !active(p, now) || !covers(key, p.Fault, o) {
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

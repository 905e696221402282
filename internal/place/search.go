package place

import (
	"maps"
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
)

// longestFault bounds what a record keeps of a provider's words: it is read at every look at the job.
const longestFault = 300

// Failed returns s after the provider refused to make a machine of o, or made one that never became ready: o is not
// tried again in this round and carries a penalty. A permanent fault excludes it for the life of the task.
// Penalties that have expired at now are dropped, so that a long hunt does not make the record grow.
func Failed(s job.Search, o job.Offer, f job.Fault, now job.Time) job.Search {
	s = clone(s)
	key := o.Key()
	if !slices.Contains(s.Tried, key) {
		s.Tried = append(s.Tried, key)
	}
	maps.DeleteFunc(s.Penalties, func(_ string, p job.Penalty) bool { return !active(p, now) })
	if s.Penalties[key].Fault.Class.Permanent() {
		return s // what can never work does not become possible by failing otherwise
	}
	if s.Penalties == nil {
		s.Penalties = make(map[string]job.Penalty)
	}
	f.Text = brief(f.Text, longestFault)
	s.Penalties[key] = job.Penalty{Until: now.Add(penaltyFor(f.Class)), Fault: f}
	return s
}

// RoundOver returns s after a round in which every offer failed. The caller commits it together with the wait that
// [Choose] asked for with Until, and does not ask again before that has passed.
func RoundOver(s job.Search) job.Search {
	s = clone(s)
	s.Round++
	s.Tried = nil
	return s
}

// Won returns s after a machine was found and the user's code was started on it: the hunt is over, and the next one
// starts with its first round. Penalties stay, they are as true as before.
func Won(s job.Search) job.Search {
	s = clone(s)
	s.Round, s.Tried, s.Lost = 0, nil, nil
	return s
}

// Lost returns s after the machine of o was lost: a new hunt begins, in the order that the strategy wants after a loss.
// o itself carries no penalty: having lost one machine says little about getting another.
func Lost(s job.Search, o job.Offer) job.Search {
	s = clone(s)
	s.Round, s.Tried, s.Lost = 0, nil, &o
	return s
}

// clone returns a Search that shares nothing with s.
func clone(s job.Search) job.Search {
	s.Tried = slices.Clone(s.Tried)
	s.Penalties = maps.Clone(s.Penalties)
	if s.Lost != nil {
		lost := *s.Lost
		s.Lost = &lost
	}
	return s
}

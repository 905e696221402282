package job

import (
	"maps"
	"slices"
	"time"
)

// Search is what a task remembers of its hunt for a machine. It is kept in the record, so that no worker's
// death resets a back-off (G8). internal/place decides with it.
type Search struct {
	Round     int                `json:"round,omitempty"`     // whole rounds in which every offer failed
	Tried     []string           `json:"tried,omitempty"`     // offer keys that failed in this round
	Penalties map[string]Penalty `json:"penalties,omitempty"` // by offer key
	Lost      *Offer             `json:"lost,omitempty"`      // where the last machine was lost
}

// Penalty keeps an offer at the end of the list for a while.
type Penalty struct {
	Until Time  `json:"until"` // of no meaning if Fault is permanent: then for the life of the task
	Fault Fault `json:"fault"` // what the provider said
}

// Choice is what to do about the next machine: take Offer, or wait, or give up.
type Choice struct {
	Offer *Offer // take this one
	Until Time   // or look again then (a whole round has failed)
	None  *Cause // or never: every offer failed for good, or there is none
	Start bool   // with Offer: this begins a new round, so forget Tried
}

// How long an offer that failed stays at the end of the list.
const (
	capacityPenalty = 10 * time.Minute // spot capacity comes back within minutes more often than within seconds
	quotaPenalty    = 30 * time.Minute // somebody has to free or raise it
	faultPenalty    = time.Minute      // the provider's own trouble passes
)

// Failed is the search after o failed with f. Penalties that are over are dropped, so that a long hunt does not make
// the record grow. A permanent one stays: what can never work does not become possible by failing otherwise.
func (s Search) Failed(o Offer, f Fault, now Time) Search {
	s = s.clone()
	if !slices.Contains(s.Tried, o.Key()) {
		s.Tried = append(s.Tried, o.Key())
	}
	maps.DeleteFunc(s.Penalties, func(_ string, p Penalty) bool { return p.over(now) })
	if s.Penalties[o.Key()].Fault.Class.Permanent() {
		return s
	}
	if s.Penalties == nil {
		s.Penalties = map[string]Penalty{}
	}
	f.Text = brief(f.Text)
	ttl := faultPenalty
	switch f.Class {
	case Capacity:
		ttl = capacityPenalty
	case Quota:
		ttl = quotaPenalty
	}
	s.Penalties[o.Key()] = Penalty{Until: now.Add(ttl), Fault: f}
	return s
}

// RoundOver is the search after every offer of a round failed.
func (s Search) RoundOver() Search {
	s = s.clone()
	s.Round++
	s.Tried = nil
	return s
}

// Won is the search after a machine was had and the user's code started on it: this hunt is over, and where the last
// machine was lost does not matter to the next one.
func (s Search) Won(now Time) Search {
	s = s.clone()
	s.Round, s.Tried, s.Lost = 0, nil, nil
	maps.DeleteFunc(s.Penalties, func(_ string, p Penalty) bool { return p.over(now) })
	return s
}

// over reports whether a penalty has no effect any more.
func (p Penalty) over(now Time) bool { return !p.Fault.Class.Permanent() && p.Until <= now }

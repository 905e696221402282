package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// Input is all that a decision rests on.
type Input struct {
	Offers    []job.Offer        // of all providers, in any order
	Support   map[string]Support // by provider; one that is not in it is not judged by that
	Resources job.Resources      // what the task wants of a machine
	Beyond    []Field            // what it wants beside that: see [TaskFields]
	Strategy  job.Strategy       // "" is [job.EagerNextRegion]; [job.Never] is up to the caller and orders like a first launch
	Search    job.Search         // what the task remembers
	Now       job.Time
	Seed      uint64        // makes the jitter of the waits differ between tasks; the same for a task's whole life
	Backoff   time.Duration // wait after the first failed round; 0 is [DefaultBackoff]
}

// Standing says what holds for an offer at the moment of the decision.
type Standing int

// The standings, best first.
const (
	Open     Standing = iota // may be taken
	Late                     // may be taken when no open one is left: it, or its surroundings, failed a short while ago
	Tried                    // failed in this round, has its next chance in the next one
	Excluded                 // can never serve this task: a permanent fault
	Unwanted                 // not what the task asks for
)

// String returns the word for people.
func (s Standing) String() string {
	switch s {
	case Open:
		return "open"
	case Late:
		return "late"
	case Tried:
		return "tried"
	case Excluded:
		return "excluded"
	case Unwanted:
		return "unwanted"
	default:
		return fmt.Sprintf("standing(%d)", int(s))
	}
}

// Ranked is an offer at its place in the order.
type Ranked struct {
	Offer    job.Offer
	Standing Standing
	Reason   string     // for people: why it does not stand [Open], "" if it does
	Fault    *job.Fault // what the provider said, for Late and Excluded

	entry int // index of the first entry of the resources that it matches
}

// Order returns all offers in the order in which they would be tried, those that are ruled out last, each with the
// reason. Offers with the same key are one offer; the cheapest is kept.
func Order(in Input) []Ranked {
	ranked := make([]Ranked, 0, len(in.Offers))
	for _, o := range distinct(in.Offers) {
		ranked = append(ranked, rank(in, o))
	}
	slices.SortFunc(ranked, func(a, b Ranked) int {
		return cmp.Or(
			cmp.Compare(a.Standing, b.Standing),
			cmp.Compare(regionTurn(in, a.Offer), regionTurn(in, b.Offer)),
			cmp.Compare(entryTurn(in, a), entryTurn(in, b)),
			cmp.Compare(a.Offer.Price, b.Offer.Price),
			strings.Compare(a.Offer.Key(), b.Offer.Key()),
		)
	})
	return ranked
}

// rank finds the standing of one offer. The strongest reason wins.
func rank(in Input, o job.Offer) Ranked {
	entry, wrong := firstMatch(in, o)
	if entry < 0 {
		return Ranked{Offer: o, Standing: Unwanted, Reason: wrong}
	}
	r := Ranked{Offer: o, entry: entry}
	if f, ok := excluded(in.Search, o); ok {
		r.Standing, r.Fault, r.Reason = Excluded, &f, told(f)
		return r
	}
	p, penalised := late(in.Search, o, in.Now)
	if penalised {
		r.Fault, r.Reason = &p.Fault, told(p.Fault)
	}
	switch {
	case slices.Contains(in.Search.Tried, o.Key()):
		r.Standing = Tried
		r.Reason = cmp.Or(r.Reason, "failed in this round")
	case penalised:
		r.Standing = Late
	}
	return r
}

// regionTurn is what the strategy thinks of an offer's region: smaller is earlier. It compares with where the last
// machine really was, not with what was asked for, which mostly names no region at all (SkyPilot issue 10021).
func regionTurn(in Input, o job.Offer) int {
	lost := in.Search.Lost
	if lost == nil || lost.Provider != o.Provider || lost.Region != o.Region {
		return 0
	}
	switch in.Strategy {
	case job.Failover:
		return -1
	case job.Never:
		return 0
	default:
		return 1
	}
}

// entryTurn is the place of an offer's entry in ordered resources; in a set all entries are alike.
func entryTurn(in Input, r Ranked) int {
	if !in.Resources.Ordered {
		return 0
	}
	return r.entry
}

// distinct returns one offer for each key, the first by price and then by size.
func distinct(offers []job.Offer) []job.Offer {
	sorted := slices.Clone(offers)
	slices.SortFunc(sorted, func(a, b job.Offer) int {
		return cmp.Or(
			strings.Compare(a.Key(), b.Key()),
			cmp.Compare(a.Price, b.Price),
			cmp.Compare(a.CPUs, b.CPUs),
			cmp.Compare(a.MemoryGB, b.MemoryGB),
			strings.Compare(a.Accelerator, b.Accelerator),
			cmp.Compare(a.AcceleratorCount, b.AcceleratorCount),
		)
	})
	return slices.CompactFunc(sorted, func(a, b job.Offer) bool { return a.Key() == b.Key() })
}

// longestText bounds what a reason shows of a provider's words or of an offer's key.
const longestText = 300

// told is a fault in one line.
func told(f job.Fault) string {
	if f.Text == "" {
		return string(f.Class)
	}
	return fmt.Sprintf("%s: %s", f.Class, brief(f.Text, longestText))
}

// brief returns the first n bytes of s, on one line and free of control characters: a provider's words end up in
// records, logs and terminals.
func brief(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
	if len(s) <= n {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

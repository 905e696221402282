package place

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// The waits between rounds are those of SkyPilot (utils/common_utils.py, Backoff): 60 s, 96 s, 154 s, 246 s and then
// 300 s, each 40 % more or less. The jitter is wide because jobs that lost their machines to one shortage would come
// back all at once.
const (
	DefaultBackoff = 60 * time.Second
	backoffFactor  = 1.6
	backoffCap     = 5 // times the first wait
	backoffJitter  = 0.4
)

// evidenceLines is how many reasons a cause names: enough to see the pattern, few enough for a record.
const evidenceLines = 10

// Choose decides about the next machine. Exactly one of Offer, Until and None is set in its answer:
//
//   - Offer: try this one. Start says that it is the first one of its round.
//   - Until: all offers failed in this round. The caller commits [job.Search.RoundOver] and that wait as one.
//   - None: no offer matches the resources (no_offer), or all that match are excluded: the task can end at once.
func Choose(in Input) job.Choice {
	order := Order(in)
	var tried, excluded int
	for _, r := range order {
		if r.Standing == Tried {
			tried++
		}
		if r.Standing == Excluded {
			excluded++
		}
	}
	switch {
	case len(order) > 0 && order[0].Standing <= Late:
		first := order[0].Offer
		return job.Choice{Offer: &first, Start: tried == 0}
	case tried > 0:
		return job.Choice{Until: in.Now.Add(Backoff(in.Backoff, in.Search.Round, in.Seed))}
	default:
		return job.Choice{None: hopeless(order, excluded)}
	}
}

// Backoff returns how long to wait after a failed round, with round 0 for the first: base × 1.6^round, at most
// 5 × base, and then up to 40 % more or less. It is a function of its arguments: asking again gives the same wait.
func Backoff(base time.Duration, round int, seed uint64) time.Duration {
	if base <= 0 {
		base = DefaultBackoff
	}
	factor := min(math.Pow(backoffFactor, float64(max(round, 0))), backoffCap)
	chance := rand.New(rand.NewPCG(seed, uint64(round))).Float64() //nolint:gosec // jitter, not a secret
	factor *= 1 + backoffJitter*(2*chance-1)
	return time.Duration(factor * float64(base)).Truncate(time.Millisecond)
}

// hopeless explains why nothing can ever serve a task. order holds no offer that may be taken, now or later.
func hopeless(order []Ranked, excluded int) *job.Cause {
	if excluded == 0 {
		return unwanted(order)
	}
	// All that match are excluded, and they come before those that do not match. Credentials can be repaired by
	// the user without touching the job, so they are what the cause names if both kinds occur.
	order = order[:excluded]
	code, text := job.CodeInvalid, "the provider can never serve what the resources ask for"
	for _, r := range order {
		if r.Fault.Class == job.Denied {
			code, text = job.CodeDenied, "the provider refuses the credentials"
		}
	}
	return &job.Cause{Code: code, Text: text, Evidence: evidence(order)}
}

// unwanted explains why none of the offers is what a task asks for. A single reason for all of them is told as such.
func unwanted(order []Ranked) *job.Cause {
	cause := job.Cause{Code: job.CodeNoOffer, Text: "no provider offers a machine"}
	switch groups := GroupByReason(order); len(groups) {
	case 0:
	case 1:
		cause.Text = brief(groups[0].Reason, 2*longestText)
	default:
		cause.Text = fmt.Sprintf("none of %d offers is what the resources ask for", len(order))
		cause.Evidence = evidence(order)
	}
	return &cause
}

// Group is offers that do not stand open for the same reason.
type Group struct {
	Reason string
	First  job.Offer // of them
	N      int
}

// GroupByReason puts offers with the same reason together, in the order in which the reasons come first.
func GroupByReason(order []Ranked) []Group {
	var groups []Group
	for _, r := range order {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Reason == r.Reason })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Reason: r.Reason, First: r.Offer})
		}
		groups[i].N++
	}
	return groups
}

// evidence lists the reasons with the first offer of each, one a line.
func evidence(order []Ranked) string {
	groups := GroupByReason(order)
	lines := make([]string, 0, evidenceLines+1)
	for i, g := range groups {
		if i == evidenceLines {
			lines = append(lines, fmt.Sprintf("and %d more reasons", len(groups)-i))
			break
		}
		more := ""
		if g.N > 1 {
			more = fmt.Sprintf(" and %d more", g.N-1)
		}
		lines = append(lines, brief(g.First.Key(), longestText)+more+": "+g.Reason)
	}
	return strings.Join(lines, "\n")
}

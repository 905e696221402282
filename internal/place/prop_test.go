package place

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// Small alphabets, so that regions, keys and scopes collide often.
func genOffer() *rapid.Generator[job.Offer] {
	return rapid.Custom(func(t *rapid.T) job.Offer {
		return job.Offer{
			Provider: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "provider"),
			Region:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "region"),
			Zone:     rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "zone"),
			Type:     rapid.SampledFrom([]string{"s", "l"}).Draw(t, "type"),
			Spot:     rapid.Bool().Draw(t, "spot"),
			Price:    float64(rapid.IntRange(0, 3).Draw(t, "price")),
			CPUs:     float64(rapid.IntRange(1, 4).Draw(t, "cpus")),

			Accelerator: rapid.SampledFrom([]string{"", "", "T4"}).Draw(t, "accelerator"),
		}
	})
}

func genFault() *rapid.Generator[job.Fault] {
	return rapid.Custom(func(t *rapid.T) job.Fault {
		return job.Fault{
			Class: rapid.SampledFrom([]job.Class{job.Capacity, job.Quota, job.Denied, job.Invalid, job.Throttled, job.Transient}).Draw(t, "class"),
			Scope: rapid.SampledFrom([]string{"", "zone", "region", "type", "cloud"}).Draw(t, "scope"),
			Text:  rapid.String().Draw(t, "text"),
		}
	})
}

func genWant() *rapid.Generator[job.Want] {
	return rapid.Custom(func(t *rapid.T) job.Want {
		return job.Want{
			Region:  rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "region"),
			CPUs:    job.Quantity{N: float64(rapid.IntRange(0, 4).Draw(t, "cpus")), AtLeast: rapid.Bool().Draw(t, "plus")},
			UseSpot: rapid.Bool().Draw(t, "spot"),

			Accelerator: rapid.SampledFrom([]string{"", "", "t4"}).Draw(t, "accelerator"),
		}
	})
}

func genInput() *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := Input{
			Offers:    rapid.SliceOfN(genOffer(), 0, 12).Draw(t, "offers"),
			Resources: job.Resources{Any: rapid.SliceOfN(genWant(), 0, 3).Draw(t, "wants"), Ordered: rapid.Bool().Draw(t, "ordered")},
			Strategy:  rapid.SampledFrom([]job.Strategy{"", job.EagerNextRegion, job.Failover, job.Never}).Draw(t, "strategy"),
			Now:       now,
			Seed:      rapid.Uint64().Draw(t, "seed"),
		}
		for _, o := range in.Offers {
			if rapid.IntRange(0, 2).Draw(t, "failed") == 0 {
				at := now - job.Time(rapid.IntRange(0, 40*60_000).Draw(t, "ago"))
				in.Search = in.Search.Failed(o, genFault().Draw(t, "fault"), at)
			}
		}
		if rapid.Bool().Draw(t, "fresh") {
			in.Search = in.Search.RoundOver()
		}
		if len(in.Offers) > 0 && rapid.Bool().Draw(t, "lost") {
			lost := rapid.SampledFrom(in.Offers).Draw(t, "where")
			in.Search.Lost = &lost
		}
		return in
	})
}

// eligible is the definition of what may be chosen, written without the code under test's order.
func eligible(in Input, o job.Offer) bool {
	wanted := len(in.Resources.Any) == 0 && !o.Spot && o.Accelerator == ""
	for _, w := range in.Resources.Any {
		wanted = wanted || Match(w, o)
	}
	p, failed := in.Search.Penalties[o.Key()]
	excluded := failed && p.Fault.Class.Permanent()
	return wanted && !excluded && !slices.Contains(in.Search.Tried, o.Key())
}

// TestChooseOnlyEligible ensures that what is tried, excluded or unwanted is never chosen, that something is chosen
// whenever anything is eligible, and that exactly one of the three answers is given.
func TestChooseOnlyEligible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		c := Choose(in)
		answers := 0
		for _, given := range []bool{c.Offer != nil, c.Until != 0, c.None != nil} {
			if given {
				answers++
			}
		}
		if answers != 1 {
			t.Fatalf("%d answers in %+v", answers, c)
		}
		some := slices.ContainsFunc(distinct(in.Offers), func(o job.Offer) bool { return eligible(in, o) })
		if some != (c.Offer != nil) {
			t.Fatalf("something is eligible: %v, chosen: %+v", some, c.Offer)
		}
		if c.Offer != nil && !eligible(in, *c.Offer) {
			t.Fatalf("chose %+v", *c.Offer)
		}
		if c.Until != 0 && c.Until <= in.Now {
			t.Fatalf("waits until %d, it is %d", c.Until, in.Now)
		}
	})
}

// TestRoundTriesAllOnce ensures that a round tries each eligible offer exactly once and then waits, and that the next
// round begins with something unless all were excluded meanwhile.
//
// aws-parallelcluster #2716: the pool that had no room was tried again and again, before the others.
func TestRoundTriesAllOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		var want, got []string
		for _, o := range distinct(in.Offers) {
			if eligible(in, o) {
				want = append(want, o.Key())
			}
		}
		c := Choose(in)
		for ; c.Offer != nil; c = Choose(in) {
			got = append(got, c.Offer.Key())
			if len(got) > len(want) {
				t.Fatalf("tried %v of %v", got, want)
			}
			in.Search = in.Search.Failed(*c.Offer, genFault().Draw(t, "fault"), in.Now)
			in.Now++
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("offers tried (-want +got):\n%s", diff)
		}
		if c.None == nil {
			round := in.Search.Round
			in.Search, in.Now = in.Search.RoundOver(), c.Until
			if next := Choose(in); next.Offer == nil || !next.Start || in.Search.Round != round+1 {
				t.Fatalf("after a wait: %+v", next)
			}
		}
	})
}

// TestStrategyHolds ensures that EAGER_NEXT_REGION never goes back to the lost region while another open offer exists,
// that FAILOVER never leaves it while it has one, and that no penalised offer is chosen before an open one.
func TestStrategyHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		c := Choose(in)
		if c.Offer == nil {
			return
		}
		inLost := func(o job.Offer) bool {
			l := in.Search.Lost
			return l != nil && l.Provider == o.Provider && l.Region == o.Region
		}
		for _, r := range Order(in) {
			if r.Standing != Open {
				continue
			}
			if _, late := late(in.Search, *c.Offer, in.Now); late {
				t.Fatalf("chose the late %s before the open %s", c.Offer.Key(), r.Offer.Key())
			}
			switch in.Strategy {
			case job.Never:
			case job.Failover:
				if inLost(r.Offer) && !inLost(*c.Offer) {
					t.Fatalf("left the lost region for %s, though %s is open", c.Offer.Key(), r.Offer.Key())
				}
			default:
				if !inLost(r.Offer) && inLost(*c.Offer) {
					t.Fatalf("went back to %s, though %s is open", c.Offer.Key(), r.Offer.Key())
				}
			}
		}
	})
}

// TestOrderOfOffersDoesNotMatter ensures that two workers that got the list in another order decide alike.
func TestOrderOfOffersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		other := in
		other.Offers = rapid.Permutation(in.Offers).Draw(t, "shuffled")
		if diff := cmp.Diff(Choose(in), Choose(other)); diff != "" {
			t.Fatalf("choice:\n%s", diff)
		}
		unexported := cmp.AllowUnexported(Ranked{})
		if diff := cmp.Diff(Order(in), Order(other), unexported); diff != "" {
			t.Fatalf("order:\n%s", diff)
		}
	})
}

// TestNothingIsChanged ensures that a decision leaves its input as it was, and that changing the offer it returned does
// not reach back.
func TestNothingIsChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "in")
		before := in
		before.Offers = slices.Clone(in.Offers)
		before.Search.Tried = slices.Clone(in.Search.Tried)
		before.Search.Penalties = maps.Clone(in.Search.Penalties)
		if c := Choose(in); c.Offer != nil {
			c.Offer.Region = "changed"
		}
		for _, r := range Order(in) {
			if r.Fault != nil {
				r.Fault.Text = "changed"
			}
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatalf("input was changed:\n%s", diff)
		}
	})
}

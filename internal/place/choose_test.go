package place

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

const now = job.Time(1_000_000_000)

// Three regions of one provider and one of another, on-demand; b1 is the cheapest.
var (
	a1 = job.Offer{Provider: "local", Region: "a", Zone: "1", Type: "small", Price: 2, CPUs: 2, MemoryGB: 4}
	b1 = job.Offer{Provider: "local", Region: "b", Zone: "1", Type: "small", Price: 1, CPUs: 2, MemoryGB: 4}
	b2 = job.Offer{Provider: "local", Region: "b", Zone: "2", Type: "large", Price: 4, CPUs: 8, MemoryGB: 32}
	c1 = job.Offer{Provider: "sim", Region: "b", Zone: "1", Type: "small", Price: 3, CPUs: 2, MemoryGB: 4}
	g8 = job.Offer{Provider: "local", Region: "a", Zone: "1", Type: "huge", Price: 0.1, CPUs: 64, MemoryGB: 512, Accelerator: "A100", AcceleratorCount: 8}
	s1 = job.Offer{Provider: "local", Region: "a", Zone: "1", Type: "small", Price: 0.5, CPUs: 2, MemoryGB: 4, Spot: true}
)

var anything = job.Resources{Any: []job.Want{{}}}

// keys lists the offers of an order that may still be taken.
func keys(order []Ranked) []string {
	var out []string
	for _, r := range order {
		if r.Standing <= Late {
			out = append(out, r.Offer.Key())
		}
	}
	return out
}

func penalty(o job.Offer, class job.Class, scope string, until job.Time) map[string]job.Penalty {
	return map[string]job.Penalty{o.Key(): {Until: until, Fault: job.Fault{Class: class, Scope: scope, Text: "said no"}}}
}

// TestOrder has one row for each rule about which offer comes first.
func TestOrder(t *testing.T) {
	all := []job.Offer{a1, b1, b2, c1, s1}
	later := now + 1
	for _, tt := range []struct {
		rule      string
		resources job.Resources
		strategy  job.Strategy
		search    job.Search
		want      []job.Offer
	}{
		{rule: "a set is cheapest first", resources: anything, want: []job.Offer{b1, a1, c1, b2}},
		{rule: "no entry accepts any on-demand machine", want: []job.Offer{b1, a1, c1, b2}},
		{rule: "a set is cheapest first over all entries",
			resources: job.Resources{Any: []job.Want{{}, {UseSpot: true}}}, want: []job.Offer{s1, b1, a1, c1, b2}},
		{rule: "ordered entries as written, cheapest within one",
			resources: job.Resources{Ordered: true, Any: []job.Want{{Provider: "sim"}, {Region: "b"}, {UseSpot: true}}},
			want:      []job.Offer{c1, b1, b2, s1}},
		{rule: "exact amounts and at-least amounts",
			resources: job.Resources{Any: []job.Want{{CPUs: job.Quantity{N: 4, AtLeast: true}, MemoryGB: job.Quantity{N: 32}}}},
			want:      []job.Offer{b2}},
		{rule: "eager puts the lost region last, and only that of its provider",
			resources: anything, search: job.Search{Lost: &b1}, want: []job.Offer{a1, c1, b1, b2}},
		{rule: "eager compares with where the machine was, not with what was asked for (SkyPilot issue 10021)",
			resources: job.Resources{Any: []job.Want{{Provider: "local"}}}, strategy: job.EagerNextRegion,
			search: job.Search{Lost: &b2}, want: []job.Offer{a1, b1, b2}},
		{rule: "failover puts the lost region first, any zone of it",
			resources: anything, strategy: job.Failover, search: job.Search{Lost: &b2}, want: []job.Offer{b1, b2, a1, c1}},
		{rule: "never orders as a first launch",
			resources: anything, strategy: job.Never, search: job.Search{Lost: &b1}, want: []job.Offer{b1, a1, c1, b2}},
		{rule: "the lost region comes last also in ordered resources",
			resources: job.Resources{Ordered: true, Any: []job.Want{{Region: "b"}, {Region: "a"}}},
			search:    job.Search{Lost: &b1}, want: []job.Offer{c1, a1, b1, b2}},
		{rule: "a penalty puts an offer behind the others",
			resources: anything, search: job.Search{Penalties: penalty(b1, job.Capacity, "zone", later)},
			want: []job.Offer{a1, c1, b2, b1}},
		{rule: "a penalty weighs more than the strategy",
			resources: anything, search: job.Search{Lost: &b2, Penalties: penalty(a1, job.Transient, "", later)},
			want: []job.Offer{c1, b1, b2, a1}},
		{rule: "an expired penalty has no effect",
			resources: anything, search: job.Search{Penalties: penalty(b1, job.Capacity, "region", now)},
			want: []job.Offer{b1, a1, c1, b2}},
		{rule: "scope region covers the region",
			resources: anything, search: job.Search{Penalties: penalty(b2, job.Capacity, "region", later)},
			want: []job.Offer{a1, c1, b1, b2}},
		{rule: "scope cloud covers the provider",
			resources: anything, search: job.Search{Penalties: penalty(b2, job.Quota, "cloud", later)},
			want: []job.Offer{c1, b1, a1, b2}},
		{rule: "scope type covers the type in its region, in any market",
			resources: job.Resources{Any: []job.Want{{}, {UseSpot: true}}},
			search:    job.Search{Penalties: penalty(a1, job.Capacity, "type", later)},
			want:      []job.Offer{b1, c1, b2, s1, a1}},
		{rule: "what was tried in this round is out",
			resources: anything, search: job.Search{Tried: []string{b1.Key(), c1.Key()}}, want: []job.Offer{a1, b2}},
		{rule: "a permanent fault excludes for good, long after its time, and only the offer itself",
			resources: anything, search: job.Search{Penalties: penalty(b1, job.Denied, "cloud", 1)},
			want: []job.Offer{a1, c1, b2}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			var want []string
			for _, o := range tt.want {
				want = append(want, o.Key())
			}
			got := keys(Order(Input{Offers: all, Resources: tt.resources, Strategy: tt.strategy, Search: tt.search, Now: now}))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrderSaysWhy ensures that each offer which does not stand open carries a reason that a person understands.
func TestOrderSaysWhy(t *testing.T) {
	search := job.Search{Tried: []string{a1.Key()}, Penalties: penalty(b1, job.Capacity, "zone", now+1)}
	search.Penalties[c1.Key()] = job.Penalty{Fault: job.Fault{Class: job.Denied, Text: "bad\x1b[31m key\n\tfor you"}}
	order := Order(Input{Offers: []job.Offer{a1, b1, b2, c1, s1}, Resources: anything, Search: search, Now: now})
	var got []string
	for _, r := range order {
		got = append(got, r.Offer.Key()+" "+r.Standing.String()+" "+r.Reason)
	}
	want := []string{
		"local/b/2/large/od open ",
		"local/b/1/small/od late capacity: said no",
		"local/a/1/small/od tried failed in this round",
		"sim/b/1/small/od excluded denied: bad [31m key for you",
		"local/a/1/small/spot unwanted spot, an on-demand machine is wanted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestMismatch ensures that every field of a wish can rule an offer out, and says so.
func TestMismatch(t *testing.T) {
	for _, tt := range []struct {
		want  job.Want
		offer job.Offer
		text  string
	}{
		{job.Want{Provider: "aws"}, a1, `provider "local", "aws" wanted (resources.infra)`},
		{job.Want{Region: "z"}, a1, `region "a", "z" wanted (resources.infra)`},
		{job.Want{Zone: "9"}, a1, `zone "1", "9" wanted (resources.infra)`},
		{job.Want{UseSpot: true}, a1, "on-demand, a spot machine is wanted"},
		{job.Want{}, s1, "spot, an on-demand machine is wanted"},
		{job.Want{CPUs: job.Quantity{N: 4, AtLeast: true}}, a1, "2 CPUs, 4+ wanted"},
		{job.Want{MemoryGB: job.Quantity{N: 2}}, a1, "4 GB of memory, 2 wanted"},
		{job.Want{Type: "large"}, a1, `type "small", "large" wanted (resources.instance_type)`},
		{job.Want{MaxPrice: 1.99}, a1, "2 per hour, at most 1.99 wanted"},
		{job.Want{MaxPrice: 2}, a1, ""},
		{job.Want{}, g8, "with accelerators, none are wanted"},
		{job.Want{Type: "huge"}, g8, ""},
		{job.Want{Accelerator: "a100", AcceleratorCount: 8}, g8, ""},
		{job.Want{Accelerator: "A100"}, g8, ""},
		{job.Want{Accelerator: "A100", AcceleratorCount: 4}, g8, "A100:8, A100:4 wanted"},
		{job.Want{Accelerator: "T4", AcceleratorCount: 0.5}, g8, "A100:8, T4:0.5 wanted"},
		{job.Want{Accelerator: "T4"}, a1, "no accelerators, T4 wanted"},
		{job.Want{Provider: "local", Region: "a", Zone: "1", CPUs: job.Quantity{N: 2}, MemoryGB: job.Quantity{N: 3, AtLeast: true}}, a1, ""},
	} {
		if got := mismatch(tt.want, tt.offer); got != tt.text {
			t.Errorf("mismatch(%+v) = %q, want %q", tt.want, got, tt.text)
		}
		if Match(tt.want, tt.offer) != (tt.text == "") {
			t.Errorf("Match(%+v) does not agree with its reason %q", tt.want, tt.text)
		}
	}
}

// TestNone ensures that a hunt without hope ends at once, with the code and the evidence of its kind (G8, G13).
func TestNone(t *testing.T) {
	excluded := job.Search{Penalties: penalty(a1, job.Invalid, "", 0)}
	both := job.Search{Penalties: penalty(a1, job.Invalid, "", 0)}
	both.Penalties[b1.Key()] = job.Penalty{Fault: job.Fault{Class: job.Denied, Text: "no key"}}
	for _, tt := range []struct {
		name   string
		in     Input
		code   job.Code
		within string
	}{
		{"no offers at all", Input{}, job.CodeNoOffer, ""},
		{"none matches", Input{Offers: []job.Offer{a1, b1, b2}, Resources: job.Resources{Any: []job.Want{{Region: "z"}}}}, job.CodeNoOffer, "local/b/1/small/od and 1 more: region \"b\", \"z\" wanted (resources.infra)\nlocal/a/1/small/od: region \"a\", \"z\" wanted (resources.infra)"},
		{"all invalid", Input{Offers: []job.Offer{a1, s1}, Resources: anything, Search: excluded}, job.CodeInvalid, "local/a/1/small/od: invalid: said no"},
		{"credentials are named first", Input{Offers: []job.Offer{a1, b1}, Resources: anything, Search: both}, job.CodeDenied, "local/b/1/small/od: denied: no key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Choose(tt.in)
			if c.None == nil || c.Offer != nil || c.Until != 0 {
				t.Fatalf("Choose = %+v, want a cause only", c)
			}
			if c.None.Code != tt.code || !strings.Contains(c.None.Evidence, tt.within) || c.None.Text == "" {
				t.Errorf("cause %+v, want code %s and evidence with %q", *c.None, tt.code, tt.within)
			}
		})
	}
}

// TestOneReason ensures that what rules all offers out alike is the sentence that the task ends with.
func TestOneReason(t *testing.T) {
	c := Choose(Input{Offers: []job.Offer{s1, a1}, Resources: job.Resources{Any: []job.Want{{Provider: "aws"}}}})
	if want := (job.Cause{Code: job.CodeNoOffer, Text: `provider "local", "aws" wanted (resources.infra)`}); *c.None != want {
		t.Errorf("cause %+v, want %+v", *c.None, want)
	}
}

// TestEvidenceIsShort ensures that a catalogue with thousands of offers does not end up in the record.
func TestEvidenceIsShort(t *testing.T) {
	in := Input{Resources: job.Resources{Any: []job.Want{{Region: "z"}}}}
	for i := range 1000 {
		o := a1
		o.Region = strings.Repeat("x", i+1)
		in.Offers = append(in.Offers, o)
	}
	c := Choose(in)
	if lines := strings.Split(c.None.Evidence, "\n"); len(lines) != evidenceLines+1 || lines[evidenceLines] != "and 990 more reasons" {
		t.Errorf("evidence of %d lines ends with %q", len(lines), lines[len(lines)-1])
	}
}

// TestPermanentFailureLeavesTheOthers ensures that an excluded offer does not end a round early: the rest is still
// tried, and a round in which the rest failed ends with a wait, not with an ending.
func TestPermanentFailureLeavesTheOthers(t *testing.T) {
	in := Input{Offers: []job.Offer{a1, b1}, Resources: anything, Now: now}
	in.Search = in.Search.Failed(b1, job.Fault{Class: job.Invalid}, now)
	if c := Choose(in); c.Offer == nil || *c.Offer != a1 {
		t.Fatalf("Choose = %+v, want a1", c)
	}
	in.Search = in.Search.Failed(a1, job.Fault{Class: job.Capacity}, now)
	if c := Choose(in); c.Until <= now || c.None != nil {
		t.Fatalf("Choose = %+v, want a wait", c)
	}
	in.Search = in.Search.RoundOver()
	if c := Choose(in); c.Offer == nil || *c.Offer != a1 || !c.Start {
		t.Fatalf("Choose = %+v, want a1 as the start of a round", c)
	}
}

// TestBackoff ensures SkyPilot's waits: 60 s × 1.6, at most 300 s, and no more than 40 % beside them.
func TestBackoff(t *testing.T) {
	for round, want := range []float64{60, 96, 153.6, 245.76, 300, 300, 300} {
		low, high := time.Duration(0.6*want*float64(time.Second)), time.Duration(1.4*want*float64(time.Second))
		distinct := map[time.Duration]bool{}
		for seed := range uint64(200) {
			got := Backoff(0, round, seed)
			if got < low-time.Millisecond || got > high {
				t.Fatalf("round %d seed %d: %v is outside %v..%v", round, seed, got, low, high)
			}
			distinct[got] = true
		}
		if len(distinct) < 190 {
			t.Errorf("round %d: 200 seeds give only %d waits", round, len(distinct))
		}
	}
	if a, b := Backoff(time.Second, 9, 7), Backoff(time.Second, 9, 7); a != b || a > 7*time.Second {
		t.Errorf("waits %v and %v, want the same and at most 7 s", a, b)
	}
	if got := Backoff(0, 1_000_000, 1); got > 420*time.Second {
		t.Errorf("wait of a late round is %v", got)
	}
}

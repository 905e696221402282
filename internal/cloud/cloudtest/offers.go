package cloudtest

import (
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
)

// Each offer names its provider and region, costs something, and has a key of its own.
func offersAreSane(w *world) {
	offers, err := w.p.Offers(w.ctx(), job.Resources{Any: []job.Want{{}, {UseSpot: true}}})
	if err != nil {
		w.Fatalf("offers: %v", err)
	}
	keys := make(map[string]bool)
	for _, o := range offers {
		if o.Provider != w.p.Name() || o.Region == "" || o.Type == "" {
			w.Errorf("offer %+v does not say of whom, where and what it is", o)
		}
		if o.Price <= 0 {
			w.Errorf("offer %s costs %g", o.Key(), o.Price)
		}
		if keys[o.Key()] {
			w.Errorf("offer %s is there twice", o.Key())
		}
		keys[o.Key()] = true
	}
}

// Only what is wanted is offered, and an impossible wish gets an empty list, not an error.
func offersFitWhatIsWanted(w *world) {
	for _, want := range []job.Want{
		{}, {UseSpot: true}, {Region: w.offer.Region}, {Provider: w.offer.Provider, Zone: w.offer.Zone},
		{CPUs: job.Quantity{N: 1, AtLeast: true}, MemoryGB: job.Quantity{N: 1, AtLeast: true}},
	} {
		offers, err := w.p.Offers(w.ctx(), job.Resources{Any: []job.Want{want}})
		if err != nil {
			w.Fatalf("offers for %+v: %v", want, err)
		}
		for _, o := range offers {
			if !place.Match(want, o) {
				w.Errorf("%s is offered to %+v", o.Key(), want)
			}
		}
	}
	for _, want := range []job.Want{
		{Provider: "no-such-provider"}, {Region: "no-such-region"}, {CPUs: job.Quantity{N: 1e9, AtLeast: true}},
	} {
		offers, err := w.p.Offers(w.ctx(), job.Resources{Any: []job.Want{want}})
		if err != nil || len(offers) != 0 {
			w.Errorf("offers for %+v: %d and error %v, want none", want, len(offers), err)
		}
	}
}

// Whatever is offered lies in one of the regions, so that its machines are listed.
func regionsCoverOffers(w *world) {
	regions, err := w.p.Regions(w.ctx())
	if err != nil {
		w.Fatalf("regions: %v", err)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(regions))); len(sorted) != len(regions) {
		w.Errorf("regions %q repeat themselves", regions)
	}
	offers, err := w.p.Offers(w.ctx(), job.Resources{Any: []job.Want{{}, {UseSpot: true}}})
	if err != nil {
		w.Fatalf("offers: %v", err)
	}
	for _, o := range offers {
		if !slices.Contains(regions, o.Region) {
			w.Errorf("offer %s is in none of the regions %q", o.Key(), regions)
		}
	}
}

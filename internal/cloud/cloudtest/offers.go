package cloudtest

import (
	"encoding/json"
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
)

// Each offer names its provider and region, costs something, and has a key of its own.
func offersAreSane(w *world) {
	offers, err := w.p.Offers(w.ctx())
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
		if (o.Accelerator == "") != (o.AcceleratorCount == 0) || o.AcceleratorCount < 0 || o.CPUs < 0 || o.MemoryGB < 0 {
			w.Errorf("offer %s has the amounts %+v", o.Key(), o)
		}
	}
}

// Whoever asks for exactly what an offer says gets it, also after the offer was stored and read again, as those see it
// who know no provider; and a wish for what nobody has finds nothing.
func offersAreFoundByTheirWords(w *world) {
	offers, err := w.p.Offers(w.ctx())
	if err != nil {
		w.Fatalf("offers: %v", err)
	}
	text, err := json.Marshal(offers)
	if err != nil {
		w.Fatalf("encode: %v", err)
	}
	var published []job.Offer
	if err := json.Unmarshal(text, &published); err != nil {
		w.Fatalf("decode: %v", err)
	}
	if !slices.Equal(offers, published) {
		w.Errorf("offers differ from what is published of them: %+v, %+v", offers, published)
	}
	for _, o := range published {
		want := job.Want{
			Provider: o.Provider, Region: o.Region, Zone: o.Zone, Type: o.Type, UseSpot: o.Spot, MaxPrice: o.Price,
			CPUs: job.Quantity{N: o.CPUs}, MemoryGB: job.Quantity{N: o.MemoryGB}, Accelerator: o.Accelerator, AcceleratorCount: o.AcceleratorCount,
		}
		if !place.Match(want, o) {
			w.Errorf("%s is not found by its own words %+v", o.Key(), want)
		}
		for _, none := range []job.Want{
			{Provider: "no-such-provider"}, {Region: "no-such-region"}, {Type: "no-such-type"}, {Accelerator: "no-such-accelerator"},
			{CPUs: job.Quantity{N: 1e9, AtLeast: true}}, {MaxPrice: o.Price / 2},
		} {
			if none.UseSpot = o.Spot; place.Match(none, o) {
				w.Errorf("%s is found by %+v", o.Key(), none)
			}
		}
	}
}

// The provider says of each field that a job file may have what becomes of it, and if that is not what was written,
// then why, and for a refusal what to write instead.
func supportIsTotal(w *world) {
	support := w.p.Support()
	for _, f := range place.Fields() {
		t, there := support[f]
		switch t.Effect {
		case place.Honoured:
		case place.NoEffect, place.Refused:
			if t.Why == "" {
				w.Errorf("%s: %s, and it does not say why", f, t.Effect)
			}
			if t.Effect == place.Refused && t.Way == "" {
				w.Errorf("%s: refused, and it does not say what to do instead", f)
			}
		default:
			w.Errorf("%s: effect %q (there: %v)", f, t.Effect, there)
		}
	}
	if len(support) != len(place.Fields()) {
		w.Errorf("%d treatments for %d fields", len(support), len(place.Fields()))
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
	offers, err := w.p.Offers(w.ctx())
	if err != nil {
		w.Fatalf("offers: %v", err)
	}
	for _, o := range offers {
		if !slices.Contains(regions, o.Region) {
			w.Errorf("offer %s is in none of the regions %q", o.Key(), regions)
		}
	}
}

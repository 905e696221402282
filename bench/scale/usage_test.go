package main

import (
	"math"
	"testing"
)

// TestQuantile ensures that quantiles of a histogram lie in the bucket that holds them, and those of samples are samples.
func TestQuantile(t *testing.T) {
	t.Parallel()
	h := histogram{bounds: []float64{1, 2, 4}, counts: []float64{50, 90, 100}, total: 100}
	for part, want := range map[float64]float64{.25: .5, .5: 1, .7: 1.5, .95: 3, 1: 4} {
		if got := h.quantile(part); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %g is %g, want %g", part, got, want)
		}
	}
	later := histogram{bounds: h.bounds, counts: []float64{50, 100, 110}, total: 110}
	if since := later.since(h); since.total != 10 || since.most() != 2 || since.quantile(.5) != 1.5 {
		t.Errorf("since then: %+v", since)
	}
	if empty := (histogram{}); empty.quantile(.99) != 0 || empty.most() != 0 {
		t.Error("no samples have a quantile")
	}
	if s := sortedOf([]float64{3, 1, 2}); s.quantile(.5) != 2 || s.quantile(1) != 3 || sorted(nil).quantile(.5) != 0 {
		t.Errorf("of %v: %g and %g", s, s.quantile(.5), s.quantile(1))
	}
}

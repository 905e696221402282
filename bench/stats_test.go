package main

import (
	"math"
	"testing"
)

// Ensure percentiles are samples by the nearest rank, and that nothing measured is no number.
func TestPercentile(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		samples []float64
		p, want float64
	}{
		{ten, 50, 5}, {ten, 90, 9}, {ten, 99, 10}, {ten, 100, 10}, {ten, 1, 1}, {[]float64{7}, 50, 7}, {[]float64{7}, 99, 7},
	} {
		if got := percentile(c.samples, c.p); got != c.want {
			t.Errorf("p%g of %v is %g, want %g", c.p, c.samples, got, c.want)
		}
	}
	if !math.IsNaN(percentile(nil, 50)) {
		t.Error("nothing measured is a number")
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ensure percentiles are samples by the nearest rank, and that of nothing they are 0.
func TestPercentile(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		samples []float64
		p, want float64
	}{
		{ten, 50, 5}, {ten, 90, 9}, {ten, 91, 10}, {ten, 99, 10}, {ten, 100, 10}, {ten, 1, 1}, {ten, 0, 1},
		{[]float64{7}, 50, 7}, {[]float64{7}, 99, 7}, {nil, 50, 0},
	} {
		if got := percentile(c.samples, c.p); got != c.want {
			t.Errorf("p%g of %v is %g, want %g", c.p, c.samples, got, c.want)
		}
	}
}

// Ensure a summary does not depend on the order of the samples, and leaves them as they were.
func TestSummarize(t *testing.T) {
	samples := []float64{3, 1, 2}
	got := summarize(measurement{name: "x", what: "an x", unit: "ms", aim: "2"}, samples)
	want := result{Name: "x", What: "an x", Unit: "ms", Aim: "2", Samples: 3, P50: 2, P90: 3, P99: 3, Max: 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]float64{3, 1, 2}, samples); diff != "" {
		t.Errorf("the samples were changed (-want +got)\n%s", diff)
	}
}

// Ensure numbers are shown with three digits at least and no more decimals than they deserve.
func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 7.104: "7.10", 24.69: "24.7", 156.8: "157", 23310.4: "23310"} {
		if got := figure(v); got != want {
			t.Errorf("%g is shown as %s, want %s", v, got, want)
		}
	}
}

// Ensure measurements are found by name, and that a name that is wrong is told.
func TestChoose(t *testing.T) {
	all, err := choose("")
	if err != nil || len(all) != len(measurements) {
		t.Errorf("without names: %d measurements, %v", len(all), err)
	}
	two, err := choose("look,submit")
	if err != nil || len(two) != 2 || two[0].name != "look" || two[1].name != "submit" {
		t.Errorf("two names: %v, %v", two, err)
	}
	if _, err := choose("submit,nap"); err == nil || !strings.Contains(err.Error(), `"nap"`) {
		t.Errorf("a wrong name: %v", err)
	}
}

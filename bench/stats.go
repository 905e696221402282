package main

import (
	"math"
	"slices"
)

// result is what is printed and written of one measurement.
type result struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Unit    string  `json:"unit"`
	Aim     string  `json:"aim,omitempty"`
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

func summarize(m measurement, samples []float64) result {
	s := slices.Sorted(slices.Values(samples))
	return result{
		Name: m.name, What: m.what, Unit: m.unit, Aim: m.aim, Samples: len(s),
		P50: percentile(s, 50), P90: percentile(s, 90), P99: percentile(s, 99), Max: percentile(s, 100),
	}
}

// percentile is the smallest sample that at least p of 100 samples do not exceed (nearest rank). The samples are sorted.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

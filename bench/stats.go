package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
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
// Of no samples it is 0, which JSON can say.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// show prints results as a table.
func show(w io.Writer, results []result) error {
	if len(results) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "measured\tsamples\tp50\tp90\tp99\tmax\tunit\taim\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.What, r.Samples, figure(r.P50), figure(r.P90), figure(r.P99), figure(r.Max), r.Unit, r.Aim)
	}
	return table.Flush()
}

// figure shows a number with as many digits as it deserves.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

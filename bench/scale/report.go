package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is all that was measured.
type report struct {
	Options  string    `json:"options"`
	Launches []launch  `json:"launches"`
	Quiet    []quiet   `json:"quiet"`
	Storms   []weather `json:"storms"`
	Lists    []listing `json:"lists"`
	Retiring *retiring `json:"retiring,omitempty"`
	Largest  int       `json:"largest,omitempty"` // live jobs that hold
}

// launch is how a fleet came to run.
type launch struct {
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	RedisUS   float64 `json:"redis_us"`  // processor time of Redis for each
	WorkerUS  float64 `json:"worker_us"` // of the workers
	Calls     float64 `json:"calls"`     // of the provider, for each
}

// quiet is a fleet in which nothing happens.
type quiet struct {
	Jobs             int     `json:"jobs"`
	Looks            float64 `json:"looks"` // a second
	LateP50          float64 `json:"late_p50"`
	LateP99          float64 `json:"late_p99"`
	LateMax          float64 `json:"late_max"`
	RedisCores       float64 `json:"redis_cores"`
	WorkerCores      float64 `json:"worker_cores"`
	SimCores         float64 `json:"sim_cores"`
	WorkerBytes      float64 `json:"worker_bytes"`
	RedisBytes       float64 `json:"redis_bytes"` // a job
	CallsPerMinute   float64 `json:"calls_per_minute"`
	RedisUS          float64 `json:"redis_us"` // of processor time a look
	WorkerUS         float64 `json:"worker_us"`
	Commands         float64 `json:"commands"` // a look, with those that scripts call
	ScriptUS         float64 `json:"script_us"`
	ScriptsPerSecond float64 `json:"scripts_per_second"`
}

// weather is what a storm did.
type weather struct {
	Name        string  `json:"name"`
	What        string  `json:"what"`
	Live        int     `json:"live"`
	Calm        float64 `json:"calm"`
	Urgent      int     `json:"urgent"`
	UrgentP50   float64 `json:"urgent_p50"`
	UrgentMax   float64 `json:"urgent_max"`
	PeakCalls   float64 `json:"peak_calls"`
	Limit       float64 `json:"limit"`
	LateMax     float64 `json:"late_max"`
	RedisCores  float64 `json:"redis_cores"`
	WorkerCores float64 `json:"worker_cores"`
}

func describe(o options) string {
	return fmt.Sprintf("%d workers, looks every %s, %d launches at a time, at most %g changes of machines a second, %d cores, %s %s",
		o.workers, o.quiet, o.launches, o.rate, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// row is one line of the table of fleets: what it shows of each, and what is aimed at for the large one.
type row struct {
	what, aim string
	of        func(quiet) string
}

var rows = []row{
	{"looks a second", "", func(q quiet) string { return figure(q.Looks) }},
	{"late, p50", "", func(q quiet) string { return seconds(q.LateP50) }},
	{"late, p99", "< 1 s", func(q quiet) string { return seconds(q.LateP99) }},
	{"late, at most", "", func(q quiet) string { return seconds(q.LateMax) }},
	{"Redis, cores", "", func(q quiet) string { return fmt.Sprintf("%.3f", q.RedisCores) }},
	{"all workers, cores", "", func(q quiet) string { return fmt.Sprintf("%.3f", q.WorkerCores) }},
	{"both together, cores", "≤ 0.5", func(q quiet) string { return fmt.Sprintf("%.3f", q.RedisCores+q.WorkerCores) }},
	{"(the machines, in a Redis of their own)", "", func(q quiet) string { return fmt.Sprintf("%.3f", q.SimCores) }},
	{"memory of all workers", "< 200 MB", func(q quiet) string { return fmt.Sprintf("%.0f MB", q.WorkerBytes/1e6) }},
	{"memory of Redis, a live job", "< 2 KB", func(q quiet) string { return figure(q.RedisBytes) + " B" }},
	{"calls of the provider a minute", "flat", func(q quiet) string { return figure(q.CallsPerMinute) }},
	{"Redis, a look", "", func(q quiet) string { return figure(q.RedisUS) + " µs" }},
	{"workers, a look", "", func(q quiet) string { return figure(q.WorkerUS) + " µs" }},
	{"commands of Redis, a look", "", func(q quiet) string { return figure(q.Commands) }},
	{"one script of that size (redis-benchmark)", "", func(q quiet) string { return figure(q.ScriptUS) + " µs" }},
	{"a look, in such scripts", "", func(q quiet) string { return fmt.Sprintf("× %.1f", q.RedisUS/q.ScriptUS) }},
}

// show prints the report as tables, with what is aimed at beside it.
func (r *report) show(w io.Writer) {
	fmt.Fprintf(w, "\n%s, %s\n\n", r.Options, time.Now().Format(time.DateOnly))
	if len(r.Launches) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "launched\ttook\tjobs/s\tRedis a job\tworkers a job\tcalls a job\t")
		for _, l := range r.Launches {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s µs\t%s µs\t%.2f\t\n", l.Jobs, seconds(l.Seconds), figure(l.PerSecond), figure(l.RedisUS), figure(l.WorkerUS), l.Calls)
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	if len(r.Quiet) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(t, "a quiet fleet\t")
		for _, q := range r.Quiet {
			fmt.Fprintf(t, "%d jobs\t", q.Jobs)
		}
		fmt.Fprintln(t, "aim at 100000\t")
		for _, line := range rows {
			fmt.Fprintf(t, "%s\t", line.what)
			for _, q := range r.Quiet {
				fmt.Fprintf(t, "%s\t", line.of(q))
			}
			fmt.Fprintf(t, "%s\t\n", line.aim)
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	if len(r.Storms) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "storm\tlive jobs\tcalm after\turgent jobs start after\tat most (aim < 1 s)\tlooks late, at most\tcalls/s, at most\tallowed\t")
		for _, s := range r.Storms {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t\n", s.What, s.Live, seconds(s.Calm), seconds(s.UrgentP50), seconds(s.UrgentMax), seconds(s.LateMax), s.PeakCalls, s.Limit)
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	if len(r.Lists) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "list, beside %d jobs\tp50 (aim < 50 ms)\tat most\t\n", r.Lists[0].Jobs)
		for _, l := range r.Lists {
			fmt.Fprintf(t, "%s\t%.1f ms\t%.1f ms\t\n", l.What, l.P50MS, l.MaxMS)
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	if t := r.Retiring; t != nil {
		fmt.Fprintf(w, "ended jobs left for the archive at %s a second, with %s µs of Redis and %s µs of workers each; memory of Redis %.0f MB, then %.0f MB; looks at live jobs late by %s (p99)\n",
			figure(t.PerSecond), figure(t.RedisUS), figure(t.WorkerUS), t.RedisBefore/1e6, t.RedisAfter/1e6, seconds(t.LateP99))
	}
	if r.Largest > 0 {
		fmt.Fprintf(w, "the largest fleet that held (p99 of lateness below 1 s): %d live jobs (aim 500000)\n", r.Largest)
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// figure shows a number with as many digits as it deserves.
func figure(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// sorted are samples in order.
type sorted []float64

func sortedOf(samples []float64) sorted { return slices.Sorted(slices.Values(samples)) }

// quantile is the smallest sample that at least a part of them do not exceed; 0 of none.
func (s sorted) quantile(part float64) float64 {
	if len(s) == 0 {
		return 0
	}
	return s[max(int(math.Ceil(part*float64(len(s)))), 1)-1]
}

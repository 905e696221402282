// Command bench measures what docs/performance.md tells, with a real Redis and real processes: the worker's own binary, its
// machines and what runs on them.
//
//	go run ./bench                    everything, 200 samples each (about ten minutes)
//	go run ./bench -n 20              a first look
//	go run ./bench -only submit,look  some of it
//	go run ./bench -json out.json     the same as JSON
//
// It prints one line a measurement and leaves nothing behind. The figures are those of this machine now: compare ratios
// within one run, not runs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

// measurement is one thing that can be measured.
type measurement struct {
	name, what, unit string
	aim              string
	run              func(ctx context.Context, b *bench) ([]float64, error)
}

var measurements = []measurement{
	{"submit", "submit → user code running", "ms", "p50 150", launchLatency},
	{"cancel", "cancel → CANCELLED, every process gone", "ms", "p50 500", cancelLatency},
	{"preempt", "machine killed → user code running on the next", "ms", "p50 1500", recoveryLatency},
	{"kill", "worker kill -9 → its job driven again", "s", "p50 12, p99 20", takeoverLatency},
	{"batch", "jobs submitted, in batches of 1000", "jobs/s", "5000", submitThroughput},
	{"look", "Redis CPU per look at a quiet job", "µs", "25", lookCost},
	{"commands", "Redis commands per look at a quiet job", "", "", lookCommands},
	{"bytes", "Redis bytes per live job", "bytes", "2048", bytesPerJob},
}

func main() {
	var (
		n    = flag.Int("n", 200, "samples of each latency")
		only = flag.String("only", "", "names of the measurements to make, comma-separated; all if empty")
		out  = flag.String("json", "", "write the figures to this file, too")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *n, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// bench is what all measurements share.
type bench struct {
	n      int
	worker string // the binary
	dir    string
}

func run(ctx context.Context, n int, only, out string) error {
	dir, err := os.MkdirTemp("", "outlast-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{n: n, dir: dir, worker: filepath.Join(dir, "worker")}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.worker, "./worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the worker: %w\n%s", err, text)
	}
	var results []result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "measured\tsamples\tp50\tp90\tp99\tmax\tunit\taim\t")
	for _, m := range measurements {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.what)
		samples, err := m.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		r := summarize(m, samples)
		results = append(results, r)
		fmt.Fprintf(table, "%s\t%d\t%.4g\t%.4g\t%.4g\t%.4g\t%s\t%s\t\n", m.what, r.Samples, r.P50, r.P90, r.P99, r.Max, m.unit, m.aim)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

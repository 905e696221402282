// Command bench measures what docs/performance.md tells, with a real Redis and real processes: the worker's own binary, its
// machines and what runs on them. It submits and watches as the client does, through the store and the queue.
//
//	go run ./bench                    everything, 200 samples of each latency (12 to 15 minutes)
//	go run ./bench -quick             a first look, in about a minute
//	go run ./bench -only submit,look  some of it
//	go run ./bench -json out.json     the same as JSON
//
// It prints one line a measurement and leaves nothing behind, also when it is interrupted: then it prints what it has. The
// figures are those of this machine now: compare what was measured side by side.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
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
	{"kill", "worker kill -9 → its acts driven on by another", "s", "p50 12, p99 20", actTakeover},
	{"watch", "worker kill -9 in a tick → its quiet jobs looked at", "s", "p50 12, p99 20", watchTakeover},
	{"one", "jobs submitted one by one, 16 clients", "jobs/s", "", singleThroughput},
	{"batch", "jobs submitted in batches of 5000", "jobs/s", "5000", batchThroughput},
	{"look", "Redis CPU per look at a quiet job", "µs", "25", lookCost},
	{"commands", "Redis commands per look at a quiet job", "", "", lookCommands},
	{"bytes", "Redis memory per live job", "bytes", "2048", bytesPerJob},
	{"page", "first page of 50 live jobs", "ms", "50", firstPage},
	{"middle", "page of 50 in the middle of all jobs", "ms", "50", middlePage},
	{"user", "page of 50 of a user: all jobs are passed", "ms", "50", byUser},
	{"name", "page of 50 by a part of the name: all jobs are passed", "ms", "50", byName},
	{"oldest", "page of the oldest 50 live jobs, by user and name: all jobs are passed", "ms", "50", oldestLive},
	{"counts", "jobs by status", "ms", "50", counts},
}

// patience bounds a whole run, whatever hangs.
const patience = 30 * time.Minute

func main() {
	o := options{}
	flag.IntVar(&o.n, "n", 200, "samples of each latency, at least")
	flag.IntVar(&o.quiet, "jobs", 20_000, "quiet jobs with which the cost of a look is measured")
	flag.IntVar(&o.ended, "ended", 0, "ended jobs that are in Redis beside those of the lists; a million take some minutes to make")
	quick := flag.Bool("quick", false, "the same as -n 10 -jobs 2000")
	only := flag.String("only", "", "names of the measurements to make, comma-separated; all if empty")
	out := flag.String("json", "", "write the figures to this file, too")
	flag.Parse()
	if *quick {
		o.n, o.quiet = 10, 2000
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, done := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	err := run(ctx, o, *only, *out)
	done()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options say how much is measured.
type options struct {
	n     int // samples of each latency
	quiet int // jobs of the quiet fleet
	ended int // jobs that have ended, in the lists
}

// bench is what all measurements share.
type bench struct {
	options
	dir    string
	worker string // the binary
	still  *quietFleet
	lists  *records
}

// run makes the measurements and shows what came of them, also of those before one that failed.
func run(ctx context.Context, o options, only, out string) (err error) {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "outlast-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, dir: dir, worker: filepath.Join(dir, "worker")}
	if err := b.build(ctx); err != nil {
		return err
	}
	results, err := b.measure(ctx, chosen)
	return errors.Join(err, show(os.Stdout, results), save(out, results))
}

// choose finds measurements by name.
func choose(only string) ([]measurement, error) {
	if only == "" {
		return measurements, nil
	}
	var chosen []measurement
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q", name)
		}
		chosen = append(chosen, measurements[i])
	}
	return chosen, nil
}

// build makes the worker as make build does.
func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.worker, "./worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the worker (run this at the root of the repository): %w\n%s", err, text)
	}
	return nil
}

func (b *bench) measure(ctx context.Context, chosen []measurement) ([]result, error) {
	defer func() {
		if b.still != nil {
			b.still.close()
		}
		if b.lists != nil {
			b.lists.close()
		}
	}()
	var results []result
	for _, m := range chosen {
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.what)
		samples, err := m.run(ctx, b)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		if err != nil {
			return results, fmt.Errorf("%s: %w", m.what, err)
		}
		results = append(results, summarize(m, samples))
	}
	return results, nil
}

// save writes the results as JSON.
func save(file string, results []result) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

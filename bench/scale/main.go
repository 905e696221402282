// Command scale measures how large a fleet a deployment holds, with a real Redis, real worker processes and the sim provider,
// whose machines are in a Redis of their own. Everything runs on this machine. The first jobs and those of the storms get to where
// they run by ordinary launches; what a fleet has beside them is planted there by the same commits.
//
//	go run ./bench/scale                      all of it: fleets of 1,000, 10,000 and 100,000, the storms, and lists beside a million ended jobs, which then retire
//	go run ./bench/scale -quick               a first look: fleets of 200 and 2,000, small storms (4 minutes)
//	go run ./bench/scale -fleets 100000 -storms "" -ended 0
//	go run ./bench/scale -search 500000       how many live jobs hold, up to so many
//	go run ./bench/scale -json out.json       the same as JSON
//	go run ./bench/scale -profiles DIR        CPU and heap profiles of the workers, commandstats and SLOWLOG of Redis
//
// It leaves nothing behind, also when it is interrupted. The figures are those of this machine now: the ratios to what Redis
// did in the same run are what can be compared.
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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options say what is measured.
type options struct {
	fleets   []int
	storms   []string
	storm    int // jobs in a storm of submissions; the others are half of it
	ended    int // jobs that have ended, beside which lists are asked for
	search   int
	workers  int
	launches int
	launched int // live jobs that get there by ordinary launches
	quiet    time.Duration
	window   time.Duration
	rate     float64 // calls a second that change machines
	profiles string
	keep     string // directory for the logs of the workers
}

// patience bounds a whole run, whatever hangs.
const patience = 2 * time.Hour

func main() {
	o := options{}
	fleets := flag.String("fleets", "1000,10000,100000", "live jobs of each fleet, growing")
	storms := flag.String("storms", strings.Join(stormNames(), ","), "storms to raise over the last fleet")
	flag.IntVar(&o.storm, "storm", 20_000, "jobs in the storm of submissions; the other storms have half of them")
	flag.IntVar(&o.search, "search", 0, "look for the largest fleet that holds, up to so many; 0 does not")
	flag.IntVar(&o.ended, "ended", 1_000_000, "ended jobs beside the fleet when lists are asked for, which then leave for the archive; 0 does neither")
	flag.IntVar(&o.workers, "workers", 2, "worker processes")
	flag.IntVar(&o.launches, "launches", 256, "jobs being launched at a time")
	flag.IntVar(&o.launched, "launched", 1000, "live jobs that get there by ordinary launches; more of them are planted")
	flag.DurationVar(&o.quiet, "quiet", 15*time.Second, "time between two looks at a job that runs undisturbed")
	flag.DurationVar(&o.window, "window", time.Minute, "how long a quiet fleet is measured")
	flag.Float64Var(&o.rate, "rate", 1000, "limit of calls a second that make and end machines")
	flag.StringVar(&o.profiles, "profiles", "", "directory for profiles")
	flag.StringVar(&o.keep, "logs", "", "directory for the logs of the workers")
	quick := flag.Bool("quick", false, "the same as -fleets 200,2000 -storm 1000 -ended 20000 -window 20s")
	out := flag.String("json", "", "write the figures to this file, too")
	flag.Parse()
	if *quick {
		*fleets, o.storm, o.ended, o.window = "200,2000", 1000, 20_000, 20*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, done := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	err := o.parse(*fleets, *storms)
	if err == nil {
		err = run(ctx, o, *out)
	}
	done()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func (o *options) parse(fleets, storms string) error {
	for text := range strings.SplitSeq(fleets, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-fleets: %q is no number of jobs", text)
		}
		o.fleets = append(o.fleets, n)
	}
	slices.Sort(o.fleets)
	for name := range strings.SplitSeq(storms, ",") {
		if name == "" {
			continue
		}
		if !slices.Contains(stormNames(), name) {
			return fmt.Errorf("-storms: there is no storm %q, there are %s", name, strings.Join(stormNames(), ", "))
		}
		o.storms = append(o.storms, name)
	}
	return nil
}

// run makes the measurements and shows what came of them, also of those before one that failed.
func run(ctx context.Context, o options, out string) (err error) {
	dir, err := os.MkdirTemp("", "outlast-scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	worker := filepath.Join(dir, "worker")
	if err := build(ctx, worker); err != nil {
		return err
	}
	r := &report{Options: describe(o)}
	err = measure(ctx, o, dir, worker, r)
	r.show(os.Stdout)
	return errors.Join(err, save(out, r))
}

// build makes the worker as make build does.
func build(ctx context.Context, worker string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", worker, "./worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the worker (run this at the root of the repository): %w\n%s", err, text)
	}
	return nil
}

func measure(ctx context.Context, o options, dir, worker string, r *report) error {
	f, err := newFleet(ctx, o, dir, worker)
	if err != nil {
		return err
	}
	defer f.close()
	for _, n := range o.fleets {
		if err := f.grow(ctx, n, r); err != nil {
			return fmt.Errorf("a fleet of %d: %w", n, err)
		}
		if err := f.quietly(ctx, r); err != nil {
			return fmt.Errorf("a fleet of %d: %w", n, err)
		}
	}
	for _, name := range o.storms {
		if err := f.storm(ctx, name, r); err != nil {
			return fmt.Errorf("the storm %q: %w", name, err)
		}
	}
	if o.search > 0 {
		if err := f.search(ctx, r); err != nil {
			return err
		}
	}
	if o.ended == 0 {
		return nil
	}
	if err := f.measureLists(ctx, r); err != nil {
		return err
	}
	return f.measureRetention(ctx, r)
}

// save writes the report as JSON.
func save(file string, r *report) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// say tells how the run goes on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

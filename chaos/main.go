package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// options are what a run is told.
type options struct {
	seed    uint64
	lasts   time.Duration
	size    string
	verbose bool
	race    bool
	keep    bool
	plant   string
	faults  []string
	kinds   []string
	rounds  []string
	source  string // folder of the source
	dir     string // where the histories lie
	judge   string // folder of a history to judge, instead of a run
	bin     string // where the programs are kept, for several runs
	patient time.Duration
}

// list is a flag of names with commas between them.
type list struct{ to *[]string }

func (l list) String() string { return "" }
func (l list) Set(s string) error {
	for name := range strings.SplitSeq(s, ",") {
		*l.to = append(*l.to, strings.TrimSpace(name))
	}
	return nil
}

func readOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", 0, "seed of all dice; 0 takes a new one")
	f.DurationVar(&o.lasts, "for", 3*time.Minute, "how long it takes, about: two thirds of it things are broken, then all comes to its end")
	f.StringVar(&o.size, "size", "ci", "how large it is: ci or long")
	f.BoolVar(&o.verbose, "v", false, "print the plan, and each fault when it comes")
	f.BoolVar(&o.race, "race", false, "build the workers with the race detector")
	f.BoolVar(&o.keep, "keep", false, "keep the histories also when there are no violations")
	f.StringVar(&o.plant, "plant", "", "build the workers with planted bugs, and turn this one on (G1 to G13)")
	f.Var(list{&o.faults}, "faults", "only faults of these names, with commas between them; 'none' for none")
	f.Var(list{&o.kinds}, "kinds", "only jobs of these kinds, with commas between them")
	f.Var(list{&o.rounds}, "rounds", "only rounds of these kinds: single, sentinel")
	f.DurationVar(&o.patient, "patience", 0, "how long all may take to come to its end; a longer time is a violation (default: as the size says)")
	f.StringVar(&o.source, "source", ".", "folder of the source")
	f.StringVar(&o.judge, "judge", "", "judge the history in this folder once more, and run nothing")
	f.StringVar(&o.bin, "bin", "", "folder of programs of an earlier run, or for those of this one (default: build anew)")
	f.StringVar(&o.dir, "dir", "", "folder for the histories (default: a new one)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is too much: all is said with flags", f.Arg(0))
	}
	if _, ok := sizes[o.size]; !ok {
		return o, fmt.Errorf("-size %q: is ci or long", o.size)
	}
	if err := known(o); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	return o, nil
}

// known refuses names that are not in the tables.
func known(o options) error {
	names := map[string]bool{"none": true}
	for _, f := range faults {
		names[f.name] = true
	}
	for _, n := range o.faults {
		if !names[n] {
			return fmt.Errorf("-faults: there is no fault %q", n)
		}
	}
	names = map[string]bool{}
	for _, k := range kinds {
		names[k.name] = true
	}
	for _, n := range o.kinds {
		if !names[n] {
			return fmt.Errorf("-kinds: there are no jobs of the kind %q", n)
		}
	}
	for _, n := range o.rounds {
		if n != roundSingle && n != roundSentinel {
			return fmt.Errorf("-rounds: %q is neither %s nor %s", n, roundSingle, roundSentinel)
		}
	}
	return nil
}

func main() {
	o, err := readOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	if o.judge != "" {
		os.Exit(judgeAgain(o))
	}
	redis.SetLogger(mute{}) // that Redis is away is our own doing
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := suite(ctx, o)
	stop()
	os.Exit(code)
}

// mute is a log that says nothing.
type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

// suite runs all rounds, and returns the exit code: 0 if nothing was found, 1 if something was, 2 if it could not be run.
func suite(ctx context.Context, o options) int {
	dir, err := folder(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	fmt.Printf("chaos: seed %d, size %s, about %s\n", o.seed, o.size, o.lasts)
	bin := o.bin
	if bin == "" {
		bin = filepath.Join(dir, "bin")
		defer func() { _ = os.RemoveAll(bin) }()
	}
	programs, err := build(ctx, bin, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	var all []verdict
	for i, p := range rounds(o) {
		r := newRound(o, p, i, dir, programs)
		r.say("begins: things are broken for %s", r.lasts)
		err := r.play(ctx)
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "chaos: interrupted; what was recorded is in", dir)
			return 2
		}
		all = append(all, r.judge(err))
	}
	bad := report(os.Stdout, all)
	if !bad && !o.keep {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		return 0
	}
	fmt.Printf("\nhistories: %s\n", dir)
	if !bad {
		return 0
	}
	fmt.Printf("once more: %s\n", again(o))
	return 1
}

// folder is where the histories go. Its path is short: sockets of local machines lie below it.
func folder(o options) (string, error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "chaos-")
		if err != nil {
			return "", fmt.Errorf("make a folder: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(o.dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("make the folder: %w", err)
	}
	return dir, nil
}

// again is the command that runs the same once more.
func again(o options) string {
	text := []string{fmt.Sprintf("go run ./chaos -seed %d -for %s -size %s", o.seed, o.lasts, o.size)}
	for _, f := range []struct {
		name  string
		value string
	}{{"plant", o.plant}, {"faults", strings.Join(o.faults, ",")}, {"kinds", strings.Join(o.kinds, ",")}, {"rounds", strings.Join(o.rounds, ",")}} {
		if f.value != "" {
			text = append(text, fmt.Sprintf("-%s '%s'", f.name, f.value))
		}
	}
	return strings.Join(append(text, "-v"), " ")
}

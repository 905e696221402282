package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The kinds of rounds.
const (
	roundSingle   = "single"   // one redis-server
	roundSentinel = "sentinel" // a master, a replica, three Sentinels
)

// part is a round as it is planned.
type part struct {
	kind  string
	lasts time.Duration // with faults
}

// longest is how long things are broken in one round at most: then a long run begins a new deployment.
const longest = 4 * time.Minute

// rounds shares the time among rounds: one in three is with Sentinels, and gets less in a short run. A third of the time is
// for coming to the end.
func rounds(o options) []part {
	faulty := o.lasts * 2 / 3
	var all []part
	switch {
	case len(o.rounds) == 1:
		for left := faulty; left > 0; left -= longest {
			all = append(all, part{o.rounds[0], min(left, longest)})
		}
	case faulty <= 2*longest:
		all = []part{{roundSingle, faulty * 13 / 20}, {roundSentinel, faulty * 7 / 20}}
	default:
		n := int((faulty + longest - 1) / longest)
		for i := range n {
			kind := roundSingle
			if i%3 == 1 {
				kind = roundSentinel
			}
			all = append(all, part{kind, faulty / time.Duration(n)})
		}
	}
	return all
}

// newRound prepares a round. Each has dice of its own.
func newRound(o options, p part, i int, dir string, bin binaries) *round {
	r := &round{
		opts: o, size: sizes[o.size], bin: bin, name: fmt.Sprintf("%d-%s", i+1, p.kind), seed: newDice(o.seed, fmt.Sprint("round ", i)).Uint64(),
		lasts: p.lasts, providers: []string{local, simul},
	}
	r.size.patience = cmp.Or(o.patient, r.size.patience)
	r.dir = filepath.Join(dir, r.name)
	r.wounds.held, r.tally = map[string]bool{}, map[string]int{}
	if p.kind == roundSentinel {
		r.ring = &sentinels{}
		if newDice(r.seed, "replicas").oneIn(2) || slices.Contains(o.faults, forgetful) {
			r.replicas = 1
		}
	}
	r.sky = &sky{world: r.name}
	return r
}

// plays reports whether the round has machines of a provider.
func (r *round) plays(provider string) bool { return slices.Contains(r.providers, provider) }

// since is the time since the round began, in seconds.
func (r *round) since() float64 { return now().Sub(r.run.Began).Seconds() }

// say tells people how it goes.
func (r *round) say(format string, args ...any) {
	fmt.Printf("%s: %s\n", r.name, fmt.Sprintf(format, args...))
}

// detail tells people who have asked for it.
func (r *round) detail(format string, args ...any) {
	if r.opts.verbose {
		fmt.Fprintf(os.Stdout, "%s: %s\n", r.name, fmt.Sprintf(format, args...))
	}
}

//go:build planted

package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/chaos/check"
	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/planted"
)

var (
	keepBin  = flag.String("chaos.bin", "", "folder of the programs, for several runs")
	keepRuns = flag.String("chaos.dir", "", "folder that keeps the histories")
)

// provocation is a run in which a planted bug cannot hide: the jobs that it harms, and the faults that bring it out.
type provocation struct {
	kinds, faults []string
	seed          uint64        // 0: 1
	lasts         time.Duration // with faults and new jobs; 0: ten seconds
	patience      time.Duration // for the end; 0: fifteen seconds, since some of what is broken never ends
}

// provocations are those of each bug but G2, which takes two drivers of one job that write within the same moment: chaos/linear
// makes those.
var provocations = map[planted.Bug]provocation{
	planted.G1:  {kinds: []string{"short", "chain"}, faults: []string{"queue flushed", "all workers killed"}, lasts: 15 * time.Second},
	planted.G3:  {kinds: []string{"heeds no notice"}, faults: []string{"machine taken with notice", "cloud machine taken with notice"}, lasts: 20 * time.Second},
	planted.G4:  {kinds: []string{"short"}, lasts: 3 * time.Second},
	planted.G5:  {kinds: []string{"cancelled late"}, faults: []string{"terminate: slow", "terminate: unavailable"}},
	planted.G6:  {kinds: []string{"long"}, faults: []string{"dial: unreachable"}, lasts: 20 * time.Second, seed: 3},
	planted.G7:  {kinds: []string{"cancelled while it waits"}, patience: 40 * time.Second},
	planted.G8:  {kinds: []string{"waits for long"}, patience: 40 * time.Second},
	planted.G9:  {kinds: []string{"long", "heeds no notice"}},
	planted.G10: {kinds: []string{"short"}, faults: []string{"offers: unavailable"}, lasts: 20 * time.Second},
	planted.G11: {kinds: []string{"short"}},
	planted.G12: {kinds: []string{"secret"}},
	planted.G13: {kinds: []string{"fails", "short"}},
}

// Ensure that the suite finds each planted bug, and calls it by its guarantee. It is run by `make chaos-planted`.
func TestPlantedBugsAreFound(t *testing.T) {
	bin := cmp.Or(*keepBin, filepath.Join(short(t), "bin"))
	for _, bug := range planted.Bugs {
		p, is := provocations[bug]
		if !is {
			continue
		}
		t.Run(string(bug), func(t *testing.T) {
			dir := short(t)
			if *keepRuns != "" {
				dir = filepath.Join(*keepRuns, string(bug))
			}
			if len(p.faults) == 0 {
				p.faults = []string{"none"}
			}
			o := options{
				seed: cmp.Or(p.seed, 1), lasts: cmp.Or(p.lasts, 10*time.Second) * 3 / 2, size: "ci", plant: string(bug), faults: p.faults, kinds: p.kinds,
				rounds: []string{roundSingle}, patient: cmp.Or(p.patience, 15*time.Second), keep: true, source: "..", bin: bin, dir: dir,
			}
			if err := known(o); err != nil {
				t.Fatal(err)
			}
			if code := suite(t.Context(), o); code != 1 {
				t.Errorf("the suite ended with %d, want 1: something was found", code)
			}
			h, err := history.Read(filepath.Join(dir, "1-"+roundSingle))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, v := range check.Judge(h) {
				if v.Guarantee == string(bug) {
					t.Logf("found: %s", v)
					return
				}
				found = append(found, v.String())
			}
			t.Errorf("%s is planted, and no violation of it was found among %d jobs; found was:\n%s", bug, len(h.Jobs), strings.Join(found, "\n"))
		})
	}
}

// short is a folder with a short path: sockets of local machines lie below it.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

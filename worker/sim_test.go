package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/cloud/sim"
)

// simulated are the settings of a worker in the world of the examples.
func simulated(t *testing.T) []string {
	t.Helper()
	world, err := filepath.Abs("../examples/sim/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--providers", "sim", "--sim-world", world}
}

// Ensure with the real programs that the example of the sim provider is played as it says, by two workers that share its
// world, and that nothing is left of it.
func TestSimExample(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker(simulated(t)...)
	f.worker(append(simulated(t), "--worker", "second")...)
	job, err := filepath.Abs("../examples/sim/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the offers of the world", func() bool {
		r := f.enqueue("plan", job)
		return r.code == 0 && strings.Contains(r.out, "sim/east/east-a")
	}, func() string { r := f.enqueue("plan", job); return r.out + r.errs })
	r := f.enqueue("launch", "-d", job)
	if r.code != 0 {
		t.Fatalf("launch: %+v", r)
	}
	id := strings.TrimSpace(r.out)
	f.await(id, "SUCCEEDED")
	f.eventually("its log", func() bool {
		log := f.enqueue("logs", id, "--tail", "0").out
		return strings.Contains(log, "prepares for attempt 1") && strings.Contains(log, "prepares for attempt 2") && strings.HasSuffix(log, "done\n")
	}, func() string { r := f.enqueue("logs", id); return r.out + r.errs })
	f.nothingRuns()

	world, err := sim.LoadWorld("../examples/sim/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := sim.Open(t.Context(), f.admin, world)
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	events, err := c.Events(t.Context(), "", 1000)
	for _, e := range events {
		if e.Op == "start" {
			starts++
		}
	}
	if err != nil || starts != 2 {
		t.Errorf("the ledger tells of %d starts, want 2 (error %v): %+v", starts, err, events)
	}
}

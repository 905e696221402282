package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure with the real programs that a worker tells what it has, that the command line judges by it as the worker does,
// and that a task on a machine with accelerators learns how many there are.
func TestPlanByARealWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	settings := filepath.Join(f.home, "config", "outlast", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("local: {zones: [{name: near, cpus: 4}, {name: far, accelerators: {A100: 8}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.worker()
	f.eventually("the worker to tell its offers", func() bool { return f.enqueue("plan", "--", "true").code == 0 })

	if r := f.enqueue("plan", "--cpus", "4", "--", "true"); !strings.Contains(r.out, "local/near") || !strings.Contains(r.out, "local/far on-demand: 8 CPUs, 4 wanted") {
		t.Errorf("plan: %+v", r)
	}
	docker := []string{"--image-id", "docker:ubuntu", "--", "true"}
	const why = "resources.image_id: local runs no containers: remove it, and install what is needed in setup"
	if r := f.enqueue(append([]string{"launch", "-d"}, docker...)...); r.code != 2 || !strings.Contains(r.errs, why) || r.out != "" {
		t.Errorf("launch: %+v", r)
	}
	// What comes another way, here past a list of offers that is gone, the worker judges by the same words.
	if err := f.admin.Del(t.Context(), "ol:{d}:offers").Err(); err != nil {
		t.Fatal(err)
	}
	r := f.enqueue(append([]string{"launch", "-d"}, docker...)...)
	if r.code != 0 {
		t.Fatalf("launch without a list of offers: %+v", r)
	}
	if a := f.await(strings.TrimSpace(r.out), "FAILED_PRECHECKS"); a.Tasks[0].Cause.Code != "no_offer" || a.Tasks[0].Cause.Text != why {
		t.Errorf("cause %+v", a.Tasks[0].Cause)
	}
	id := f.launch(`test "$SKYPILOT_NUM_GPUS_PER_NODE" = 2`, "--gpus", "a100:2")
	f.await(id, "SUCCEEDED")
}

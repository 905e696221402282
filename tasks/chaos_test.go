package tasks_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

var (
	chaosJobs = flag.Int("chaos.jobs", 200, "jobs of the chaos test")
	chaosSeed = flag.Uint64("chaos.seed", 0, "seed of the chaos test; 0 takes a new one")
)

// Ensure that two workers share many short jobs while machines are lost and workers are killed and frozen at random:
// every job has its right ending, no process is left, and no machine is an orphan (G1 to G7, G13).
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-chaos.seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	d := newDeployment(t)
	d.caps.Launches = 16

	// The jobs: most succeed, some fail, some are restarted, some are cancelled while they run.
	good := d.submitAll(store.Submission{Request: d.request(`
for i in 1 2 3 4 5; do echo "step $i"; sleep 0.2; done`), Count: *chaosJobs * 7 / 10})
	bad := d.submitAll(store.Submission{Request: d.request("sleep 0.3; exit 3"), Count: *chaosJobs / 10})
	again := d.submitAll(store.Submission{Request: d.request(`[ "$OUTLAST_ATTEMPT" -gt 1 ] || exit 42`, func(r *job.TaskRequest) {
		r.Recovery.RecoverOnExitCodes = []int{42}
	}), Count: *chaosJobs / 10})
	stuck := d.submitAll(store.Submission{Request: d.request("sleep 1000"), Count: *chaosJobs / 10})
	all := append(append(append(append([]job.ID{}, good...), bad...), again...), stuck...)

	workers := []*process{d.worker(), d.worker()}
	pending := map[job.ID]bool{}
	for _, id := range stuck {
		pending[id] = true
	}
	strikes := time.NewTicker(700 * time.Millisecond)
	defer strikes.Stop()
	d.within(6*patience, "all jobs to be done", func() bool {
		select {
		case <-strikes.C:
			d.strike(dice, workers)
		default:
		}
		open := 0
		for _, id := range all {
			rec, err := d.store.Load(context.Background(), id)
			if err != nil || rec.Step != job.StepDone {
				open++
			}
			if err == nil && pending[id] && rec.Status() == job.Running {
				delete(pending, id)
				d.cancel(id, time.Second)
			}
		}
		return open == 0
	})
	for _, w := range workers {
		w.thaw()
	}
	check := func(ids []job.ID, want job.Status) {
		for _, id := range ids {
			if rec := d.done(id); rec.Status() != want {
				t.Errorf("want %s:\n%s", want, d.describe(id))
			}
		}
	}
	check(good, job.Succeeded)
	check(bad, job.Failed)
	check(again, job.Succeeded)
	check(stuck, job.Cancelled)
	d.sound(all...)
	d.noOrphans()
}

// strike does one cruel thing: it takes a machine, or kills or freezes a worker.
func (d *deployment) strike(dice *rand.Rand, workers []*process) {
	i := dice.IntN(len(workers))
	switch dice.IntN(10) {
	case 0, 1:
		workers[i].thaw()
		workers[i].kill9()
		workers[i] = d.worker()
	case 2:
		workers[i].freeze()
	case 3:
		workers[i].thaw()
	default:
		if living := d.living(); len(living) > 0 {
			n := living[dice.IntN(len(living))]
			notice := time.Duration(dice.IntN(2)) * 2 * time.Second
			_ = d.cloud.Preempt(context.Background(), n.Region, n.ID, notice)
		}
		workers[i].thaw()
	}
}

// noOrphans checks what `enqueue machines` would say.
func (d *deployment) noOrphans() {
	d.t.Helper()
	for _, n := range d.machines() {
		rec, err := d.store.Load(context.Background(), n.Job)
		if err != nil {
			d.t.Fatal(err)
		}
		if v := cloud.Judge(n, &rec, time.Now(), 0); v.Kind == cloud.VerdictOrphan {
			d.t.Errorf("G4: machine %s of job %d is an orphan: %s", n.ID, n.Job, v.Why)
		}
	}
	d.eventually("the counts to be those of the jobs", func() bool {
		counts, err := d.store.Statuses(context.Background())
		return err == nil && counts[job.Running]+counts[job.Starting]+counts[job.Recovering]+counts[job.Pending]+counts[job.Cancelling] == 0
	}, func() string { c, _ := d.store.Statuses(context.Background()); return fmt.Sprint(c) })
}

package tasks_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a worker killed with kill -9 at any point of a job's life, before and after each commit and each
// call of a provider or an agent, changes nothing about the job's ending: another worker drives it on, no machine is
// left, and the user's code is never in two places at once (G1, G2, G3, G4).
//
// The life has everything in it: launch, run, a machine that is lost, recovery, success, clean-up.
//
// skypilot #10061: the death of a controller failed a healthy job. nomad-autoscaler #628, #911: a crash between drain and
// terminate was never taken up again.
func TestG1_WorkerKilledAtEveryPoint(t *testing.T) {
	points := tracePoints(t)
	t.Logf("%d points: %s", len(points), strings.Join(points, ", "))
	if len(points) < 30 {
		t.Fatalf("a life has passed only %d points", len(points))
	}
	for i, name := range points {
		t.Run(fmt.Sprintf("%02d %s", i+1, name), func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t)
			id := lifeWith(d, func(c *workerConfig) { c.Crash = i + 1 }, func(*process) { d.worker() })
			rec := d.done(id)
			if rec.Status() != job.Succeeded {
				t.Errorf("have %s:\n%s", rec.Status(), d.describe(id))
			}
			d.sound(id)
		})
	}
}

// life is a job that loses its first machine by itself: as soon as its code has run for a moment there, it is taken
// away, whatever the workers are doing at that time.
const life = `
if [ "$OUTLAST_ATTEMPT" = 1 ]; then touch "$SHARED/take.$OUTLAST_JOB_ID"; sleep 1000; fi
echo done`

// lifeWith runs one job with a first worker that may crash or stop. after is called if it does, to start another one.
func lifeWith(d *deployment, change func(*workerConfig), after func(*process)) job.ID {
	d.t.Helper()
	victim := d.worker(change)
	id := d.submit(d.request(life))
	taken, replaced := false, after == nil
	d.eventually("the job to be done", func() bool {
		if !replaced && victim.out() {
			replaced = true
			after(victim)
		}
		if _, err := os.Stat(filepath.Join(d.shared, fmt.Sprintf("take.%d", id))); err == nil && !taken {
			taken = true
			for _, n := range d.living() {
				if n.Job == id {
					_ = d.cloud.Preempt(context.Background(), n.Region, n.ID, 0)
				}
			}
		}
		rec, err := d.store.Load(context.Background(), id)
		return err == nil && rec.Step == job.StepDone
	}, func() string { return d.describe(id) })
	return id
}

// tracePoints are the points of a life without a crash.
func tracePoints(t *testing.T) []string {
	d := newDeployment(t)
	trace := filepath.Join(d.home, "trace")
	id := lifeWith(d, func(c *workerConfig) { c.Trace = trace }, nil)
	d.sound(id)
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// Ensure that a driver that was frozen past its lease and wakes up changes nothing: neither the record nor a machine (G2).
//
// skypilot #10114, #9731, #9954: a live controller was thought dead, and two drove one job.
func TestG2_FrozenDriverChangesNothing(t *testing.T) {
	for _, point := range []string{
		"before commit", "before hold", "before create", "after create", "before start", "before probe", "before terminate", "before save", "after survey",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t)
			var sleeper *process
			id := lifeWith(d, func(c *workerConfig) { c.Freeze = point }, func(p *process) { sleeper = p; d.worker() })
			rec := d.done(id)
			if rec.Status() != job.Succeeded { // with a recovery, unless the machine was lost before the start was committed
				t.Errorf("want SUCCEEDED:\n%s", d.describe(id))
			}
			if sleeper == nil {
				t.Fatalf("the life did not pass the point %q", point)
			}
			before := d.snapshot(id)
			sleeper.thaw()
			// It has woken up when it does again what every worker does: report itself.
			d.eventually("the frozen worker to be awake", func() bool { return d.reports("w1", rec) })
			if diff := cmp.Diff(before, d.snapshot(id)); diff != "" {
				t.Errorf("the record changed (-before +after):\n%s", diff)
			}
			d.sound(id)
		})
	}
}

// snapshot is all that the store keeps of a job but its journal: there, a driver may tell that it has lost its lease.
func (d *deployment) snapshot(id job.ID) map[string]string {
	all := d.keys(fmt.Sprintf("ol:*:%d", id))
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, ":jrn:") })
	return all
}

// snapshotAll is all that Redis holds, the queues included.
func (d *deployment) snapshotAll() map[string]string { return d.keys("*") }

func (d *deployment) keys(pattern string) map[string]string {
	ctx, rdb := context.Background(), d.store.Redis()
	all := map[string]string{}
	keys, err := rdb.Keys(ctx, pattern).Result()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, key := range keys {
		kind, _ := rdb.Type(ctx, key).Result()
		switch kind {
		case "hash":
			m, _ := rdb.HGetAll(ctx, key).Result()
			all[key] = fmt.Sprint(m)
		case "list":
			l, _ := rdb.LRange(ctx, key, 0, -1).Result()
			all[key] = strings.Join(l, "\n")
		case "string":
			all[key], _ = rdb.Get(ctx, key).Result()
		}
	}
	return all
}

// reports tells whether a worker has reported itself since the job ended.
func (d *deployment) reports(name string, rec job.Record) bool {
	workers, err := d.store.Workers(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, w := range workers {
		if w.Name == name && w.SeenAt > rec.Tasks[0].EndedAt.Add(time.Second) {
			return true
		}
	}
	return false
}

package tasks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a cancel of everything reaches all that was submitted before, also what no worker has seen yet: none of it is
// ever launched (G7).
//
// skypilot #5051, #7511: what was still queued was missed by cancel --all, and ran later.
func TestG7_CancelBeforeAnythingIsLaunched(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	ids := d.submitAll(store.Submission{Request: d.request("true"), Count: 50})
	got, _, err := d.store.CancelWhere(context.Background(), nil, "test", -1)
	if err != nil || len(got) != len(ids) {
		t.Fatalf("%d jobs of %d are cancelled: %v", len(got), len(ids), err)
	}
	d.worker()
	for _, id := range ids {
		if rec := d.done(id); rec.Status() != job.Cancelled || rec.Tasks[0].Attempts != 0 {
			t.Errorf("want CANCELLED without an attempt:\n%s", d.describe(id))
		}
	}
	d.sound(ids...)
	if all := d.machines(); len(all) > 0 {
		t.Errorf("machines were made: %v", all)
	}
}

// Ensure that workers which are replaced one after the other while jobs pour in lose none of them, fail none, and make no
// machine twice (G1, G2). Most have nothing to run, so that there can be many.
//
// skypilot #7707: after a restart during 1,000 submissions many jobs had failed.
func TestG1_WorkersAreReplacedWhileJobsPourIn(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	worker := d.worker()
	idle := job.Request{Name: "idle", Tasks: []job.TaskRequest{{Resources: job.Resources{Any: []job.Want{{}}}}}}
	var ids []job.ID
	for i := range 4 {
		ids = append(ids, d.submitAll(store.Submission{Request: idle, Count: 100})...)
		ids = append(ids, d.submitAll(store.Submission{Request: d.request("true"), Count: 3})...)
		next := d.worker()
		if i%2 == 0 {
			worker.term()
		} else {
			worker.kill9()
		}
		worker = next
	}
	for _, id := range ids {
		if rec := d.done(id); rec.Status() != job.Succeeded || rec.Fault.N > 0 || rec.Tasks[0].Recoveries > 0 {
			t.Errorf("want SUCCEEDED at once:\n%s", d.describe(id))
		}
	}
	d.sound(ids...)
}

// Ensure that a job which is done stays so, whatever comes late: its acts again, a preemption, a doubt about its machine, a
// cancel, and a restart of everything (G5).
//
// nomad #19564, #20245, #4299: batch jobs that had completed ran again after an event of a node. skypilot #10061: the sweep of a
// dead controller wrote over SUCCEEDED.
func TestG5_LateEventsAfterTheEnd(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	first := d.worker()
	id := d.submit(d.request("true"))
	end := d.done(id)
	d.sound(id)
	ctx := context.Background()
	before := d.snapshot(id)
	wake := func(woken store.Woken, err error) {
		if err != nil || woken.Live {
			t.Errorf("%+v, %v: a job that is done is awake", woken, err)
		}
	}
	for n := int64(1); n <= end.Dispatch+1; n++ {
		for _, step := range []job.Step{job.StepLaunch, job.StepRecover, job.StepCleanup} {
			if err := d.queue.Dispatch(ctx, store.Act{ID: id, Step: step, N: n}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wake(d.store.Preempt(ctx, id, 0))
	wake(d.store.Doubt(ctx, id))
	wake(d.store.Cancel(ctx, id, "test", 0))
	first.kill9()
	d.worker()
	d.eventually("the late acts to be over", func() bool {
		for n := int64(1); n <= end.Dispatch+1; n++ {
			for _, step := range []job.Step{job.StepLaunch, job.StepRecover, job.StepCleanup} {
				if d.has(fmt.Sprintf("asynq:*:t:%s:%d:%d", step, id, n)) {
					return false
				}
			}
		}
		return true
	})
	after := d.submit(d.request("true")) // all of the new worker's chains have ticked when this one is done
	d.done(after)
	if diff := cmp.Diff(before, d.snapshot(id)); diff != "" {
		t.Errorf("the record changed (-before +after):\n%s", diff)
	}
	if starts := d.starts(id); len(starts) != 1 {
		t.Errorf("the code was started as %v", starts)
	}
	d.sound(id, after)
}

// has reports whether the queue has a key like that.
func (d *deployment) has(pattern string) bool {
	keys, err := d.client.Keys(context.Background(), pattern).Result()
	if err != nil {
		d.t.Fatal(err)
	}
	return len(keys) > 0
}

package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestCall ensures that a job whose turn has come is told which act it needs: the first one, the next one, or the one that exists
// already; and that one that somebody drives, that runs, that has ended, or whose record is damaged, gets none.
func TestCall(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		call := func(id job.ID) ([]Act, []Woken) {
			t.Helper()
			acts, woken, err := b.Call(b.ctx, []job.ID{id}, grace)
			b.must(t, err)
			return acts, woken
		}
		wants := func(id job.ID, n int64) {
			t.Helper()
			acts, woken := call(id)
			if diff := cmp.Diff([]Act{{ID: id, Step: job.StepLaunch, N: n, Priority: 7}}, acts); diff != "" || len(woken) > 0 {
				t.Errorf("act %d: woken %v, acts\n%s", n, woken, diff)
			}
			if b.isDue(t, id) {
				t.Errorf("job %d is due although its act was just made", id)
			}
		}
		ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: job.Request{
			Name: `a trap: "priority":3, {"priority":4}`, User: `"priority":5`, Priority: 7, Tasks: []job.TaskRequest{{Name: "t", Run: "true"}},
		}}))
		id := ids[0]
		wants(id, 1)
		wants(id, 1)
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "mine", lease))
		if acts, woken := call(id); len(acts) > 0 || len(woken) != 1 {
			t.Errorf("a job that is driven: acts %v, woken %v", acts, woken)
		}
		next := c.Clone()
		next.Due = c.Now.Add(lease)
		b.commit(t, &c, next, false)
		if !b.isDue(t, id) {
			t.Error("a job that was called while it was driven is not looked at when its driver is done")
		}
		wants(id, 2)
		wants(id, 2)
		if err := b.tryCommit(t, &c, next, false); err == nil {
			t.Error("a driver commits after the next act was made")
		}

		runs := b.watched(t)
		if acts, woken := call(runs); len(acts) > 0 || len(woken) != 1 || !b.isDue(t, runs) {
			t.Errorf("a job that runs: acts %v, woken %v", acts, woken)
		}
		b.must(t, b.rdb.Set(b.ctx, b.keys.of(1<<30, "job"), "x", 0).Err())
		for what, id := range map[string]job.ID{"has ended": b.done(t, job.Request{Tasks: []job.TaskRequest{{Run: "true"}}}, job.Failed), "is unknown": 1 << 20, "is damaged": 1 << 30} {
			if acts, woken := call(id); len(acts) > 0 || len(woken) > 0 {
				t.Errorf("a job that %s: acts %v, woken %v", what, acts, woken)
			}
		}
	})
}

package store

import (
	"slices"
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestLoadMany ensures that a damaged record is told from an unknown one.
func TestLoadMany(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		ids := b.submit(t, 3)
		b.Redis().HSet(b.ctx, b.keys.of(ids[2], "job"), "head", "{")
		many, damaged, err := b.LoadMany(b.ctx, append([]job.ID{9999}, ids...))
		if err != nil || len(many) != 2 || many[ids[1]].ID != ids[1] {
			t.Errorf("loaded %d, %v", len(many), err)
		}
		if len(damaged) != 1 || damaged[ids[2]] == nil {
			t.Errorf("a damaged record must be told from an unknown one: %v", damaged)
		}
		if none, _, err := b.LoadMany(b.ctx, nil); err != nil || len(none) != 0 {
			t.Errorf("loaded %v, %v", none, err)
		}
	})
}

// TestCancelWhere ensures that a cancel by name reaches all jobs of that name and no other.
func TestCancelWhere(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		name := `we"ird ü`
		req := typical(1)
		req.Name = name
		want := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: req, Count: 6}))
		others := b.submit(t, 6)
		got, woken, err := b.CancelWhere(b.ctx, &name, "ada", -1)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) || len(woken) != 4 {
			t.Errorf("cancelled %v in %d shards: %v", got, len(woken), err)
		}
		for _, id := range slices.Concat(want, others) {
			if c := b.load(t, id).Cancel; (c != nil) != slices.Contains(want, id) {
				t.Errorf("job %d: cancel is %+v", id, c)
			}
		}
	})
}

// TestSecretsEndWithTheJob ensures that sealed secrets are kept for as long as a job may need them, and no longer: one that
// did not succeed may be resumed.
func TestSecretsEndWithTheJob(t *testing.T) {
	b := newBench(t, 2)
	for status, want := range map[job.Status]string{job.Succeeded: "", job.Failed: "sealed", job.Cancelled: "sealed"} {
		id := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1), Sealed: []byte("sealed")}))[0]
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
		for _, step := range []job.Step{job.StepCleanup, job.StepDone} {
			if got := must[[]byte](t)(b.Secrets(b.ctx, id)); string(got) != "sealed" {
				t.Errorf("before %s: %q", step, got)
			}
			next := c.Clone()
			next.Step, next.Tasks[0].Status = step, status
			b.commit(t, &c, next, true)
		}
		if got := must[[]byte](t)(b.Secrets(b.ctx, id)); string(got) != want {
			t.Errorf("after %s: %q", status, got)
		}
	}
}

package tasks_test

import (
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a job which gets the id of one that a Redis has lost is another job: it has a machine of its own, its code runs
// there, its log has nothing of the other, and the machine of the lost one is ended, though both are attempt 1 of the same id
// (G3, G4, G11).
func TestG3_AnIDThatIsGivenAgainIsAnotherJob(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	d.done(d.submit(d.request("true"))) // chains, views and all else are there
	mark := d.redis.Mark()
	lost := d.submit(d.request(`echo lost >> "$SHARED/ran"; yes of the lost one | head -c 1000000; sleep 1000`))
	theirs := d.logOf(d.await(lost, "running", func(r job.Record) bool { return r.Look.Kept > 0 }).ID, 0, 1) // also in the archive
	d.redis.LoseSince(mark)
	var id job.ID
	d.eventually("Redis to take jobs again", func() bool {
		ids, err := d.store.Submit(t.Context(), store.Submission{Request: d.request(`echo new >> "$SHARED/ran"; echo of the new one`)})
		if err == nil {
			id = ids[0]
		}
		return err == nil
	})
	if id != lost {
		t.Fatalf("the job got the id %d, not that of the lost one, %d", id, lost)
	}
	rec := d.done(id)
	if rec.Status() != job.Succeeded {
		t.Errorf("want SUCCEEDED:\n%s", d.describe(id))
	}
	if ran := d.read("ran"); ran != "lost\nnew\n" {
		t.Errorf("what has run: %q", ran)
	}
	if got := d.archived(id, 0, 1); got != "of the new one\n" {
		t.Errorf("its log begins %.80q", got)
	}
	if ours := d.logOf(id, 0, 1); ours == theirs {
		t.Errorf("both logs have the name %s", ours)
	}
	d.eventually("the machine of the lost job to be ended", func() bool { return len(d.living()) == 0 })
	d.noProcesses()
}

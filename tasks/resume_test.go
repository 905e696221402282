package tasks_test

import (
	"context"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// resume lets a job go again as the CLI does.
func (d *deployment) resume(id job.ID) {
	d.t.Helper()
	woken, err := d.store.Resume(context.Background(), id, "ann")
	if err != nil || !woken.Live {
		d.t.Fatalf("resume: %+v, %v", woken, err)
	}
	_ = d.queue.RunWatch(context.Background(), woken.Shard, woken.Epoch)
}

// TestG5_ResumedJobGoesAgain ensures that a chain whose second task failed goes again from there on a machine of its own,
// with its secrets, and that the logs of both lives are kept (G11). Twice over: the second life is cancelled.
func TestG5_ResumedJobGoesAgain(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	req := d.request(`echo "once"`)
	second := d.request(`
echo "life in attempt $OUTLAST_ATTEMPT with ${#TOKEN} characters"
case "$OUTLAST_ATTEMPT" in
1) exit 3 ;;
2) echo there > "$SHARED/second"; while :; do sleep 0.1; done ;;
esac`, func(t *job.TaskRequest) { t.Secrets = []string{"TOKEN"} }).Tasks[0]
	req.Tasks = append(req.Tasks, second, d.request(`echo "last"`).Tasks[0])
	sealed, err := seal.Seal(d.store.Deployment().Recipient, map[string]string{tasks.SecretKey(1, "TOKEN"): "s3cr3t"})
	if err != nil {
		t.Fatal(err)
	}
	id := d.submitAll(store.Submission{Request: req, Sealed: sealed})[0]
	if rec := d.done(id); rec.Status() != job.Failed || rec.Tasks[2].Status != job.Cancelled {
		t.Fatalf("the first life must fail:\n%s", d.describe(id))
	}
	d.sound(id)

	d.resume(id)
	d.await(id, "running again", func(r job.Record) bool { return r.Tasks[1].Status == job.Running && r.Tasks[1].Attempts == 2 })
	d.eventually("its code to run", func() bool { return d.read("second") != "" })
	if _, err := d.store.Resume(context.Background(), id, "eve"); err == nil {
		t.Error("a job that runs was resumed")
	}
	d.cancel(id, 0)
	if rec := d.done(id); rec.Status() != job.Cancelled {
		t.Fatalf("the second life must be cancelled:\n%s", d.describe(id))
	}

	d.resume(id)
	if rec := d.done(id); rec.Status() != job.Succeeded || rec.Tasks[1].Attempts != 3 || rec.Cancel != nil {
		t.Fatalf("the third life must succeed in the third attempt:\n%s", d.describe(id))
	}
	for n, want := range map[int]string{1: "life in attempt 1 with 6", 2: "life in attempt 2 with 6", 3: "life in attempt 3 with 6"} {
		if log := d.archived(id, 1, n); !strings.Contains(log, want) {
			t.Errorf("the log of attempt %d is %q", n, log)
		}
	}
	if left, err := d.store.Secrets(context.Background(), id); err != nil || left != nil {
		t.Errorf("a job that succeeded still has secrets: %q, %v", left, err)
	}
	d.sound(id)
}

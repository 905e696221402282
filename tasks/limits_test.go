package tasks_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// TestMaxDurationStopsTheCode ensures that code which runs for too long, and ignores TERM, is ended with its machine, and that
// its log is kept (G11).
func TestMaxDurationStopsTheCode(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(`trap 'echo told >> "$SHARED/told"' TERM; echo yes > "$SHARED/deaf"; while :; do sleep 0.1; done`, func(t *job.TaskRequest) {
		t.MaxDuration, t.Grace = 3*time.Second, 2*time.Second
	}))
	rec := d.done(id)
	if got := rec.Tasks[0]; got.Status != job.Failed || got.Cause.Code != job.CodeMaxDuration || got.RunMS < 3000 {
		t.Fatalf("want FAILED for max_duration:\n%s", d.describe(id))
	}
	if d.read("deaf") != "" && d.read("told") == "" {
		t.Error("the code was not told to end")
	}
	d.sound(id)
}

// TestMaxWaitInTheLine ensures that a job which stands in the line for a launch slot, and so is driven by nobody, ends when its
// max_wait is over, and leaves the line.
func TestMaxWaitInTheLine(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.caps = store.Caps{Launches: 8, Live: 1}
	d.worker()
	first := d.submit(d.request(`while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`))
	d.running(first)
	id := d.submit(d.request(`true`, func(t *job.TaskRequest) { t.MaxWait = 4 * time.Second }))
	rec := d.done(id)
	if got := rec.Tasks[0]; got.Status != job.FailedNoResource || got.Cause.Code != job.CodeMaxWait || got.Attempts != 0 {
		t.Fatalf("want FAILED_NO_RESOURCE for max_wait:\n%s", d.describe(id))
	}
	if waited := rec.Tasks[0].EndedAt.Sub(rec.SubmittedAt); waited < 4*time.Second {
		t.Errorf("it ended after %s", waited)
	}
	d.write("go")
	if rec := d.done(first); rec.Status() != job.Succeeded {
		t.Fatalf("the other job is harmed:\n%s", d.describe(first))
	}
	if next := d.done(d.submit(d.request(`true`))); next.Status() != job.Succeeded {
		t.Error("the line is blocked")
	}
	d.sound(first, id)
}

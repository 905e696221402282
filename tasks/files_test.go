package tasks_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
)

// bundle uploads a folder with the given files, and returns its key.
func (d *deployment) bundle(files map[string]string) string {
	d.t.Helper()
	folder := d.t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	b, err := archive.Pack(folder, archive.Limits{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer b.Remove()
	a, err := archive.Open(context.Background(), d.store.Deployment().Archive)
	if err != nil {
		d.t.Fatal(err)
	}
	defer a.Close()
	if err := a.PutBundle(context.Background(), b); err != nil {
		d.t.Fatal(err)
	}
	return b.Key
}

// Ensure that file mounts are at their places on the machine, also on the next one after the first was taken, and that
// nothing of them is left outside of the machines when the job has ended.
func TestFileMounts(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	key, out := d.bundle(map[string]string{"a.txt": "alpha", "b.txt": "beta"}), t.TempDir()
	id := d.submit(d.request(`echo "$OUTLAST_ATTEMPT: $(cat data/a.txt) $(cat "`+out+`/b")"
[ "$OUTLAST_ATTEMPT" = 1 ] && sleep 1000; true`, func(t *job.TaskRequest) {
		t.Files = []job.FileMount{{Path: "data", Bundle: key}, {Path: filepath.Join(out, "b"), Bundle: key, File: "b.txt"}}
	}))
	d.checkpoint(id)
	d.takeMachine(id, 0)
	if rec := d.done(id); rec.Status() != job.Succeeded {
		t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
	}
	if one, two := d.archived(id, 0, 1), d.archived(id, 0, 2); one != "1: alpha beta\n" || two != "2: alpha beta\n" {
		t.Errorf("read %q and %q", one, two)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	d.sound(id)
}

// Ensure that a mount where something is already ends the task at once, says which and why, and touches nothing.
func TestFileMountIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	there := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := d.submit(d.request("true", func(t *job.TaskRequest) {
		t.Files = []job.FileMount{{Path: there, Bundle: d.bundle(map[string]string{"a.txt": "alpha"}), File: "a.txt"}}
	}))
	rec := d.done(id)
	cause := rec.Tasks[0].Cause
	if rec.Status() != job.FailedSetup || !strings.Contains(cause.Evidence, "file_mounts") {
		t.Errorf("want FAILED_SETUP for the mount:\n%s", d.describe(id))
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	d.sound(id)
}

// Ensure that what a job file asks for when a machine is announced to be taken happens on the machine.
func TestOnNotice(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(`trap 'echo usr1 >> "$SHARED/told"' USR1; echo up
[ "$OUTLAST_ATTEMPT" = 1 ] || exit 0
while :; do sleep 0.05; done`, func(t *job.TaskRequest) {
		t.OnNotice = job.OnNotice{Signal: "USR1", Run: `echo "hook of attempt $OUTLAST_ATTEMPT" >> "$SHARED/hook"`}
	}))
	d.checkpoint(id)
	d.takeMachine(id, 15*time.Second)
	d.eventually("the code to be told", func() bool { return d.read("told") != "" && d.read("hook") != "" })
	if rec := d.done(id); rec.Status() != job.Succeeded || d.read("hook") != "hook of attempt 1\n" {
		t.Errorf("hook %q:\n%s", d.read("hook"), d.describe(id))
	}
	d.sound(id)
}

package tasks_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// chunks reads the log of an attempt from the archive, part by part.
func (d *deployment) chunks(id job.ID, task, attempt int) []archive.Chunk {
	d.t.Helper()
	a, err := archive.Open(context.Background(), d.store.Deployment().Archive)
	if err != nil {
		d.t.Fatal(err)
	}
	defer a.Close()
	var all []archive.Chunk
	for c, err := range a.Chunks(context.Background(), d.logOf(id, task, attempt), 0) {
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Ensure that a run which prints far more than its log may take has its head and its tail in the archive, every byte at its
// place, with the count of what was dropped between them; and that neither the node, nor Redis, nor the archive takes more
// than the limit. A secret that may have begun where the head ends holds up nothing.
//
// skypilot #7038, #7716, #10023: logs filled the disk of the controller.
func TestLogIsCappedOnItsWholeWay(t *testing.T) {
	t.Parallel()
	t.Run("without secrets", func(t *testing.T) { t.Parallel(); cappedOnItsWholeWay(t, nil) })
	t.Run("with a secret", func(t *testing.T) {
		t.Parallel()
		cappedOnItsWholeWay(t, map[string]string{"KEY": "\nhunter2-and-then-some"})
	})
}

func cappedOnItsWholeWay(t *testing.T, secrets map[string]string) {
	const limit, printed = 1 << 20, 32 << 20
	d := newDeployment(t)
	d.worker(func(c *workerConfig) { c.LogLimit = limit })
	values, names := map[string]string{}, []string(nil)
	for name, value := range secrets {
		values[tasks.SecretKey(0, name)], names = value, append(names, name)
	}
	sealed, err := seal.Seal(d.store.Deployment().Recipient, values)
	if err != nil {
		t.Fatal(err)
	}
	r := d.request(fmt.Sprintf(`seq -f %%015.0f 0 16 %d; touch "$SHARED/printed"; until [ -e "$SHARED/go" ]; do sleep 0.05; done`, printed-16),
		func(t *job.TaskRequest) { t.Secrets = names })
	id := d.submitAll(store.Submission{Request: r, Sealed: sealed})[0]
	d.eventually("all to be printed", func() bool { _, err := os.Stat(filepath.Join(d.shared, "printed")); return err == nil })
	d.await(id, "the end of the log to be in the tail", func(r job.Record) bool { return r.Look.Tail >= printed-1 }) // an end of line may begin the secret
	logs, err := filepath.Glob(filepath.Join(d.home, "local/*/*/*/out.log"))
	if err != nil || len(logs) != 1 {
		logs, _ = filepath.Glob(filepath.Join(d.home, "local/*/*/agent/out.log"))
	}
	if len(logs) != 1 {
		t.Fatalf("found the logs %v", logs)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(logs[0], &st); err != nil || st.Blocks*512 > limit+8192 {
		t.Errorf("the node's log takes %d bytes with a limit of %d, %v", st.Blocks*512, limit, err)
	}
	d.write("go")
	if rec := d.done(id); rec.Status() != job.Succeeded {
		t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
	}
	var kept, dropped, at int64
	for _, c := range d.chunks(id, 0, 1) {
		if c.From != at {
			t.Fatalf("a chunk from %d after %d", c.From, at)
		}
		if at = c.To; c.Data == nil {
			if !c.Dropped {
				t.Errorf("%d bytes are missing from %d on", c.To-c.From, c.From)
			}
			dropped += c.To - c.From
			continue
		}
		kept += int64(len(c.Data))
		var want bytes.Buffer
		for n := c.From / 16; n <= c.To/16; n++ {
			fmt.Fprintf(&want, "%015d\n", n*16)
		}
		if !bytes.Equal(c.Data, want.Bytes()[c.From%16:c.From%16+c.To-c.From]) {
			t.Fatalf("the bytes %d to %d are not what was printed there", c.From, c.To)
		}
	}
	if at != printed || dropped == 0 || kept > limit+limit/4 || kept < limit/2 {
		t.Errorf("the archive ends at %d and has %d bytes, %d were dropped, limit %d", at, kept, dropped, limit)
	}
}

// Ensure that a secret which the user's code prints does not leave its machine with the log: whole, in two halves with a
// pause between them, as the lines of a key, at the very end; and that its user can have it otherwise (G12).
func TestG12_OutputHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret, pem = "hunter2-and-then-some", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\n-----END KEY-----\n"
	d := newDeployment(t)
	d.worker()
	sealed, err := seal.Seal(d.store.Deployment().Recipient, map[string]string{tasks.SecretKey(0, "TOKEN"): secret, tasks.SecretKey(0, "PEM"): pem})
	if err != nil {
		t.Fatal(err)
	}
	r := d.request(`
echo "whole: $TOKEN."
printf 'halves: %s' "${TOKEN:0:9}"
touch "$SHARED/half.$OUTLAST_JOB_ID"; until [ -e "$SHARED/go" ]; do sleep 0.05; done
printf '%s.\n' "${TOKEN:9}"
printf '%s' "$PEM" | sed 's/^/key: /'
printf 'at the end: %s' "$TOKEN"`, func(t *job.TaskRequest) { t.Secrets = []string{"TOKEN", "PEM"} })
	hidden := d.submitAll(store.Submission{Request: r, Sealed: sealed})[0]
	r.ShowSecrets = true
	shown := d.submitAll(store.Submission{Request: r, Sealed: sealed})[0]
	for _, id := range []job.ID{hidden, shown} {
		d.eventually("half of it to be printed", func() bool {
			_, err := os.Stat(filepath.Join(d.shared, fmt.Sprintf("half.%d", id)))
			return err == nil
		})
		// What was held back is not yet in the tail, the rest is.
		d.await(id, "the first lines in the tail", func(r job.Record) bool { return r.Look.Tail >= int64(len("whole: hunter2-and-then-some.\nhalves: ")) })
	}
	d.write("go")
	stars := func(s string) string { return strings.Repeat("*", len(s)) }
	want := "whole: " + stars(secret) + ".\nhalves: " + stars(secret) + ".\nkey: " + stars("-----BEGIN KEY-----") + "\nkey: " +
		stars("MIIEpAIBAAKCAQEA7") + "\nkey: " + stars("-----END KEY-----") + "\nat the end: " + stars(secret)
	plain := "whole: " + secret + ".\nhalves: " + secret + ".\nkey: " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\nkey: ") + "\nat the end: " + secret
	for id, want := range map[job.ID]string{hidden: want, shown: plain} {
		if rec := d.done(id); rec.Status() != job.Succeeded {
			t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
		}
		if got := d.archived(id, 0, 1); got != want {
			t.Errorf("the archive has\n%s\nwant\n%s", got, want)
		}
	}
	for key, value := range d.keys(fmt.Sprintf("ol:*:%d:*", hidden)) {
		for _, line := range []string{secret, "MIIEpAIBAAKCAQEA7"} {
			if strings.Contains(value, line) {
				t.Errorf("a secret is in Redis under %s", key)
			}
		}
	}
}

// Ensure that the archive knows where setup ended and run began, and the time of what was printed.
func TestLogHasMarks(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request("echo two", func(t *job.TaskRequest) { t.Setup = "echo one" }))
	rec := d.done(id)
	if rec.Status() != job.Succeeded {
		t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
	}
	var marks []job.Mark
	for _, c := range d.chunks(id, 0, 1) {
		marks = append(marks, c.Marks...)
	}
	seen := map[job.MarkKind]int64{}
	for _, m := range marks {
		seen[m.Kind] = m.Offset
		if m.Kind == job.MarkTime && (m.Value < int64(rec.SubmittedAt)-1000 || m.Value > int64(rec.SubmittedAt)+patience.Milliseconds()) {
			t.Errorf("a line was printed at %v, the job was submitted at %v", m.Time(), rec.SubmittedAt)
		}
	}
	if seen[job.MarkSetup] != 0 || seen[job.MarkRun] != 4 || seen[job.MarkTime] != 8 {
		t.Errorf("marks %+v", marks)
	}
}

// Ensure that what the drivers of a job did can be read with the job, also when the workers are gone.
func TestJournalOutlivesWorkers(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request("true"))
	if rec := d.done(id); rec.Status() != job.Succeeded {
		t.Fatalf("want SUCCEEDED:\n%s", d.describe(id))
	}
	a, err := archive.Open(context.Background(), d.store.Deployment().Archive)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d.eventually("the journal to be in the archive", func() bool {
		text, err := a.Journal(context.Background(), id)
		return err == nil && strings.Contains(string(text), "the job is RUNNING") && strings.Contains(string(text), "the job is SUCCEEDED")
	})
}

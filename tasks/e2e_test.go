package tasks_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
)

// training counts to 40 in small steps, keeps its place in a file, and goes on from there in the next attempt.
const training = `
ckpt="$SHARED/ckpt.$OUTLAST_JOB_ID"; i=$(cat "$ckpt" 2>/dev/null || echo 0)
[ "$i" -gt 0 ] && echo "resumed from $i"
while [ "$i" -lt 40 ]; do
  i=$((i+1)); echo "$i" > "$ckpt.new"; mv "$ckpt.new" "$ckpt"
  echo "step $i of 40"; sleep 0.05
done
echo trained
`

// Ensure a job runs to its end and everything about it is in its place: status, times, logs, no machine.
func TestJobSucceeds(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(`echo "hello from $SKYPILOT_TASK_ID"; echo oops >&2`))
	rec := d.done(id)
	if rec.Status() != job.Succeeded || rec.Recoveries() != 0 {
		t.Fatalf("want SUCCEEDED without a recovery:\n%s", d.describe(id))
	}
	if task := rec.Tasks[0]; task.StartedAt == 0 || task.EndedAt < task.StartedAt {
		t.Errorf("times are wrong: %+v", task)
	}
	log := d.archived(id, 0, 1)
	if want := fmt.Sprintf("_test_%d-0\noops\n", id); !strings.HasSuffix(log, want) || !strings.HasPrefix(log, "hello from sky-managed-") {
		t.Errorf("archived log is %q", log)
	}
	d.sound(id)
}

// Ensure a job whose machine is taken without a word goes on from its checkpoint on another one (G3, G6, G11).
func TestJobOutlastsItsMachine(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(training))
	first := d.running(id)
	d.checkpoint(id)
	d.takeMachine(id, 0)
	rec := d.done(id)
	if rec.Status() != job.Succeeded || rec.Recoveries() != 1 || len(d.starts(id)) != 2 {
		t.Fatalf("want SUCCEEDED after one recovery and two starts, have starts %v:\n%s", d.starts(id), d.describe(id))
	}
	past, err := d.store.Past(context.Background(), id)
	if err != nil || len(past) != 2 {
		t.Fatalf("want two attempts in the history, have %+v, %v", past, err)
	}
	if past[0].Why.Code != job.CodePreempted || past[0].Offer.Region == past[1].Offer.Region {
		t.Errorf("the second attempt must be elsewhere, after a preemption: %+v", past)
	}
	if log := d.archived(id, 0, 1); !strings.Contains(log, "step 1 of 40") {
		t.Errorf("G11: the log of the lost machine is %q", log)
	}
	if log := d.archived(id, 0, 2); !strings.Contains(log, "resumed from ") || !strings.Contains(log, "trained") {
		t.Errorf("the log of the second attempt is %q", log)
	}
	if first.Tasks[0].StartedAt != rec.Tasks[0].StartedAt {
		t.Errorf("started_at moved from %d to %d", first.Tasks[0].StartedAt, rec.Tasks[0].StartedAt)
	}
	d.sound(id)
}

// Ensure that with a notice the next machine is made ready while the old code still runs, and starts only after it (G3).
//
// skypilot #1998: processes of the old run disturbed the new one.
func TestG3_NoticeMakesTheNextMachineReadyFirst(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	// The code takes its time to save itself.
	id := d.submit(d.request(`
if [ "$OUTLAST_ATTEMPT" = 1 ]; then
  trap 'while [ ! -e "$SHARED/ready" ]; do sleep 0.05; done; date +%s%N > "$SHARED/saved"; exit 143' TERM
  while :; do sleep 0.1; done
fi
date +%s%N > "$SHARED/second"`))
	d.running(id)
	d.takeMachine(id, 60*time.Second)
	d.await(id, "a second machine that is ready while the first still runs", func(r job.Record) bool {
		return len(r.Live) == 2 && r.Live[0].Phase == job.PhaseStarted && r.Live[1].Phase == job.PhaseReady
	})
	d.write("ready")
	rec := d.done(id)
	if rec.Status() != job.Succeeded || rec.Recoveries() != 1 {
		t.Fatalf("want SUCCEEDED after one recovery:\n%s", d.describe(id))
	}
	if saved, second := d.read("saved"), d.read("second"); saved == "" || second == "" || second <= saved {
		t.Errorf("the second start at %q came before the first had saved itself at %q", second, saved)
	}
	d.sound(id)
}

// Ensure every way in which a user's code can end gives its own ending, and each explains itself (G13).
func TestG13_UserFailures(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	cases := []struct {
		name       string
		run, setup string
		recovery   job.Recovery
		want       job.Status
		code       job.Code
		starts     int
	}{
		{name: "exit 0", run: "exit 0", want: job.Succeeded, starts: 1},
		{name: "exit 1", run: "exit 1", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "exit 2", run: "exit 2", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "not executable", run: "/etc/passwd", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "not found", run: "no-such-command-here", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "exit 137", run: "exit 137", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "exit 143", run: "exit 143", want: job.Failed, code: job.CodeUserExit, starts: 1},
		{name: "killed", run: "kill -9 $$", want: job.Failed, code: job.CodeUserSignal, starts: 1},
		{name: "setup", setup: "exit 3", run: "exit 0", want: job.FailedSetup, code: job.CodeSetupExit},
		{name: "restarts", run: "exit 1", recovery: job.Recovery{MaxRestartsOnErrors: 1}, want: job.Failed, code: job.CodeUserExit, starts: 2},
		{name: "recover on 42, not counted", run: `[ "$OUTLAST_ATTEMPT" = 3 ] || exit 42`, recovery: job.Recovery{RecoverOnExitCodes: []int{42}}, want: job.Succeeded, starts: 3},
	}
	ids := make([]job.ID, len(cases))
	for i, c := range cases {
		ids[i] = d.submit(d.request(c.run, func(r *job.TaskRequest) { r.Setup, r.Recovery = c.setup, c.recovery }))
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := d.done(ids[i])
			if task := rec.Tasks[0]; task.Status != c.want || c.want.Failure() && task.Cause.Code != c.code || len(d.starts(ids[i])) != c.starts {
				t.Errorf("have %s, %+v, %d starts", task.Status, task.Cause, len(d.starts(ids[i])))
			}
		})
	}
	d.sound(ids...)
}

// Ensure a chain runs one task after the other, each on a machine of its own, and stops at the first that fails.
func TestChain(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	chain := func(runs ...string) job.Request {
		r := job.Request{Name: "chain"}
		for _, run := range runs {
			r.Tasks = append(r.Tasks, d.request(run).Tasks[0])
		}
		return r
	}
	good := d.submit(chain(`echo a >> "$SHARED/order"`, `echo b >> "$SHARED/order"`, "", `echo c >> "$SHARED/order"`))
	bad := d.submit(chain("exit 0", "exit 7", "exit 0"))
	if rec := d.done(good); rec.Status() != job.Succeeded || d.read("order") != "a\nb\nc\n" {
		t.Errorf("order %q:\n%s", d.read("order"), d.describe(good))
	}
	rec := d.done(bad)
	if rec.Status() != job.Failed || rec.Tasks[0].Status != job.Succeeded || rec.Tasks[2].Status != job.Cancelled || rec.Tasks[2].Cause.Code != job.CodeChainStopped {
		t.Errorf("the third task must be cancelled:\n%s", d.describe(bad))
	}
	d.sound(good, bad)
}

// Ensure a cancel ends the code with its grace, and nothing of it is left, also of what left its session.
func TestG7_CancelWhileRunning(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(`
setsid bash -c 'setsid sleep 1000 & sleep 1000' &
trap 'echo saved > "$SHARED/saved"; exit 143' TERM
while :; do sleep 0.05; done`))
	d.running(id)
	d.cancel(id, 10*time.Second)
	rec := d.done(id)
	if rec.Status() != job.Cancelled || rec.Tasks[0].Cause.Code != job.CodeCancelled || d.read("saved") != "saved\n" {
		t.Errorf("saved %q:\n%s", d.read("saved"), d.describe(id))
	}
	d.sound(id)
}

// logOf names the log of an attempt.
func (d *deployment) logOf(id job.ID, task, attempt int) archive.LogKey {
	d.t.Helper()
	rec, err := d.store.Load(context.Background(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return archive.LogOf(&rec.Head, task, attempt)
}

// archived reads the log of an attempt from the archive, as it is after machine and workers are gone.
func (d *deployment) archived(id job.ID, task, attempt int) string {
	d.t.Helper()
	a, err := archive.Open(context.Background(), d.store.Deployment().Archive)
	if err != nil {
		d.t.Fatal(err)
	}
	defer a.Close()
	r, err := a.ReadLog(context.Background(), d.logOf(id, task, attempt), 0)
	if err != nil {
		d.t.Fatalf("read the log: %v", err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		d.t.Fatalf("read the log: %v", err)
	}
	return string(b)
}

// checkpoint waits until the training has got somewhere that a look has seen in its log.
func (d *deployment) checkpoint(id job.ID) {
	d.t.Helper()
	d.await(id, "a piece of log in the tail", func(r job.Record) bool { return r.Look.Tail > 0 })
}

func (d *deployment) read(name string) string {
	b, err := os.ReadFile(filepath.Join(d.shared, name))
	if err != nil {
		return ""
	}
	return string(b)
}

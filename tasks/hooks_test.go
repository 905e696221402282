package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// receiver is a server that webhooks are sent to.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []told
	answer func(n int, w http.ResponseWriter, r *http.Request) // n counts from 1; nil answers 200
}

// told is one call.
type told struct {
	id, event string
	path      string
	body      []byte
	header    http.Header
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	rc := &receiver{answer: answer}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var m struct{ Event string }
		_ = json.Unmarshal(b, &m)
		rc.mu.Lock()
		rc.got = append(rc.got, told{r.Header.Get("Webhook-Id"), m.Event, r.URL.RequestURI(), b, r.Header})
		n := len(rc.got)
		rc.mu.Unlock()
		if rc.answer != nil {
			rc.answer(n, w, r)
		}
	}))
	t.Cleanup(rc.Close)
	return rc
}

func (rc *receiver) calls() []told {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.got)
}

// heard are the events in the order in which they came first.
func (rc *receiver) heard() string {
	var events []string
	seen := map[string]bool{}
	for _, c := range rc.calls() {
		if !seen[c.id] {
			seen[c.id] = true
			events = append(events, c.event)
		}
	}
	return strings.Join(events, " ")
}

// hears waits until exactly these events have come.
func (d *deployment) hears(rc *receiver, want string) {
	d.t.Helper()
	d.eventually("the webhook to hear "+want, func() bool { return rc.heard() == want }, func() string { return "it has heard " + rc.heard() })
}

// notes are those of a job's history about receivers.
func (d *deployment) notes(id job.ID) []string {
	d.t.Helper()
	events, err := d.store.Events(context.Background(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	var notes []string
	for _, e := range events {
		if e.Cause.Code == job.CodeNotTold {
			notes = append(notes, e.Cause.Text+" ("+e.Cause.Evidence+")")
		}
	}
	return notes
}

// everywhere ensures that a text is in no value of the store.
func (d *deployment) nowhere(what, text string) {
	d.t.Helper()
	ctx := context.Background()
	keys, err := d.client.Keys(ctx, "*").Result()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, key := range keys {
		if dump, err := d.client.Dump(ctx, key).Result(); err == nil && strings.Contains(dump, text) {
			d.t.Errorf("%s is in %s", what, key)
		}
	}
}

const allIsWell = "SUBMITTED STARTING STARTED SUCCEEDED"

// TestWebhook ensures that a webhook hears of each change of status once and in order, signed with a secret, at a URL that is
// a secret; that neither is anywhere else (G12), and that both are gone from the store when the last news is told.
func TestWebhook(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	rc := newReceiver(t, nil)
	d.worker()
	req := d.request(`true`)
	req.Tasks[0].Secrets = []string{"URL", "KEY"}
	req.Webhooks = []job.Webhook{{URLSecret: "URL", SignWith: "KEY"}}
	to := rc.URL + "/hook?token=t0ps3cr3t"
	sealed, err := seal.Seal(d.store.Deployment().Recipient, map[string]string{
		tasks.SecretKey(0, "URL"): to, tasks.SecretKey(0, "KEY"): "the key to sign with",
	})
	if err != nil {
		t.Fatal(err)
	}
	id := d.submitAll(store.Submission{Request: req, Sealed: sealed})[0]
	d.hears(rc, allIsWell)
	d.done(id)
	check, err := standardwebhooks.NewWebhookRaw([]byte("the key to sign with"))
	if err != nil {
		t.Fatal(err)
	}
	calls := rc.calls()
	if len(calls) != 4 {
		t.Errorf("%d calls for 4 events", len(calls))
	}
	for i, c := range calls {
		if err := check.Verify(c.body, c.header); err != nil {
			t.Errorf("%s: %v", c.event, err)
		}
		if want := fmt.Sprintf("msg_%s_%d_%d", d.store.Deployment().ID, id, i); c.id != want || c.path != "/hook?token=t0ps3cr3t" {
			t.Errorf("%s is %s at %s", c.event, c.id, c.path)
		}
	}
	if last := string(calls[3].body); !strings.Contains(last, `"final":true`) || !strings.Contains(last, `has succeeded: the user's code ended with exit code 0"`) {
		t.Errorf("the last is %s", last)
	}
	d.eventually("the secrets to be gone", func() bool {
		left, err := d.store.Secrets(context.Background(), id)
		return err == nil && left == nil
	})
	d.nowhere("the URL", "t0ps3cr3t")
	d.nowhere("the key", "the key to sign with")
	if notes := d.notes(id); len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
}

// TestG1_NewsSurviveTheWorker ensures that a worker killed after it has told something, before it could write that down, and
// a queue that lost everything, cost no news: the message comes again with the same id, and the rest in order.
func TestG1_NewsSurviveTheWorker(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	rc := newReceiver(t, nil)
	p := d.worker(func(c *workerConfig) { c.CrashAt = "after hook" })
	req := d.request(`until [ -e "$SHARED/go" ]; do sleep 0.05; done`)
	req.Webhooks = []job.Webhook{{URL: rc.URL}}
	id := d.submit(req)
	<-p.gone
	keys, err := d.client.Keys(context.Background(), "asynq:*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys of the queue: %v, %v", keys, err)
	}
	if err := d.client.Del(context.Background(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	d.worker()
	d.write("go")
	d.done(id)
	d.hears(rc, allIsWell)
	calls := rc.calls()
	if len(calls) < 5 || calls[0].id != calls[1].id || !bytes.Equal(calls[0].body, calls[1].body) {
		t.Errorf("the first news must come twice, the same: %d calls, %s and %s", len(calls), calls[0].id, calls[1].id)
	}
	d.sound(id)
}

// TestNewsOfADamagedJobWait ensures that a job that cannot be read keeps its news until somebody has mended it.
func TestNewsOfADamagedJobWait(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"job", "req"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t)
			rc := newReceiver(t, nil)
			req := d.request(`true`)
			req.Webhooks = []job.Webhook{{URL: rc.URL}}
			id := d.submitAll(store.Submission{Request: req})[0]
			ctx := context.Background()
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			prefix := fmt.Sprintf("ol:{s%02d}:", d.store.ShardOf(id))
			key := fmt.Sprintf("%s%s:%d", prefix, kind, id)
			ok(d.client.Copy(ctx, key, prefix+"whole", 0, true).Err())
			if kind == "job" {
				ok(d.client.HSet(ctx, key, "head", "{").Err())
			} else {
				ok(d.client.Set(ctx, key, "{", 0).Err())
			}
			d.worker()
			hook := fmt.Sprintf("%shook:%d", prefix, id)
			d.eventually("a delivery that was given back", func() bool {
				v, err := d.client.HMGet(ctx, hook, "n", "held").Result()
				return err == nil && v[0] == "1" && v[1] == "0"
			}, func() string { return "" })
			if heard := rc.heard(); heard != "" {
				t.Errorf("told of a damaged job: %s", heard)
			}
			ok(d.client.Rename(ctx, prefix+"whole", key).Err())
			ok(d.client.ZAdd(ctx, prefix+"hooks", redis.Z{Score: 1, Member: int64(id)}).Err())
			d.eventually("its first news", func() bool { return strings.HasPrefix(rc.heard(), "SUBMITTED") }, rc.heard)
		})
	}
}

// TestReceiverThatFails ensures that a receiver which fails for a while hears all in the end, in order; that one which never
// answers well is given up after its tries, told in the history, and harmless; and that they do not wait for each other.
func TestReceiverThatFails(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	ill := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 4 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	dead := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Error(w, "I know "+r.URL.RequestURI(), http.StatusInternalServerError)
	})
	well := newReceiver(t, nil)
	d.worker()
	req := d.request(`true`)
	req.Webhooks = []job.Webhook{
		{URL: dead.URL + "/secret-path?token=t0ps3cr3t"}, {URL: ill.URL}, {URL: well.URL, Events: []string{"running", "SUCCEEDED"}},
	}
	id := d.submit(req)
	if rec := d.done(id); rec.Status() != job.Succeeded {
		t.Fatalf("the job is harmed:\n%s", d.describe(id))
	}
	d.hears(well, "STARTED SUCCEEDED")
	d.hears(ill, allIsWell)
	d.eventually("the dead one to be given up", func() bool { return dead.heard() == allIsWell })
	d.eventually("it to be told", func() bool {
		notes := d.notes(id)
		return len(notes) > 0 && strings.Contains(notes[len(notes)-1], "given up after 14 tries")
	}, func() string { return strings.Join(d.notes(id), "\n") })
	events, err := d.store.Events(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	history, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(history), "webhook 1 ("+dead.URL+") was not told of SUBMITTED") || !strings.Contains(string(history), "HTTP 500: I know") {
		t.Errorf("the history does not tell of it: %s", history)
	}
	if strings.Contains(string(history), "t0ps3cr3t") || strings.Contains(string(history), "secret-path") {
		t.Errorf("the history tells the URL: %s", history)
	}
	if notes := d.notes(id); len(notes) > 4 {
		t.Errorf("too many notes: %q", notes)
	}
	d.sound(id)
}

// TestHangingReceiversDelayNobody ensures that receivers which hang take no place that a job needs: more of them than a worker
// tells at a time, and the jobs go on.
func TestHangingReceiversDelayNobody(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	hang := make(chan struct{})
	rc := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(hang) }) // before the server's own end
	d.worker()
	req := d.request(`true`)
	req.Webhooks = []job.Webhook{{URL: rc.URL}}
	ids := d.submitAll(store.Submission{Request: req, Count: 20})
	d.eventually("all deliveries to hang", func() bool { return len(rc.calls()) >= 16 })
	for _, id := range append(ids, d.submit(d.request(`true`))) {
		if rec := d.done(id); rec.Status() != job.Succeeded {
			t.Fatalf("a job is harmed:\n%s", d.describe(id))
		}
	}
}

// TestCallback ensures that event_callback runs for each event in order, as SkyPilot's users know it, and without secrets;
// that one which hangs and forks away is ended, tried again, and harms nothing; and that each task of a chain has its own.
func TestCallback(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	req := d.request(`true`, func(t *job.TaskRequest) {
		t.Name, t.Secrets = "first", []string{"TOKEN"}
		t.EventCallback = `echo "$JOB_ID $TASK_ID $JOB_STATUS $TASK_NAME $EVENT_TYPE ${TOKEN-none} $SKYPILOT_TASK_ID" >> "$SHARED/called"`
	})
	req.Tasks = append(req.Tasks, d.request(`exit 3`, func(t *job.TaskRequest) {
		t.Name = "second"
		t.EventCallback = `
[ "$OUTLAST_CAUSE" = user_exit ] || exit 0
echo "$OUTLAST_EVENT $OUTLAST_STATUS" >> "$SHARED/second"
if [ "$(wc -l < "$SHARED/second")" -lt 2 ]; then setsid sleep 1000 & trap '' TERM; while :; do sleep 0.1; done; fi`
	}).Tasks[0])
	sealed, err := seal.Seal(d.store.Deployment().Recipient, map[string]string{tasks.SecretKey(0, "TOKEN"): "s3cr3t"})
	if err != nil {
		t.Fatal(err)
	}
	id := d.submitAll(store.Submission{Request: req, Sealed: sealed})[0]
	if rec := d.done(id); rec.Status() != job.Failed {
		t.Fatalf("want FAILED:\n%s", d.describe(id))
	}
	d.eventually("the callback to be called again", func() bool { return strings.Count(d.read("second"), "FAILED FAILED") == 2 })
	lines := strings.Split(strings.TrimSpace(d.read("called")), "\n")
	for i, event := range strings.Fields(allIsWell) {
		if i >= len(lines) || !strings.HasPrefix(lines[i], fmt.Sprintf("%d 0 %s first Spot none sky-managed-", id, event)) {
			t.Fatalf("called %q", lines)
		}
	}
	if len(lines) != 4 {
		t.Errorf("called %q", lines)
	}
	d.eventually("nothing of the callbacks to be left", func() bool { return len(d.processesWith("OUTLAST_MESSAGE_ID=")) == 0 })
	d.sound(id)
}

// TestNoCallbacks ensures that a worker which must not run code of users does not, and says so in the history.
func TestNoCallbacks(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker(func(c *workerConfig) { c.NoCallbacks = true })
	id := d.submit(d.request(`true`, func(t *job.TaskRequest) { t.EventCallback = `touch "$SHARED/called"` }))
	d.done(id)
	d.eventually("a note", func() bool { return len(d.notes(id)) > 0 })
	if notes := d.notes(id); len(notes) != 1 || !strings.Contains(notes[0], "run no callbacks (the setting callbacks)") {
		t.Errorf("notes: %q", notes)
	}
	d.eventually("all news to be done with", func() bool {
		due, err := d.store.HooksDue(context.Background(), 100, 0, time.Minute)
		return err == nil && len(due) == 0
	})
	if d.read("called") != "" {
		t.Error("it was run")
	}
}

// TestG5_NewsWaitUntilNoStoreLosesThem ensures that the world outside is told of no status that a Redis may still lose: it would
// hear of an ending that did not happen. The schedule that it is against: a job ends, its webhook is told, the computer of Redis
// crashes with the last second, and the job ends otherwise.
func TestG5_NewsWaitUntilNoStoreLosesThem(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	durable := job.DefaultRules.Durable
	var mu sync.Mutex
	var heard []job.Time
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now, err := d.store.Now(r.Context())
		if err != nil {
			t.Error(err)
		}
		heard = append(heard, now)
	})
	d.worker(func(c *workerConfig) { c.Durable = durable })
	req := d.request(`true`)
	req.Webhooks = []job.Webhook{{URL: rc.URL}}
	id := d.submit(req)
	d.hears(rc, allIsWell)
	d.done(id)
	events, err := d.store.Events(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	events = slices.DeleteFunc(events, func(e job.Event) bool { return e.Kind != "status" })
	mu.Lock()
	defer mu.Unlock()
	if len(events) != len(heard) {
		t.Fatalf("told %d times of %d changes", len(heard), len(events))
	}
	for i, e := range events {
		if age := heard[i].Sub(e.At); age < durable {
			t.Errorf("%s was told %s after it was decided, want at least %s", e.To, age, durable)
		}
	}
}

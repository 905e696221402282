// Package webtest is a deployment for tests of the page: a real Redis and a real archive, without workers. A test writes
// what workers would have written, so that a job is in any state at once.
package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web"
)

// World is a deployment with a server.
type World struct {
	DB      *redistest.Server
	Redis   *redis.Client
	Store   *store.Store
	Archive *archive.Archive
	Actions *Actions
	Server  *web.Server

	tb testing.TB
}

// New starts Redis and the server. Both end with the test.
func New(tb testing.TB, change func(*web.Config)) *World {
	tb.Helper()
	w := &World{tb: tb, DB: redistest.Start(tb)}
	w.Redis = w.DB.Client(tb)
	var err error
	w.Archive, err = archive.Open(context.Background(), "file://"+filepath.Join(tb.TempDir(), "archive"))
	w.check(err)
	tb.Cleanup(func() { w.check(w.Archive.Close()) })
	w.Store, err = store.Found(context.Background(), w.Redis, store.Deployment{ID: "test", Shards: 4})
	w.check(err)
	w.Actions = &Actions{}
	cfg := web.Config{
		Listen: "127.0.0.1:0", Metrics: prometheus.NewRegistry(), Ready: func(context.Context) error { return nil },
		Queues: func() redis.UniversalClient { return redis.NewClient(w.DB.Options()) },
		Store:  w.Store, Archive: w.Archive, Actions: w.Actions,
	}
	if change != nil {
		change(&cfg)
	}
	w.Server, err = web.Start(cfg)
	w.check(err)
	tb.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
		defer done()
		w.check(w.Server.Stop(ctx))
	})
	return w
}

func (w *World) check(err error) {
	if err != nil {
		w.tb.Helper()
		w.tb.Fatal(err)
	}
}

// Submit makes a job.
func (w *World) Submit(r job.Request) job.ID {
	w.tb.Helper()
	if len(r.Tasks) == 0 {
		r.Tasks = []job.TaskRequest{{Run: "true"}}
	}
	ids, err := w.Store.Submit(context.Background(), store.Submission{Request: r})
	w.check(err)
	return ids[0]
}

// Date makes a job as old as told, also in its history.
func (w *World) Date(id job.ID, age time.Duration) {
	w.tb.Helper()
	rec, err := w.Store.Load(context.Background(), id)
	w.check(err)
	rec.SubmittedAt = rec.SubmittedAt.Add(-age)
	text, err := json.Marshal(rec.Head)
	w.check(err)
	w.check(w.Redis.HSet(context.Background(), w.key(id, "job"), "head", text).Err())
	events, err := w.Store.Events(context.Background(), id)
	w.check(err)
	for i, e := range events[1:] { // the first one is told by the head
		e.At = e.At.Add(-age)
		text, err := json.Marshal(e)
		w.check(err)
		w.check(w.Redis.LSet(context.Background(), w.key(id, "ev"), int64(i), text).Err())
	}
}

// Retire moves a job that has ended into the archive.
func (w *World) Retire(id job.ID) {
	w.tb.Helper()
	ctx := context.Background()
	all, err := w.Store.LoadAll(ctx, id)
	w.check(err)
	now, err := w.Store.Now(ctx)
	w.check(err)
	w.check(w.Archive.PutJob(ctx, archive.DocumentOf(&all.Record, all.Request, all.Past, all.Events, now)))
	gone, err := w.Store.Retire(ctx, &all)
	w.check(err)
	if !gone {
		w.tb.Fatal("the job stays")
	}
}

// Corrupt damages the record of a job.
func (w *World) Corrupt(id job.ID) {
	w.tb.Helper()
	w.check(w.Redis.HSet(context.Background(), w.key(id, "job"), "head", "{").Err())
}

func (w *World) key(id job.ID, kind string) string {
	return fmt.Sprintf("ol:{s%02d}:%s:%d", w.Store.ShardOf(id), kind, id)
}

// Change drives a job for one commit, as a worker would.
func (w *World) Change(id job.ID, f func(r *job.Record, now job.Time)) {
	w.tb.Helper()
	ctx := context.Background()
	rec, err := w.Store.Load(ctx, id)
	w.check(err)
	var c store.Claimed
	if rec.Step.Acts() {
		c, err = w.Store.Begin(ctx, id, rec.Step, rec.Dispatch, "test", time.Minute)
		w.check(err)
	} else {
		_, err = w.Store.Wake(ctx, id)
		w.check(err)
		due, err := w.Store.Claim(ctx, w.Store.ShardOf(id), 1000, 0, time.Minute, time.Minute)
		w.check(err)
		for _, one := range due.Jobs {
			if one.ID == id {
				c = one
			}
		}
	}
	next := c.Clone()
	f(&next, c.Now)
	next.Dispatch++
	next.Due = c.Now.Add(time.Hour)
	results, err := w.Store.Commit(ctx, w.Store.ShardOf(id), store.Commit{From: &c, Next: next})
	w.check(err)
	w.check(results[0])
}

// Event is a change of status at a time, with the line of history that tells it.
func Event(r *job.Record, at job.Time, to job.Status, cause job.Cause) {
	t := &r.Tasks[r.Cur]
	r.Events = append(r.Events, job.Event{
		At: at, Kind: "status", Task: r.Cur, Attempt: t.Attempts, From: string(t.Status), To: string(to), Cause: cause,
	})
	t.Status, t.Cause = to, cause
}

// Runs starts the next attempt of a job's current task, so long ago.
func (w *World) Runs(id job.ID, offer job.Offer, ago time.Duration) {
	w.tb.Helper()
	w.Change(id, func(r *job.Record, now job.Time) {
		at := now.Add(-ago)
		t := &r.Tasks[r.Cur]
		t.Attempts++
		if t.Status == job.Recovering {
			t.Recoveries++
		}
		if t.StartedAt.IsZero() {
			t.StartedAt = at
		}
		t.LastRecoveredAt = at
		r.Wait = job.Waiting{}
		r.Live = []job.Attempt{{
			Task: r.Cur, Number: t.Attempts, Phase: job.PhaseStarted, Offer: offer,
			IntentAt: at.Add(-ago / 12), CreatedAt: at.Add(-ago / 12), ReadyAt: at, StartedAt: at,
		}}
		Event(r, at, job.Running, job.Cause{})
		r.Step = job.StepWatch
	})
}

// Loses takes the machine of a job away, so long ago.
func (w *World) Loses(id job.ID, cause job.Cause, ago time.Duration) {
	w.tb.Helper()
	w.Change(id, func(r *job.Record, now job.Time) {
		at := now.Add(-ago)
		a := r.Live[0]
		a.Phase, a.EndedAt, a.ClosingAt, a.GoneAt, a.Why = job.PhaseGone, at, at, at.Add(ago/20), cause
		r.Past, r.Live = append(r.Past, a), nil
		t := &r.Tasks[r.Cur]
		t.RunMS += at.Sub(a.StartedAt).Milliseconds()
		Event(r, at, job.Recovering, cause)
		r.Wait = job.Waiting{For: job.Cause{Code: job.CodeBackoff, Text: "every offer failed in round 1"}, Since: at}
		r.Step = job.StepLaunch
	})
}

// Ends ends a job, so long ago.
func (w *World) Ends(id job.ID, status job.Status, cause job.Cause, exit int, ago time.Duration) {
	w.tb.Helper()
	w.Change(id, func(r *job.Record, now job.Time) {
		at := now.Add(-ago)
		for _, a := range r.Live {
			a.Phase, a.EndedAt, a.ClosingAt, a.GoneAt, a.Why = job.PhaseGone, at, at, at.Add(time.Second), cause
			a.Exit = &job.Exit{Stage: "run", Code: exit}
			r.Tasks[r.Cur].RunMS += at.Sub(a.StartedAt).Milliseconds()
			r.Past = append(r.Past, a)
		}
		r.Live, r.Wait = nil, job.Waiting{}
		Event(r, at, status, cause)
		r.Tasks[r.Cur].EndedAt = at
		for i := r.Cur + 1; i < len(r.Tasks); i++ {
			r.Tasks[i].Status, r.Tasks[i].EndedAt = job.Cancelled, at
		}
		r.Step = job.StepDone
	})
}

// Says puts output into the archive.
func (w *World) Says(id job.ID, task, attempt int, offset int64, text string) {
	w.tb.Helper()
	rec, err := w.Store.Load(context.Background(), id)
	w.check(err)
	w.check(w.Archive.PutLog(context.Background(), archive.LogOf(&rec.Head, task, attempt), offset, []byte(text)))
}

// View stores how a region was listed.
func (w *World) View(provider, region string, nodes []cloud.Node, problem string) {
	w.tb.Helper()
	now, err := w.Store.Now(context.Background())
	w.check(err)
	machines, err := json.Marshal(nodes)
	w.check(err)
	w.check(w.Store.PutView(context.Background(), store.View{Provider: provider, Region: region, At: now, Machines: machines, Error: problem}))
}

// Actions remember what was asked for.
type Actions struct {
	mu   sync.Mutex
	done []string
	Fail error      // what the next ones answer
	Say  web.Result // what the others answer; "" is Accepted
}

// Done is what was asked for so far.
func (a *Actions) Done() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.done...)
}

func (a *Actions) do(format string, args ...any) (web.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Fail != nil {
		return "", a.Fail
	}
	a.done = append(a.done, fmt.Sprintf(format, args...))
	if a.Say == "" {
		return web.Accepted, nil
	}
	return a.Say, nil
}

// Cancel implements web.Actions.
func (a *Actions) Cancel(_ context.Context, id job.ID, by string, grace time.Duration) (web.Result, error) {
	return a.do("cancel %d by %s grace %s", id, by, grace)
}

// Resume implements web.Actions.
func (a *Actions) Resume(_ context.Context, id job.ID, by string) (web.Result, error) {
	return a.do("resume %d by %s", id, by)
}

// Preempt implements web.Actions.
func (a *Actions) Preempt(_ context.Context, id job.ID, by string) (web.Result, error) {
	return a.do("preempt %d by %s", id, by)
}

// Follow implements web.Actions.
func (*Actions) Follow(context.Context, job.ID) error { return nil }

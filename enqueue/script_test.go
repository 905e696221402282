package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that every command does what it says against a real Redis, in which the scripts play the workers.
func TestScripts(t *testing.T) {
	server := redistest.Start(t)
	var databases atomic.Int64 // one for each script, so that they run side by side
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			db := int(databases.Add(1))
			o := server.Options()
			o.DB = db
			rdb := redis.NewClient(o)
			env.Defer(func() { _ = rdb.Close() })
			env.Values["redis"] = rdb
			env.Setenv("OUTLAST_REDIS", fmt.Sprintf("%s?db=%d", server.URL(), db))
			env.Setenv("OUTLAST_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a race build sleeps a second at its end otherwise
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"found": found, "runs": runs, "loses": loses, "ends": ends, "closes": closes, "writes": writes, "drops": drops, "removed": removed, "logged": logged, "view": view, "reports": reports,
			"corrupts": corrupts, "bundles": bundles, "retires": retires, "forgets": forgets,
			"waitfollowed": waitFollowed, "nowhere": nowhere, "waitfor": waitFor, "offers": offers, "serves": serves,
		},
	})
}

// found makes the deployment, with an identity for secrets unless told otherwise: found [open].
func found(ts *testscript.TestScript, _ bool, args []string) {
	want := store.Deployment{ID: "test", Shards: 4, Archive: "file://" + ts.MkAbs("archive")}
	if len(args) == 0 {
		id, err := seal.Generate()
		ts.Check(err)
		want.Recipient = id.Recipient()
	}
	_, err := store.Found(context.Background(), ts.Value("redis").(*redis.Client), want)
	ts.Check(err)
}

func open(ts *testscript.TestScript) *store.Store {
	s, err := store.Open(context.Background(), ts.Value("redis").(*redis.Client))
	ts.Check(err)
	return s
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// change drives a job for one commit, as a worker would.
func change(ts *testscript.TestScript, id string, f func(r *job.Record, now job.Time)) {
	s := open(ts)
	ctx := context.Background()
	r, err := s.Load(ctx, job.ID(number(ts, id)))
	ts.Check(err)
	var c store.Claimed
	if r.Step.Acts() {
		c, err = s.Begin(ctx, r.ID, r.Step, r.Dispatch, "script", time.Minute)
		ts.Check(err)
	} else {
		_, err = s.Wake(ctx, r.ID)
		ts.Check(err)
		due, err := s.Claim(ctx, s.ShardOf(r.ID), 1000, 0, time.Minute, time.Minute)
		ts.Check(err)
		for _, one := range due.Jobs {
			if one.ID == r.ID {
				c = one
			}
		}
	}
	next := c.Clone()
	f(&next, c.Now)
	next.Dispatch++
	next.Due = c.Now.Add(time.Hour)
	results, err := s.Commit(ctx, s.ShardOf(r.ID), store.Commit{From: &c, Next: next})
	ts.Check(err)
	ts.Check(results[0])
}

func event(r *job.Record, now job.Time, to job.Status, cause job.Cause) {
	t := &r.Tasks[r.Cur]
	r.Events = append(r.Events, job.Event{
		At: now, Kind: "status", Task: r.Cur, Attempt: t.Attempts, From: string(t.Status), To: string(to), Cause: cause,
	})
	t.Status, t.Cause = to, cause
}

// runs starts the next attempt of a job's current task: runs ID REGION.
func runs(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args[0], func(r *job.Record, now job.Time) {
		t := &r.Tasks[r.Cur]
		t.Attempts++
		if t.Status == job.Recovering {
			t.Recoveries++
		}
		if t.StartedAt.IsZero() {
			t.StartedAt = now
		}
		t.LastRecoveredAt = now
		r.Live = []job.Attempt{{
			Task: r.Cur, Number: t.Attempts, Phase: job.PhaseStarted, IntentAt: now, CreatedAt: now, StartedAt: now,
			Offer: job.Offer{Provider: "local", Region: args[1], Type: "small", Spot: true, Price: 0.03},
		}}
		event(r, now, job.Running, job.Cause{})
		r.Step = job.StepWatch
	})
}

// loses takes the machine of a job away: loses ID.
func loses(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args[0], func(r *job.Record, now job.Time) {
		cause := job.Cause{Code: job.CodePreempted, Text: "the provider took the machine", Evidence: "n-1: \x1b[31mspot"}
		a := r.Live[0]
		a.Phase, a.EndedAt, a.GoneAt, a.Why = job.PhaseGone, now, now, cause
		r.Past, r.Live = append(r.Past, a), nil
		event(r, now, job.Recovering, cause)
		r.Wait = job.Waiting{For: job.Cause{Code: job.CodeBackoff, Text: "every offer failed in round 1"}, Since: now}
		r.Step = job.StepLaunch
	})
}

// closes ends the clean-up of a job that has ended: closes ID.
func closes(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args[0], func(r *job.Record, _ job.Time) { r.Step = job.StepDone })
}

// ends ends a job's current task, and with it the chain unless it succeeded: ends ID STATUS [EXIT CODE [closing]].
func ends(ts *testscript.TestScript, _ bool, args []string) {
	change(ts, args[0], func(r *job.Record, now job.Time) {
		cause := job.Cause{}
		if status := job.Status(args[1]); status.Failure() {
			cause = job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code " + args[2]}
		} else if status == job.Cancelled {
			cause = job.Cause{Code: job.CodeCancelled, Text: "cancelled by somebody"}
		}
		for _, a := range r.Live {
			a.Phase, a.EndedAt, a.GoneAt, a.Why = job.PhaseGone, now, now, cause
			r.Past = append(r.Past, a)
		}
		r.Live, r.Wait = nil, job.Waiting{}
		event(r, now, job.Status(args[1]), cause)
		r.Tasks[r.Cur].EndedAt = now
		if job.Status(args[1]) == job.Succeeded && r.Cur+1 < len(r.Tasks) {
			r.Cur, r.Step = r.Cur+1, job.StepLaunch
			return
		}
		for i := r.Cur + 1; i < len(r.Tasks); i++ {
			r.Tasks[i].Status, r.Tasks[i].EndedAt = job.Cancelled, now
		}
		r.Step = job.StepDone
		if len(args) > 3 { // its machines are still there
			r.Step = job.StepCleanup
		}
	})
}

// writes puts output where a follower looks: writes archive|tail ID TASK ATTEMPT OFFSET TEXT [MARK]... The text may hold
// escapes such as \n; a mark is KIND:OFFSET:VALUE.
func writes(ts *testscript.TestScript, _ bool, args []string) {
	text, err := strconv.Unquote(`"` + args[5] + `"`)
	ts.Check(err)
	s := open(ts)
	k := logKey(ts, s, args[1:4])
	offset := int64(number(ts, args[4]))
	kinds := map[string]job.MarkKind{"time": job.MarkTime, "setup": job.MarkSetup, "run": job.MarkRun, "skew": job.MarkSkew}
	var marks []job.Mark
	for _, arg := range args[6:] {
		m := strings.Split(arg, ":")
		marks = append(marks, job.Mark{Kind: kinds[m[0]], Offset: int64(number(ts, m[1])), Value: int64(number(ts, m[2]))})
	}
	if args[0] == "tail" {
		ts.Check(s.TailAppend(context.Background(), k.Job, k.Task, k.Attempt, offset, []byte(text), marks...))
		return
	}
	files, err := archive.Open(context.Background(), s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	ts.Check(files.PutLog(context.Background(), k, offset, []byte(text), marks...))
}

// logKey names the log of ID TASK ATTEMPT.
func logKey(ts *testscript.TestScript, s *store.Store, args []string) archive.LogKey {
	rec, err := s.Load(context.Background(), job.ID(number(ts, args[0])))
	ts.Check(err)
	return archive.LogOf(&rec.Head, number(ts, args[1]), number(ts, args[2]))
}

// drops notes in the archive that a part of a log was dropped: drops ID TASK ATTEMPT FROM TO.
func drops(ts *testscript.TestScript, _ bool, args []string) {
	s := open(ts)
	files, err := archive.Open(context.Background(), s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	k := logKey(ts, s, args[:3])
	ts.Check(files.DropLog(context.Background(), k, int64(number(ts, args[3])), int64(number(ts, args[4]))))
}

// removed leaves the notice that a job's logs were removed: removed ID.
func removed(ts *testscript.TestScript, _ bool, args []string) {
	files, err := archive.Open(context.Background(), open(ts).Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	at := job.TimeOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	ts.Check(files.PutNotice(context.Background(), archive.Notice{Job: job.ID(number(ts, args[0])), At: at, After: 7 * 24 * time.Hour}))
}

// logged puts a line into a job's journal: logged redis|archive ID LINE.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	s := open(ts)
	id := job.ID(number(ts, args[1]))
	if args[0] == "redis" {
		ts.Check(s.JournalAppend(context.Background(), id, []byte(args[2]+"\n")))
		return
	}
	files, err := archive.Open(context.Background(), s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	ts.Check(files.PutJournal(context.Background(), id, []byte(args[2]+"\n")))
}

// view stores a look at local/a an hour from now, with a machine for each ID/ATTEMPT: view [ID/ATTEMPT...].
func view(ts *testscript.TestScript, _ bool, args []string) {
	s := open(ts)
	now, err := s.Now(context.Background())
	ts.Check(err)
	nodes := []cloud.Node{}
	for i, arg := range args {
		var id, attempt int
		_, err := fmt.Sscanf(arg, "%d/%d", &id, &attempt)
		ts.Check(err)
		nodes = append(nodes, cloud.Node{
			Identity: cloud.Identity{Deployment: "test", Job: job.ID(id), Attempt: attempt},
			ID:       fmt.Sprintf("n-%d", i), Provider: "local", Region: "a",
			State: cloud.Running, CreatedAt: now.Std().Add(-time.Hour),
		})
	}
	machines, err := json.Marshal(nodes)
	ts.Check(err)
	ts.Check(s.PutView(context.Background(), store.View{Provider: "local", Region: "a", At: now.Add(time.Hour), Machines: machines}))
}

// reports has a worker report itself: reports NAME [WHY IT IS NOT READY].
func reports(ts *testscript.TestScript, _ bool, args []string) {
	w := store.Worker{Name: args[0], Host: "host", PID: 1, Ready: len(args) == 1}
	if !w.Ready {
		w.Why = args[1]
	}
	ts.Check(open(ts).PutWorker(context.Background(), w))
}

// serves has a worker on another computer report a page: serves NAME URL.
func serves(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(open(ts).PutWorker(context.Background(), store.Worker{Name: args[0], Host: "elsewhere", URL: args[1], Ready: true}))
}

// offers has a worker tell what the local provider has, with eight accelerators in zone b; with an argument the provider
// fails with it after that: offers [ERROR].
func offers(ts *testscript.TestScript, _ bool, args []string) {
	ctx, s := context.Background(), open(ts)
	p, err := local.New(local.Config{
		Root: ts.MkAbs("machines"), Deployment: "test", Machine: []string{"none"},
		Zones: []local.Zone{{Name: "a"}, {Name: "b", Accelerators: map[string]int{"A100": 8}}},
	})
	ts.Check(err)
	all, err := p.Offers(ctx)
	ts.Check(err)
	support, err := json.Marshal(p.Support())
	ts.Check(err)
	ts.Check(s.PutCatalog(ctx, store.Catalog{Provider: "local", Offers: all, Support: support}))
	if len(args) > 0 {
		ts.Check(s.CatalogFailed(ctx, "local", args[0]))
	}
}

// corrupts damages a job's record: corrupts ID.
func corrupts(ts *testscript.TestScript, _ bool, args []string) {
	key := fmt.Sprintf("ol:{s%02d}:job:%s", number(ts, args[0])%4, args[0])
	ts.Check(ts.Value("redis").(*redis.Client).HSet(context.Background(), key, "head", "{").Err())
}

// waitFollowed waits until somebody follows a job, or waits for it: waitfollowed ID.
func waitFollowed(ts *testscript.TestScript, _ bool, args []string) {
	s := open(ts)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-poll.C {
		if r, err := s.Load(context.Background(), job.ID(number(ts, args[0]))); err == nil && r.Follow > 0 {
			return
		}
	}
	ts.Fatalf("nobody follows job %s", args[0])
}

// waitFor waits until what a file holds matches: waitfor FILE REGEXP.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	wanted, err := regexp.Compile(args[1])
	ts.Check(err)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	var text []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-poll.C {
		if text, _ = os.ReadFile(ts.MkAbs(args[0])); wanted.Match(text) {
			return
		}
	}
	ts.Fatalf("%s never matches %s: %s", args[0], args[1], text)
}

// nowhere ensures that a text is in no value of the database: nowhere TEXT.
func nowhere(ts *testscript.TestScript, _ bool, args []string) {
	ctx, rdb := context.Background(), ts.Value("redis").(*redis.Client)
	keys, err := rdb.Keys(ctx, "*").Result()
	ts.Check(err)
	for _, key := range keys {
		dump, err := rdb.Dump(ctx, key).Result()
		ts.Check(err)
		if strings.Contains(dump, args[0]) {
			ts.Fatalf("%s is in %s", args[0], key)
		}
	}
}

// bundles ensures that the first task of a job has these file mounts and that the archive has their bundles:
// bundles ID PATH=FILE...
func bundles(ts *testscript.TestScript, _ bool, args []string) {
	ctx, s := context.Background(), open(ts)
	r, err := s.Request(ctx, job.ID(number(ts, args[0])))
	ts.Check(err)
	files, err := archive.Open(ctx, s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	var got []string
	for _, m := range r.Tasks[0].Files {
		got = append(got, m.Path+"="+m.File)
		b, err := files.OpenBundle(ctx, m.Bundle)
		ts.Check(err)
		ts.Check(b.Close())
	}
	if want := args[1:]; !slices.Equal(got, want) {
		ts.Fatalf("job %s has the file mounts %q, want %q", args[0], got, want)
	}
}

// retires moves a job to the archive, as retention does: retires ID.
func retires(ts *testscript.TestScript, _ bool, args []string) {
	ctx, s := context.Background(), open(ts)
	all, err := s.LoadAll(ctx, job.ID(number(ts, args[0])))
	ts.Check(err)
	files, err := archive.Open(ctx, s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	now, err := s.Now(ctx)
	ts.Check(err)
	ts.Check(files.PutJob(ctx, archive.DocumentOf(&all.Record, all.Request, all.Past, all.Events, now)))
	gone, err := s.Retire(ctx, &all)
	ts.Check(err)
	if !gone {
		ts.Fatalf("job %s stays", args[0])
	}
}

// forgets removes the logs of a job as retention does when they are too old: forgets ID.
func forgets(ts *testscript.TestScript, _ bool, args []string) {
	ctx, s := context.Background(), open(ts)
	files, err := archive.Open(ctx, s.Deployment().Archive)
	ts.Check(err)
	defer func() { _ = files.Close() }()
	id := job.ID(number(ts, args[0]))
	ts.Check(files.PutNotice(ctx, archive.Notice{Job: id, At: 1_767_225_600_000, After: 30 * 24 * time.Hour}))
	ts.Check(files.RemoveLogs(ctx, id))
}

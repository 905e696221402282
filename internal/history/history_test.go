package history_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/history"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

type bench struct {
	history.Jobs
	t     *testing.T
	files *archive.Archive
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := store.Found(t.Context(), redistest.Start(t).Client(t), store.Deployment{ID: "test", Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	files, err := archive.Open(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return &bench{Jobs: history.Jobs{Store: s, Open: func(context.Context) (history.Archive, error) { return files, nil }}, t: t, files: files}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ended submits a job of a user and ends it.
func (b *bench) ended(user string) job.ID {
	b.t.Helper()
	ctx := b.t.Context()
	req := job.Request{Name: "n", User: user, Tasks: []job.TaskRequest{{Run: "true"}}}
	id := must[[]job.ID](b.t)(b.Submit(ctx, store.Submission{Request: req}))[0]
	c := must[store.Claimed](b.t)(b.Begin(ctx, id, job.StepLaunch, 1, "token", time.Minute))
	next := c.Clone()
	next.Step, next.Tasks[0].Status = job.StepDone, job.Failed
	next.Past = []job.Attempt{{Number: 1}}
	if errs := must[[]error](b.t)(b.Commit(ctx, b.ShardOf(id), store.Commit{From: &c, Next: next})); errs[0] != nil {
		b.t.Fatal(errs[0])
	}
	return id
}

// filed writes a job's document.
func (b *bench) filed(id job.ID) store.Retired {
	b.t.Helper()
	all := must[store.Retired](b.t)(b.LoadAll(b.t.Context(), id))
	if err := b.files.PutJob(b.t.Context(), archive.DocumentOf(&all.Record, all.Request, all.Past, all.Events, 1_700_000_000_000)); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// retired moves a job to the archive.
func (b *bench) retired(id job.ID) {
	b.t.Helper()
	all := b.filed(id)
	if !must[bool](b.t)(b.Retire(b.t.Context(), &all)) {
		b.t.Fatal("it stays")
	}
}

// TestReadsBothPlaces ensures that whatever is read of a job is the same before and after it has moved to the archive.
func TestReadsBothPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.ended("ada")
	read := func() []any {
		t.Helper()
		ctx := t.Context()
		rec := must[job.Record](t)(b.Load(ctx, id))
		many, _, err := b.LoadMany(ctx, []job.ID{id, 999})
		one := many[id]
		return []any{
			rec.Status(), rec.Head, rec.Tasks, one.Status(), len(many), err, must[job.Request](t)(b.Request(ctx, id)),
			must[[]job.Event](t)(b.Events(ctx, id)), must[[]job.Attempt](t)(b.Past(ctx, id)),
		}
	}
	before := read()
	b.retired(id)
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("(-in Redis +in the archive):\n%s", diff)
	}
	var refused *job.NotResumableError
	if _, err := b.Resume(t.Context(), id, "ada"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "archive on 2023-11-14") {
		t.Errorf("resume gave %v", err)
	}
}

// TestUnknown ensures that a job that is nowhere is unknown, and that an archive that cannot be asked is told.
func TestUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, away := range []bool{false, true} {
		if away {
			b.Open = func(context.Context) (history.Archive, error) { return nil, errors.New("bucket away") }
		}
		_, err := b.Load(t.Context(), 7)
		if !errors.Is(err, store.ErrNotFound) || strings.Contains(err.Error(), "bucket away") != away {
			t.Errorf("away %v: %v", away, err)
		}
	}
}

// TestFindArchived ensures that the pages of the archive are newest first, filtered, bounded, and leave out jobs that are still
// in Redis.
func TestFindArchived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []job.ID
	for i := range 9 {
		user := []string{"ada", "bob"}[i%2]
		id := b.ended(user)
		if i == 4 {
			b.filed(id) // a worker died before it deleted the job
			continue
		}
		b.retired(id)
		if user == "ada" {
			want = append(want, id)
		}
	}
	slices.Reverse(want)
	for _, q := range []store.Query{{User: "ada"}, {User: "ada", Limit: 2}, {User: "ada", Examine: 1}, {User: "ada", Limit: 1, Examine: 3}} {
		var got []job.ID
		for {
			page := must[store.Page](t)(b.FindArchived(t.Context(), q))
			for _, r := range page.Jobs {
				got = append(got, r.ID)
			}
			if q.Before = page.Next; page.Next == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", q, got, want)
		}
	}
}

// counted counts the documents that are read.
type counted struct {
	history.Archive
	read atomic.Int64
}

func (c *counted) Document(ctx context.Context, e archive.Entry) (archive.Document, error) {
	c.read.Add(1)
	return c.Archive.Document(ctx, e)
}

// TestFindArchivedReadsWhatFits ensures that a page of jobs in the archive reads the documents of that page and no other, if
// the index knows them, and finds the same without it.
func TestFindArchivedReadsWhatFits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	archived := &counted{Archive: b.files}
	b.Open = func(context.Context) (history.Archive, error) { return archived, nil }
	var briefs []archive.Brief
	var want []job.ID
	for i := range 60 {
		user := "ada"
		if i%20 == 7 {
			user = "bob"
		}
		id := b.ended(user)
		b.retired(id)
		if user == "bob" {
			want = append(want, id)
		}
		doc := must[archive.Document](t)(b.files.Job(t.Context(), id))
		briefs = append(briefs, archive.BriefOf(&doc))
	}
	slices.Reverse(want)
	for _, reads := range []int64{60, 3} {
		archived.read.Store(0)
		page := must[store.Page](t)(b.FindArchived(t.Context(), store.Query{User: "bob"}))
		var got []job.ID
		for _, r := range page.Jobs {
			got = append(got, r.ID)
		}
		if n := archived.read.Load(); !slices.Equal(got, want) || n != reads {
			t.Errorf("found %v with %d reads, want %v with %d", got, n, want, reads)
		}
		if err := b.files.Index(t.Context(), briefs); err != nil {
			t.Fatal(err)
		}
	}
}

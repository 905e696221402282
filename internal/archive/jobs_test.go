package archive

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// document is one of a job with two tasks.
func document(id job.ID) Document {
	r := job.NewRecord(job.HeadOf(id, job.Request{Name: "n", Tasks: make([]job.TaskRequest, 2)}, 5))
	r.Tasks[0].Status, r.Tasks[1].Status, r.Cur, r.Tasks[1].EndedAt = job.Succeeded, job.Failed, 1, 9
	return DocumentOf(&r, job.Request{Name: "n", Tasks: make([]job.TaskRequest, 2)}, nil, []job.Event{{At: 9, Kind: "note"}}, 10)
}

// TestJobDocument ensures that a document reads back as it was, is written over by a newer one, and that what is not
// there, or damaged, or of a newer version, is said.
func TestJobDocument(t *testing.T) {
	a, _ := open(t)
	ctx := t.Context()
	want := document(7)
	for _, at := range []job.Time{1, 2} {
		want.RetiredAt = at
		if err := a.PutJob(ctx, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Job(ctx, 7)
	rec := got.Record()
	if diff := cmp.Diff(want, got); err != nil || diff != "" || rec.Status() != job.Failed || !rec.Ended() || got.EndedAt() != 9 {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := a.Job(ctx, 8); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown job gave %v", err)
	}
	newer := want
	newer.Version = documentVersion + 1
	if err := a.PutJob(ctx, newer); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Job(ctx, 7); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a newer version gave %v", err)
	}
	for _, text := range []string{"", "junk", string(a.codec.enc.EncodeAll([]byte(`{"version":1}`), nil))} {
		if err := a.bucket.WriteAll(ctx, jobObject(7, 0), []byte(text), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Job(ctx, 7); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("damaged as %q it gave %v", text, err)
		}
	}
}

// TestJobsPages ensures that the jobs in the archive are listed newest first and page by page, also across folders, and that
// nothing else in the bucket is taken for one.
func TestJobsPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, _ := open(t)
		ctx := context.Background()
		ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) job.ID {
			return job.ID(rapid.SampledFrom([]int64{1, 990, 5_000, 1 << 40}).Draw(t, "about") + rapid.Int64Range(0, 20).Draw(t, "at"))
		}), 0, 12, rapid.ID).Draw(rt, "jobs")
		for _, id := range ids {
			if err := a.PutJob(ctx, document(id)); err != nil {
				rt.Fatal(err)
			}
		}
		if err := a.bucket.WriteAll(ctx, jobFolder(0)+"other", nil, nil); err != nil {
			rt.Fatal(err)
		}
		slices.Sort(ids)
		slices.Reverse(ids)
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		var got []job.ID
		for below := job.ID(0); ; {
			page, err := a.Jobs(ctx, below, limit)
			if err != nil || len(page) > limit {
				rt.Fatalf("a page of %d: %v", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			below = page[len(page)-1]
		}
		if !slices.Equal(ids, got) {
			rt.Fatalf("want %v, got %v", ids, got)
		}
	})
}

// TestExpiries ensures that marks are listed by rule, oldest first, from their names alone.
func TestExpiries(t *testing.T) {
	a, _ := open(t)
	at := job.TimeOf(time.Date(2026, 3, 9, 23, 59, 0, 0, time.UTC))
	marks := []Expiry{
		NewExpiry(RuleUsual, at, 12, 100), NewExpiry(RuleUsual, at.Add(time.Hour), 7, 0), NewExpiry(RuleUsual, at.Add(40*24*time.Hour), 3, 5),
	}
	for _, e := range append(slices.Clone(marks), NewExpiry(RuleKeep, at, 9, 1)) {
		for range 2 {
			if err := a.PutExpiry(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []Expiry
	if err := a.Expiries(t.Context(), RuleUsual, func(e Expiry) bool { got = append(got, e); return true }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(marks, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := a.RemoveExpiry(t.Context(), marks[0]); err != nil {
		t.Fatal(err)
	}
	first := Expiry{}
	if err := a.Expiries(t.Context(), RuleUsual, func(e Expiry) bool { first = e; return false }); err != nil || first != marks[1] {
		t.Errorf("then the first is %+v, %v", first, err)
	}
}

// TestLaterEndWins ensures that a job's last end is what the archive tells, in whatever order its ends were written, and by
// whatever version, and that all of them go with the job.
func TestLaterEndWins(t *testing.T) {
	a, _ := open(t)
	ctx := t.Context()
	for _, seq := range []int64{0, 9, 12, 5} {
		d := document(7)
		d.Seq, d.RetiredAt = seq, job.Time(seq)
		if err := a.PutJob(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Job(ctx, 7); err != nil || got.Seq != 12 {
		t.Errorf("the archive tells of end %d, %v", got.Seq, err)
	}
	if list, err := a.Entries(ctx, 0, 10); err != nil || len(list) != 1 || list[0].Seq != 12 {
		t.Errorf("listed are %+v, %v", list, err)
	}
	if err := a.RemoveJob(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if list, err := a.Entries(ctx, 0, 10); err != nil || len(list) > 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

// TestIndex ensures that the index tells of the documents that were put into it, and of no other, and that a damaged one tells
// nothing.
func TestIndex(t *testing.T) {
	a, _ := open(t)
	ctx := t.Context()
	for id := range job.ID(4) {
		d := document(id + 998) // in two folders
		d.Seq = 3
		if err := a.PutJob(ctx, d); err != nil {
			t.Fatal(err)
		}
		if id > 0 {
			if err := a.Index(ctx, []Brief{BriefOf(&d)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	known := func() (ids []job.ID) {
		t.Helper()
		list, err := a.Entries(ctx, 0, 10)
		if err != nil || len(list) != 4 {
			t.Fatalf("listed are %+v, %v", list, err)
		}
		for _, e := range list {
			if e.Brief != nil {
				if e.Brief.ID != e.ID || e.Brief.Seq != 3 || e.Brief.Status != job.Failed || e.Brief.Name != "n" || e.Brief.SubmittedAt != 5 {
					t.Errorf("the index tells %+v of job %d", e.Brief, e.ID)
				}
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	if got := known(); !slices.Equal(got, []job.ID{1001, 1000, 999}) {
		t.Errorf("the index knows %v", got)
	}
	if err := a.bucket.WriteAll(ctx, indexObject(jobFolder(1)), []byte("damaged"), nil); err != nil {
		t.Fatal(err)
	}
	if got := known(); !slices.Equal(got, []job.ID{999}) {
		t.Errorf("with one damaged it knows %v", got)
	}
}

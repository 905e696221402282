package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const day = 24 * time.Hour

// attic is a store and an archive with jobs that have ended, and no worker.
type attic struct {
	t     *testing.T
	ctx   context.Context
	store *store.Store
	files *archive.Archive
	dir   string
	now   job.Time
}

func newAttic(t *testing.T) *attic {
	t.Helper()
	a := &attic{t: t, ctx: t.Context(), dir: t.TempDir()}
	var err error
	if a.store, err = store.Found(a.ctx, redistest.Start(t).Client(t), store.Deployment{ID: "test", Shards: 4}); err != nil {
		t.Fatal(err)
	}
	if a.files, err = archive.Open(a.ctx, "file://"+a.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.files.Close() })
	if a.now, err = a.store.Now(a.ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *attic) ok(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// ended submits a job, gives it a log and a live tail, and ends it, as its record says some time ago.
func (a *attic) ended(ago, ownRetention time.Duration) job.ID {
	a.t.Helper()
	req := job.Request{Name: "old", User: "ada", Tasks: []job.TaskRequest{{Run: "true", Secrets: []string{"TOKEN"}}}, LogRetention: ownRetention}
	ids, err := a.store.Submit(a.ctx, store.Submission{Request: req, Sealed: []byte("sealed")})
	a.ok(err)
	id := ids[0]
	a.ok(a.files.PutLog(a.ctx, archive.LogKey{Job: id, Attempt: 1}, 0, []byte("hello\n")))
	a.ok(a.store.TailAppend(a.ctx, id, 0, 1, 0, []byte("hello\n")))
	a.end(id, ago)
	return id
}

func (a *attic) end(id job.ID, ago time.Duration) {
	a.t.Helper()
	rec, err := a.store.Load(a.ctx, id)
	a.ok(err)
	c, err := a.store.Begin(a.ctx, id, rec.Step, rec.Dispatch, "token", time.Minute)
	a.ok(err)
	next := c.Clone()
	next.Step, next.Tasks[0].Status, next.Tasks[0].EndedAt = job.StepDone, job.Failed, a.now.Add(-ago)
	next.Past = []job.Attempt{{Number: 1, Phase: job.PhaseGone}}
	next.Events = []job.Event{{At: next.Tasks[0].EndedAt, Kind: "status", To: string(job.Failed)}}
	errs, err := a.store.Commit(a.ctx, a.store.ShardOf(id), store.Commit{From: &c, Next: next})
	a.ok(errors.Join(append(errs, err)...))
	for from := a.time(); a.time() < from.Add(2*time.Millisecond); { // so that it has ended before any time is over
	}
}

func (a *attic) time() job.Time {
	a.t.Helper()
	now, err := a.store.Now(a.ctx)
	a.ok(err)
	return now
}

// worker is one with a retention that does nothing by itself.
func (a *attic) worker(r Retention, points func(string)) *Worker {
	return New(Config{
		Name: "w", Store: a.store, Queue: redis.NewClient(&redis.Options{}), Archive: a.files, Log: zerolog.Nop(), Retention: r, Points: points,
	})
}

// tick runs retention until it has nothing more to do.
func (a *attic) tick(r Retention) {
	a.t.Helper()
	w := a.worker(r, nil)
	for range 100 {
		every, err := w.retention(a.ctx)
		a.ok(err)
		if every == retireEvery {
			return
		}
	}
	a.t.Fatal("it never has nothing to do")
}

func (a *attic) inStore(id job.ID) bool {
	a.t.Helper()
	_, err := a.store.Load(a.ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		a.t.Fatal(err)
	}
	return err == nil
}

func (a *attic) hasLogs(id job.ID) bool {
	a.t.Helper()
	logs, err := a.files.Logs(a.ctx, &job.Head{ID: id}) // as ended puts them there
	a.ok(err)
	return len(logs) > 0
}

// keysOf are the keys in Redis that name a job.
func (a *attic) keysOf(id job.ID) []string {
	a.t.Helper()
	var keys []string
	for _, kind := range []string{"job", "req", "sec", "ev", "past", "lease", "tail"} {
		for _, rest := range []string{"", ":*"} {
			some, err := a.store.Redis().Keys(a.ctx, fmt.Sprintf("ol:*:%s:%d%s", kind, id, rest)).Result()
			a.ok(err)
			keys = append(keys, some...)
		}
	}
	slices.Sort(keys)
	return keys
}

var soon = Retention{Jobs: time.Millisecond}

// TestRetire ensures that a job that leaves Redis leaves nothing behind there, and that all of it but its secrets is in the
// archive.
func TestRetire(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(time.Hour, 0)
	live, err := a.store.Submit(a.ctx, store.Submission{Request: job.Request{Name: "new", Tasks: []job.TaskRequest{{Run: "true"}}}})
	a.ok(err)
	before, err := a.store.LoadAll(a.ctx, id)
	a.ok(err)
	a.tick(soon)
	if keys := a.keysOf(id); len(keys) > 0 || a.inStore(id) {
		t.Errorf("left behind in Redis: %v", keys)
	}
	if !a.inStore(live[0]) {
		t.Error("a live job was taken")
	}
	counts, err := a.store.Statuses(a.ctx)
	a.ok(err)
	if counts[job.Failed] != 0 || counts[job.Pending] != 1 {
		t.Errorf("the counts are %v", counts)
	}
	doc, err := a.files.Job(a.ctx, id)
	a.ok(err)
	rec := doc.Record()
	if rec.Status() != job.Failed || rec.Name != "old" || len(doc.Events) != len(before.Events) || len(doc.Past) != 1 || doc.Request.Tasks[0].Run != "true" {
		t.Errorf("in the archive is %+v", doc)
	}
	if !a.hasLogs(id) {
		t.Error("its logs are gone")
	}
}

// TestG1_RetentionCutAnywhere ensures that a worker that dies anywhere while it moves a job to the archive loses nothing of
// it: the job is in Redis, or whole in the archive, and the next tick goes on.
func TestG1_RetentionCutAnywhere(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"retire: document", "retire: mark", "retire: gone"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := newAttic(t)
			id := a.ended(time.Hour, 0)
			ctx, cut := context.WithCancel(a.ctx)
			_, _ = a.worker(soon, func(at string) {
				if at == point {
					cut()
				}
			}).retention(ctx)
			if ctx.Err() == nil {
				t.Fatal("that point was not passed")
			}
			if _, err := a.files.Job(a.ctx, id); !a.inStore(id) && err != nil {
				t.Fatalf("the job is lost: %v", err)
			}
			a.tick(soon)
			if _, err := a.files.Job(a.ctx, id); err != nil || a.inStore(id) {
				t.Errorf("the next tick did not end it: in Redis %v, archive: %v", a.inStore(id), err)
			}
		})
	}
}

// TestG5_RetentionAndResume ensures that a job that is resumed while it is moved to the archive stays in Redis and goes
// on, that what was written of it before does no harm, and that its new end is what the archive holds in the end.
func TestG5_RetentionAndResume(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(40*day, 0)
	w := a.worker(soon, func(at string) {
		if at == "retire: mark" {
			_, err := a.store.Resume(a.ctx, id, "ada")
			a.ok(err)
		}
	})
	_, err := w.retention(a.ctx)
	a.ok(err)
	if rec, err := a.store.Load(a.ctx, id); err != nil || rec.Ended() {
		t.Fatalf("the resumed job is %v, %v", rec.Status(), err)
	}
	a.tick(Retention{Jobs: time.Millisecond, Logs: 30 * day}) // the mark is of its first end
	if !a.hasLogs(id) {
		t.Fatal("the logs of a live job were removed")
	}
	a.end(id, day)
	a.tick(Retention{Jobs: time.Millisecond, Logs: 30 * day})
	doc, err := a.files.Job(a.ctx, id)
	if err != nil || doc.EndedAt() != a.now.Add(-day) || a.inStore(id) || !a.hasLogs(id) {
		t.Errorf("after its second end: %+v, %v", doc, err)
	}
}

// TestG1_SlowRetentionLosesNoSecondEnd ensures that who has read a job before it was resumed, and is slow, does not write that
// over what the archive holds of its second end.
func TestG1_SlowRetentionLosesNoSecondEnd(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(40*day, 0)
	slow := a.worker(soon, func(at string) {
		if at != "retire: read" {
			return
		}
		_, err := a.store.Resume(a.ctx, id, "ada")
		a.ok(err)
		a.end(id, day)
		a.tick(soon) // of another worker, which takes the slow one for dead
	})
	_, err := slow.retention(a.ctx)
	a.ok(err)
	a.tick(soon)
	if doc, err := a.files.Job(a.ctx, id); err != nil || a.inStore(id) || doc.EndedAt() != a.now.Add(-day) {
		t.Errorf("in Redis %v, in the archive it ended at %s, %v", a.inStore(id), doc.EndedAt().Std(), err)
	}
}

// TestOneKeepsNoOtherBack ensures that a job, a document and logs that cannot be moved or removed are told of, and keep no
// others from being.
func TestOneKeepsNoOtherBack(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	keep := Retention{Jobs: time.Millisecond, Logs: 30 * day, Archive: 365 * day}
	bad, good, old := a.ended(40*day, 0), a.ended(35*day, 0), a.ended(400*day, 0)
	a.tick(soon)
	var files []string
	a.ok(filepath.WalkDir(filepath.Join(a.dir, "jobs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	slices.Sort(files) // newest first
	a.ok(os.WriteFile(files[len(files)-1-int(bad-1)], []byte("damaged"), 0o600))
	_, err := a.worker(keep, nil).retention(a.ctx)
	if err == nil {
		t.Error("the damaged document is not told of")
	}
	if !a.hasLogs(bad) || a.hasLogs(good) || a.hasLogs(old) {
		t.Errorf("logs of the damaged one %v, of the others %v, %v", a.hasLogs(bad), a.hasLogs(good), a.hasLogs(old))
	}
	if _, err := a.files.Job(a.ctx, old); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("the old document: %v", err)
	}

	stuck, free := a.ended(time.Hour, 0), a.ended(time.Hour, 0)
	rec, err := a.store.Load(a.ctx, stuck)
	a.ok(err)
	name := filepath.Join(filepath.Dir(files[0]), fmt.Sprintf("%019d-%019d.json.zst", math.MaxInt64-int64(stuck), math.MaxInt64-rec.Seq))
	a.ok(os.MkdirAll(filepath.Join(name, "in the way"), 0o700))
	for range 2 {
		if _, err := a.worker(soon, nil).retention(a.ctx); err == nil {
			t.Error("the job that cannot be moved is not told of")
		}
	}
	if !a.inStore(stuck) || a.inStore(free) {
		t.Errorf("in Redis is the one that cannot be moved: %v, the other: %v", a.inStore(stuck), a.inStore(free))
	}
}

// TestDocumentsGoBehindOneThatStays ensures that a job of old that ended late keeps no documents of later jobs.
func TestDocumentsGoBehindOneThatStays(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	long := a.ended(day, 0)
	a.ok(a.store.Redis().Set(a.ctx, "ol:{d}:id", 5000, 0).Err()) // so that the next one is in another folder
	old := a.ended(400*day, 0)
	a.tick(Retention{Jobs: time.Millisecond, Archive: 365 * day})
	if _, err := a.files.Job(a.ctx, long); err != nil {
		t.Errorf("the one that stays: %v", err)
	}
	if _, err := a.files.Job(a.ctx, old); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("the one behind it: %v", err)
	}
}

// TestNoticesGo ensures that no notice is left of a job that the archive has forgotten.
func TestNoticesGo(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(400*day, 0)
	a.tick(Retention{Jobs: time.Millisecond, Archive: 30 * day})
	a.tick(Retention{Logs: 90 * day})
	if n, err := a.files.Notice(a.ctx, id); a.hasLogs(id) || !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("its logs are there: %v, notice %v, %v", a.hasLogs(id), n, err)
	}
}

// TestRetiredAtOnce ensures that a job that another worker has just taken is no damage.
func TestRetiredAtOnce(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(time.Hour, 0)
	a.tick(soon)
	index := fmt.Sprintf("ol:{s%02d}:ended", a.store.ShardOf(id))
	a.ok(a.store.Redis().ZAdd(a.ctx, index, redis.Z{Score: 1, Member: int64(id)}).Err()) // as it was read before
	a.tick(soon)
	if n, err := a.store.Redis().ZCard(a.ctx, index).Result(); err != nil || n != 0 {
		t.Errorf("%d are to be retired, %v", n, err)
	}
}

// TestRetentionCount ensures that of more ended jobs than may stay, those that ended first go.
func TestRetentionCount(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	var ids []job.ID
	for range 7 {
		ids = append(ids, a.ended(0, 0))
	}
	a.tick(Retention{Count: 3})
	for i, id := range ids {
		if stays := i >= 4; a.inStore(id) != stays {
			t.Errorf("job %d is in Redis: %v", id, !stays)
		}
	}
}

// TestG10_RetentionWithoutArchive ensures that an archive that takes nothing is a pause: every job stays in Redis until it is
// mended, and that it is told.
func TestG10_RetentionWithoutArchive(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	id := a.ended(time.Hour, 0)
	a.ok(os.WriteFile(filepath.Join(a.dir, "jobs"), nil, 0o600)) // where the folder of documents should be
	w := a.worker(soon, nil)
	if every, err := w.retention(a.ctx); err == nil || every != retireEvery {
		t.Errorf("next in %s, %v", every, err)
	}
	if !a.inStore(id) {
		t.Fatal("the job is lost")
	}
	a.ok(os.Remove(filepath.Join(a.dir, "jobs")))
	a.tick(soon)
	if a.inStore(id) {
		t.Error("it was not tried again")
	}
}

// TestRetentionOfDamaged ensures that a job that cannot be read stays, and keeps no other back.
func TestRetentionOfDamaged(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	bad, good := a.ended(time.Hour, 0), a.ended(time.Hour, 0)
	keys := a.keysOf(bad)
	a.ok(a.store.Redis().HSet(a.ctx, fmt.Sprintf("ol:{s%02d}:job:%d", a.store.ShardOf(bad), bad), "head", "{").Err())
	_, err := a.worker(soon, nil).retention(a.ctx)
	a.ok(err)
	if a.inStore(good) {
		t.Error("the other one is still there")
	}
	if left := a.keysOf(bad); !slices.Equal(keys, left) {
		t.Errorf("of the damaged one's %v are left %v", keys, left)
	}
}

// TestG11_LogsGoWhenTheirTimeIsOver ensures that logs are kept for as long as the deployment says, or the job itself, and leave
// a notice in their place.
func TestG11_LogsGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ended  time.Duration // ago
		own    time.Duration
		keep   time.Duration
		notice string // "" if they stay
	}{
		{"too old", 31 * day, 0, 30 * day, "30 days after its end"},
		{"young enough", 29 * day, 0, 30 * day, ""},
		{"no limit", 500 * day, 0, 0, ""},
		{"own, shorter", 3 * day, 2 * day, 30 * day, "2 days after its end"},
		{"own, longer", 40 * day, 50 * day, 30 * day, ""},
		{"own, for ever", 500 * day, -1, 30 * day, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAttic(t)
			id := a.ended(c.ended, c.own)
			a.tick(Retention{Jobs: time.Millisecond, Logs: c.keep})
			n, err := a.files.Notice(a.ctx, id)
			if stays := c.notice == ""; a.hasLogs(id) != stays || stays != errors.Is(err, archive.ErrNotFound) {
				t.Fatalf("the logs are there: %v, notice %v, %v", a.hasLogs(id), n, err)
			}
			if want := fmt.Sprintf("[outlast: the logs of this job were removed on %s, %s]", a.now.Std().UTC().Format(time.DateOnly), c.notice); c.notice != "" && n.String() != want {
				t.Errorf("got %q, want %q", n, want)
			}
			if _, err := a.files.Job(a.ctx, id); err != nil {
				t.Errorf("the document is gone with the logs: %v", err)
			}
		})
	}
}

// TestLogsGoForTheirSize ensures that of too many bytes of logs those of the jobs that ended first go, and that a cut
// between notice and logs is mended.
func TestLogsGoForTheirSize(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	older, forever, newer := a.ended(9*day, 0), a.ended(10*day, -1), a.ended(day, 0)
	a.tick(soon)
	size, err := a.files.LogBytes(a.ctx, newer)
	a.ok(err)
	ctx, cut := context.WithCancel(a.ctx)
	_, _ = a.worker(Retention{LogBytes: 2 * size}, func(at string) {
		if at == "logs: notice" {
			cut()
		}
	}).retention(ctx)
	a.tick(Retention{LogBytes: 2 * size})
	if a.hasLogs(older) || !a.hasLogs(newer) || !a.hasLogs(forever) {
		t.Errorf("older %v, newer %v, for ever %v", a.hasLogs(older), a.hasLogs(newer), a.hasLogs(forever))
	}
	if n, err := a.files.Notice(a.ctx, older); err != nil || n.Limit != 2*size {
		t.Errorf("the notice is %+v, %v", n, err)
	}
}

// TestDocumentsGo ensures that the archive forgets jobs after the time that is set for it, and no others.
func TestDocumentsGo(t *testing.T) {
	t.Parallel()
	a := newAttic(t)
	old, young := a.ended(400*day, 0), a.ended(300*day, 0)
	a.tick(Retention{Jobs: time.Millisecond, Archive: 365 * day})
	if _, err := a.files.Job(a.ctx, old); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := a.files.Job(a.ctx, young); err != nil {
		t.Errorf("the young one: %v", err)
	}
}

package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// done is a job of which nothing is left, with a status; its tasks after the first never began.
func (b *bench) done(tb fataler, req job.Request, status job.Status) job.ID {
	tb.Helper()
	return b.doneBy(tb, req, status).ID
}

// doneBy is done, and returns the claim of the act that ended it, which its driver may still think it holds.
func (b *bench) doneBy(tb fataler, req job.Request, status job.Status) Claimed {
	tb.Helper()
	id := must[[]job.ID](tb)(b.Submit(b.ctx, Submission{Request: req}))[0]
	c := must[Claimed](tb)(b.Begin(b.ctx, id, job.StepLaunch, 1, "first life", lease))
	next := c.Clone()
	next.Step, next.Tasks[0].Attempts = job.StepDone, 1
	for i := range next.Tasks {
		next.Tasks[i].Status = job.Cancelled
	}
	next.Tasks[0].Status = status
	old := c
	b.commit(tb, &c, next, false)
	return old
}

// TestResume ensures that a resumed job is indexed and counted as a live one, is due at once, and can be begun and driven.
func TestResume(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.done(t, typical(2), job.Failed)
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{WatchChain(b.ShardOf(id))}, grace))
		b.sound(t, []job.ID{id})
		woken := must[Woken](t)(b.Resume(b.ctx, id, "ada"))
		if want := (Woken{Shard: b.ShardOf(id), Epoch: 1, Live: true, Known: true}); woken != want {
			t.Errorf("woken %+v, want %+v", woken, want)
		}
		b.sound(t, []job.ID{id})
		rec := b.load(t, id)
		if rec.Status() != job.Pending || rec.Step != job.StepLaunch || rec.Tasks[0].Attempts != 1 || !b.isDue(t, id) {
			t.Errorf("it is %s at step %s, due %t: %+v", rec.Status(), rec.Step, b.isDue(t, id), rec.Tasks)
		}
		due := must[Due](t)(b.Claim(b.ctx, b.ShardOf(id), 10, 0, lease, grace))
		want := []Overdue{{Act: Act{ID: id, Step: job.StepLaunch, N: 2}, Ran: 1}}
		if diff := cmp.Diff(want, due.Acts); diff != "" {
			t.Fatalf("the watch finds (-want +got):\n%s", diff)
		}
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 2, "second life", lease))
		next := c.Clone()
		next.Step, next.Tasks[0].Status = job.StepWatch, job.Running
		b.commit(t, &c, next, false)
		events := must[[]job.Event](t)(b.Events(b.ctx, id))
		if len(events) != 3 || events[1].Cause.Code != job.CodeResumed || events[1].From != "FAILED" {
			t.Errorf("the history is %+v", events)
		}
	})
}

// TestG5_NothingOfTheFirstLifeTouchesTheSecond ensures that a driver, an act and a heartbeat of the first life, however late,
// are refused after the job was resumed, and so is a cancel that was meant for the first life.
func TestG5_NothingOfTheFirstLifeTouchesTheSecond(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		old := b.doneBy(t, typical(1), job.Cancelled)
		id := old.ID
		if w := must[Woken](t)(b.Cancel(b.ctx, id, "eve", 0)); w.Live {
			t.Error("a job that is done took a cancel")
		}
		must[Woken](t)(b.Resume(b.ctx, id, "ada"))
		last := old.Clone() // the very commit that ended the first life, sent again
		last.Step, last.Tasks[0].Status = job.StepDone, job.Cancelled
		b.unchanged(t, "the first life", func() {
			if err := b.tryCommit(t, &old, last, false); !errors.Is(err, ErrStale) {
				t.Errorf("its last commit gave %v", err)
			}
			if err := b.tryCommit(t, &old, old.Clone(), true); !errors.Is(err, ErrStale) {
				t.Errorf("another commit gave %v", err)
			}
			if _, err := b.Beat(b.ctx, id, old.Fence, lease); !errors.Is(err, ErrStale) {
				t.Errorf("its beat gave %v", err)
			}
			for step, n := range map[job.Step]int64{job.StepLaunch: 1, job.StepCleanup: 1} {
				if _, err := b.Begin(b.ctx, id, step, n, "late", lease); !errors.Is(err, ErrStale) {
					t.Errorf("its act %s %d gave %v", step, n, err)
				}
			}
			if n := must[int64](t)(b.Redispatch(b.ctx, Overdue{Act: Act{ID: id, Step: job.StepLaunch, N: 1}}, grace)); n != 0 {
				t.Errorf("its act was made again: %d", n)
			}
			must[int64](t)(b.Handover(b.ctx, &old))
		})
		if rec := b.load(t, id); rec.Cancel != nil {
			t.Errorf("the second life has the cancel %+v", rec.Cancel)
		}
	})
}

// TestResumeOnce ensures that of many who resume a job at the same time one does, and the others learn that it runs.
func TestResumeOnce(t *testing.T) {
	b := newBench(t, 2)
	id := b.done(t, typical(1), job.Failed)
	var won, refused atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, err := b.Resume(b.ctx, id, "ada")
			var no *job.NotResumableError
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &no):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || refused.Load() != 15 {
		t.Errorf("%d won, %d were refused", won.Load(), refused.Load())
	}
	if n := len(must[[]job.Event](t)(b.Events(b.ctx, id))); n != 2 {
		t.Errorf("%d events", n)
	}
	b.sound(t, []job.ID{id})
}

// TestResumeTwice ensures that a resume whose reply was lost is carried out once, and that its caller learns that it was.
func TestResumeTwice(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		must[Woken](t)(b.Resume(b.ctx, b.done(t, typical(1), job.Failed), "ada")) // so that the script is known
		id := b.done(t, typical(1), job.Failed)
		var first map[string]any
		lost := &lostReplies{script: true, before: func() { first = b.dump(t) }}
		b.rdb.AddHook(lost)
		lost.on.Store(true)
		if w := must[Woken](t)(b.Resume(b.ctx, id, "ada")); !w.Live || lost.on.Load() {
			t.Errorf("it was refused: %+v", w)
		}
		if diff := cmp.Diff(first, b.dump(t)); diff != "" {
			t.Errorf("the second run changed the store:\n%s", diff)
		}
	})
}

// TestResumeNeedsTheSecrets ensures that a job with secrets goes again with them, and is refused if they are gone.
func TestResumeNeedsTheSecrets(t *testing.T) {
	b := newBench(t, 2)
	req := typical(1)
	req.Tasks[0].Secrets = []string{"TOKEN"}
	id := b.done(t, req, job.Failed)
	_, err := b.Resume(b.ctx, id, "ada")
	var no *job.NotResumableError
	if !errors.As(err, &no) {
		t.Errorf("without its secrets: %v", err)
	}
	b.must(t, b.rdb.Set(b.ctx, b.keys.of(id, "sec"), "sealed", 0).Err())
	must[Woken](t)(b.Resume(b.ctx, id, "ada"))
	if got := must[[]byte](t)(b.Secrets(b.ctx, id)); string(got) != "sealed" {
		t.Errorf("it goes again with %q", got)
	}
}

// TestResumeOfNothing ensures that a job which is not there is not made.
func TestResumeOfNothing(t *testing.T) {
	b := newBench(t, 2)
	b.unchanged(t, "it", func() {
		if _, err := b.Resume(b.ctx, 7, "ada"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

// TestLimitIsLookedAt ensures that the watch looks at a job when a limit of the user is reached, not only after its grace,
// and says so: one that stands in line for a slot is driven by nobody else.
func TestLimitIsLookedAt(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		req := typical(1)
		req.Tasks[0].MaxWait = 5 * time.Minute
		id := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: req}))[0]
		look := func() []Overdue {
			return must[Due](t)(b.Claim(b.ctx, b.ShardOf(id), 10, 0, lease, grace)).Acts
		}
		b.must(t, b.rdb.ZAdd(b.ctx, b.keys.due(b.ShardOf(id)), zNow(id)).Err())
		if got := look(); len(got) != 1 || got[0].Over {
			t.Fatalf("at first: %+v", got)
		}
		if due := b.load(t, id).Due.Sub(must[job.Time](t)(b.Now(b.ctx))); due > 5*time.Minute {
			t.Errorf("it is looked at again in %s, after its limit", due)
		}
		b.must(t, b.rdb.HSet(b.ctx, b.keys.of(id, "job"), "limit", 1).Err()) // the time is over
		b.must(t, b.rdb.ZAdd(b.ctx, b.keys.due(b.ShardOf(id)), zNow(id)).Err())
		if got := look(); len(got) != 1 || !got[0].Over {
			t.Fatalf("when its time is over: %+v", got)
		}
	})
}

// zNow is an entry of the due index that is due.
func zNow(id job.ID) redis.Z { return redis.Z{Score: 1, Member: int64(id)} }

// TestG5_ARepeatedCancelSparesTheSecondLife ensures that a cancel whose reply was lost, and which go-redis sends again when the
// job was cancelled and resumed meanwhile, cancels nothing; and that a new one does.
func TestG5_ARepeatedCancelSparesTheSecondLife(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c, next := b.ending(t)
		next.Tasks[0].Status, next.Step = job.Failed, job.StepDone
		b.must(t, b.tryCommit(t, &c, next, false))
		must[Woken](t)(b.Resume(b.ctx, c.ID, "ann"))
		late := must[Woken](t)(b.wakeIn(b.ctx, "", c.ID, wish{"cancel", mustJSON(job.Cancel{At: 1}), "once"}))
		if late.Live || b.load(t, c.ID).Cancel != nil {
			t.Errorf("the cancel of the first life gave %+v: %+v", late, b.load(t, c.ID).Cancel)
		}
		if w := must[Woken](t)(b.Cancel(b.ctx, c.ID, "bob", 0)); !w.Live || b.load(t, c.ID).Cancel == nil {
			t.Errorf("a cancel of the second life gave %+v", w)
		}
	})
}

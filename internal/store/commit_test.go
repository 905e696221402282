package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestCommitGuard ensures, over all combinations, that a commit is written only with the present fence, the next sequence
// number and the statuses it was decided from, and that a refused one changes nothing at all.
func TestCommitGuard(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		for _, fence := range []int64{-1, 0, 1} {
			for _, seq := range []int64{-1, 0, 1} {
				for _, status := range []job.Status{job.Running, job.Recovering} {
					for _, keep := range []bool{false, true} {
						t.Run(fmt.Sprintf("fence%+d seq%+d %s keep=%t", fence, seq, status, keep), func(t *testing.T) {
							b.again(t)
							c, next := b.ending(t)
							c.Fence, c.Seq, c.Tasks[0].Status = c.Fence+fence, c.Seq+seq, status
							next.Step = job.StepDone
							before := b.dump(t)
							err := b.tryCommit(t, &c, next, keep)
							switch {
							case fence == 0 && seq == 0 && status == job.Running:
								if err != nil || b.load(t, c.ID).Tasks[0].Status != job.Succeeded {
									t.Errorf("the right commit was refused: %v", err)
								}
								return
							case fence == 0 && seq == -1: // this very commit was written before
								if err != nil {
									t.Errorf("a repeated commit was refused: %v", err)
								}
							case !errors.Is(err, ErrStale):
								t.Errorf("a wrong commit gave %v", err)
							}
							if diff := cmp.Diff(before, b.dump(t)); diff != "" {
								t.Errorf("it changed the store:\n%s", diff)
							}
						})
					}
				}
			}
		}
	})
}

// TestCommitOfManyIsEachItsOwn ensures that one refused commit of a batch does not keep the others from being written.
func TestCommitOfManyIsEachItsOwn(t *testing.T) {
	b := newBench(t, 1)
	var commits []Commit
	for range 3 {
		c, next := b.ending(t)
		commits = append(commits, Commit{From: &c, Next: next})
	}
	commits[1].From.Fence--
	got := must[[]error](t)(b.Commit(b.ctx, 0, commits...))
	if got[0] != nil || !errors.Is(got[1], ErrStale) || got[2] != nil {
		t.Errorf("got %v, wanted only the second to be stale", got)
	}
}

// TestG2_AForgottenClaimDrivesNothing ensures that of two drivers, whose claims a Redis has given from the same record since it
// lost the first of them with its last second, only the second one commits.
func TestG2_AForgottenClaimDrivesNothing(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.watched(t)
		before := must[map[string]string](t)(b.rdb.HGetAll(b.ctx, b.keys.of(id, "job")).Result())
		due := must[float64](t)(b.rdb.ZScore(b.ctx, b.keys.due(b.keys.shardOf(id)), fmt.Sprint(int64(id))).Result())
		first := b.claim(t, id)
		b.must(t, b.rdb.HSet(b.ctx, b.keys.of(id, "job"), before).Err()) // a claim only changes fields that were there
		b.must(t, b.rdb.ZAdd(b.ctx, b.keys.due(b.keys.shardOf(id)), redis.Z{Score: due, Member: int64(id)}).Err())
		second := b.claim(t, id)
		next := first.Clone()
		next.Look.Every++
		b.unchanged(t, "the driver that was forgotten", func() {
			if err := b.tryCommit(t, &first, next, false); !errors.Is(err, ErrStale) {
				t.Errorf("its commit gave %v", err)
			}
			if _, err := b.Beat(b.ctx, id, first.Fence, lease); !errors.Is(err, ErrStale) {
				t.Errorf("its heartbeat gave %v", err)
			}
		})
		b.must(t, b.tryCommit(t, &second, second.Clone(), false))
	})
}

// TestG2OneDriver ensures that a driver whose claim ran out and was taken over can neither commit, beat nor hand over.
func TestG2OneDriver(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.watched(t)
		old := b.claim(t, id)
		b.pass(t, 2*lease)
		owner := b.claim(t, id)
		if owner.Fence <= old.Fence {
			t.Errorf("the fence went from %d to %d", old.Fence, owner.Fence)
		}
		b.unchanged(t, "the old driver", func() {
			if err := b.tryCommit(t, &old, old.Clone(), true); !errors.Is(err, ErrStale) {
				t.Errorf("its commit gave %v", err)
			}
			if _, err := b.Beat(b.ctx, id, old.Fence, lease); !errors.Is(err, ErrStale) {
				t.Errorf("its beat gave %v", err)
			}
			must[int64](t)(b.Handover(b.ctx, &old))
		})
		b.commit(t, &owner, owner.Clone(), false)
	})
}

// TestG2GivenBack ensures that a driver cannot go on after it gave its claim back, though nobody has taken the job since.
func TestG2GivenBack(t *testing.T) {
	b := newBench(t, 2)
	c := b.claim(t, b.watched(t))
	b.commit(t, &c, c.Clone(), false)
	b.unchanged(t, "a driver without a claim", func() {
		if err := b.tryCommit(t, &c, c.Clone(), true); !errors.Is(err, ErrStale) {
			t.Errorf("its commit gave %v", err)
		}
		must[int64](t)(b.Handover(b.ctx, &c))
	})
}

// TestG1AbandonedClaim ensures that a claim nobody commits becomes due by itself: for a look, and for an act.
func TestG1AbandonedClaim(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		watched, launched := b.watched(t), b.submit(t, 1)[0]
		b.claim(t, watched)
		must[Claimed](t)(b.Begin(b.ctx, launched, job.StepLaunch, 1, "dies", lease))
		for _, id := range []job.ID{watched, launched} {
			if b.isDue(t, id) {
				t.Errorf("job %d is due while it is driven", id)
			}
		}
		b.pass(t, 2*lease)
		b.claim(t, watched)
		due := must[Due](t)(b.Claim(b.ctx, b.ShardOf(launched), 10, 0, lease, grace))
		want := []Overdue{{Act: Act{ID: launched, Step: job.StepLaunch, N: 1}, Ran: 1}}
		if diff := cmp.Diff(want, due.Acts); diff != "" {
			t.Errorf("overdue acts (-want +got):\n%s", diff)
		}
		n := must[int64](t)(b.Redispatch(b.ctx, due.Acts[0], grace))
		if _, err := b.Begin(b.ctx, launched, job.StepLaunch, 1, "dies", lease); !errors.Is(err, ErrStale) {
			t.Errorf("the dead driver's act was begun again: %v", err)
		}
		must[Claimed](t)(b.Begin(b.ctx, launched, job.StepLaunch, n, "lives", lease))
	})
}

// TestWakeDuringClaim ensures that a wake while a job is driven makes it due when the claim is given back, also if
// commits in between kept the claim: what it was for may be older than what the driver saw last.
func TestWakeDuringClaim(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		for kept := range 3 {
			c := b.claim(t, b.watched(t))
			must[Woken](t)(b.Wake(b.ctx, c.ID))
			for range kept {
				b.commit(t, &c, c.Clone(), true)
			}
			if b.isDue(t, c.ID) {
				t.Error("the wake took the job from its driver")
			}
			next := c.Clone()
			next.Due = c.Now.Add(time.Hour)
			b.commit(t, &c, next, false)
			if !b.isDue(t, c.ID) {
				t.Errorf("the wake was lost after %d commits that kept the claim", kept)
			}
			c = b.claim(t, c.ID)
			b.commit(t, &c, next, false)
			if b.isDue(t, c.ID) {
				t.Error("the same wake counted twice")
			}
		}
	})
}

// TestG7CancelDuringClaim ensures that a driver sees a cancel at its next commit and at its next beat.
//
// skypilot #4637: what a controller wrote at the same time took the cancel away.
func TestG7CancelDuringClaim(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.submit(t, 1)[0]
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
		if must[bool](t)(b.Beat(b.ctx, id, c.Fence, lease)) {
			t.Error("cancelled before the cancel")
		}
		must[Woken](t)(b.Cancel(b.ctx, id, "ada", time.Second))
		if !must[bool](t)(b.Beat(b.ctx, id, c.Fence, lease)) {
			t.Error("the beat did not tell of the cancel")
		}
		b.commit(t, &c, c.Clone(), true)
		if c.Cancel == nil || c.Cancel.By != "ada" || c.Cancel.Grace != time.Second {
			t.Errorf("the commit did not tell of the cancel: %+v", c.Cancel)
		}
	})
}

// TestNewerWishStays ensures that a driver that has done with a wish drops only the one it read.
func TestNewerWishStays(t *testing.T) {
	b := newBench(t, 2)
	id := b.watched(t)
	must[Woken](t)(b.Preempt(b.ctx, id, time.Second))
	c := b.claim(t, id)
	must[Woken](t)(b.Preempt(b.ctx, id, time.Minute))
	next := c.Clone()
	next.Preempt = nil
	b.commit(t, &c, next, true)
	if c.Preempt == nil || c.Preempt.Notice != time.Minute {
		t.Errorf("the second wish is %+v", c.Preempt)
	}
	next = c.Clone()
	next.Preempt = nil
	b.commit(t, &c, next, false)
	if got := b.load(t, id).Preempt; got != nil {
		t.Errorf("the wish is still there: %+v", got)
	}
}

// TestHistoryIsBounded ensures that a job that recovers for ever does not grow for ever.
func TestHistoryIsBounded(t *testing.T) {
	b := newBench(t, 1)
	c := b.claim(t, b.watched(t))
	for range 30 {
		next := c.Clone()
		for range 10 {
			next.Events = append(next.Events, job.Event{At: c.Now, Kind: "note", Attempt: int(c.Seq)})
			next.Past = append(next.Past, job.Attempt{Number: int(c.Seq)})
		}
		b.commit(t, &c, next, true)
	}
	events, past := must[[]job.Event](t)(b.Events(b.ctx, c.ID)), must[[]job.Attempt](t)(b.Past(b.ctx, c.ID))
	if len(events) != 1+200 || len(past) != 100 { // the submission is always told
		t.Errorf("%d events and %d attempts are kept", len(events), len(past))
	}
	if last := int(c.Seq) - 1; events[len(events)-1].Attempt != last || past[len(past)-1].Number != last {
		t.Error("the latest ones are missing")
	}
}

// TestG3_ACommitTellsWhenItBeganToClose ensures that the record tells when the decision to close an attempt was written, however
// late that was, for as long as the attempt is being closed.
func TestG3_ACommitTellsWhenItBeganToClose(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.submit(t, 1)[0]
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
		b.commit(t, &c, running(c.Record), true)
		if c.Shut != 0 {
			t.Errorf("closed at %d, and runs", c.Shut)
		}
		next := c.Clone()
		next.Live[0].Phase, next.Live[0].ClosingAt = job.PhaseClosing, c.Now.Add(-time.Hour)
		before := must[job.Time](t)(b.Now(b.ctx))
		b.commit(t, &c, next, true)
		first := b.load(t, id).Shut
		if first < before || first != c.Shut {
			t.Errorf("closed at %d, the claim says %d, want at least %d", first, c.Shut, before)
		}
		next = c.Clone()
		next.Live[0].Saved = true
		b.commit(t, &c, next, true)
		if got := b.load(t, id).Shut; got != first {
			t.Errorf("a later commit has changed it from %d to %d", first, got)
		}
		next = c.Clone()
		next.Live = nil
		b.commit(t, &c, next, false)
		if got := b.load(t, id).Shut; got != 0 {
			t.Errorf("nothing is being closed, and it was at %d", got)
		}
	})
}

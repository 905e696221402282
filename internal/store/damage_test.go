package store

import (
	"errors"
	"strconv"
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestDamagedRecord ensures, for each way in which a record can be damaged: it is told about by whoever meets it, it stays
// in the index but is not met again at once, and every other job of its shard goes on.
//
// karpenter-provider-gcp #616: one bad record ended the scan of all.
func TestDamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(*bench, string) error{
		"head is no JSON": func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "head", "{").Err() },
		"head of another job": func(b *bench, key string) error {
			return b.rdb.HSet(b.ctx, key, "head", `{"id":99,"tasks":[{}]}`).Err()
		},
		"head is null":       func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "head", "null").Err() },
		"no tasks":           func(b *bench, key string) error { return b.rdb.HDel(b.ctx, key, "tasks").Err() },
		"status unknown":     func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "states", "DANCING").Err() },
		"two statuses":       func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "states", "RUNNING,RUNNING").Err() },
		"cur out of range":   func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "cur", 7).Err() },
		"seq is no number":   func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "seq", "x").Err() },
		"cancel is no JSON":  func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "cancel", "x").Err() },
		"no step":            func(b *bench, key string) error { return b.rdb.HDel(b.ctx, key, "step").Err() },
		"step unknown":       func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "step", "dance").Err() },
		"fence is no number": func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "fence", "x").Err() },
		"no held":            func(b *bench, key string) error { return b.rdb.HSet(b.ctx, key, "head", "", "held", "").Err() },
		"another type": func(b *bench, key string) error {
			return b.rdb.Rename(b.ctx, key[:len("ol:{s00}:")]+"due-copy", key).Err()
		},
		"only one field is left": func(b *bench, key string) error {
			b.rdb.Del(b.ctx, key)
			return b.rdb.HSet(b.ctx, key, "head", "{}").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, 1, func(t *testing.T, b *bench) {
				bad, good := b.watched(t), b.watched(t)
				b.must(t, b.rdb.Copy(b.ctx, b.keys.due(0), "ol:{s00}:due-copy", 0, true).Err())
				b.must(t, damage(b, b.keys.of(bad, "job")))

				for round := range 2 {
					due := must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace))
					if len(due.Jobs) != 1 || due.Jobs[0].ID != good {
						t.Fatalf("claimed were %+v", due)
					}
					if len(due.Corrupt) != 1-round || round == 0 && due.Corrupt[0].ID != bad {
						t.Fatalf("round %d told of %v", round, due.Corrupt)
					}
					b.pass(t, 2*lease)
				}
				b.pass(t, corruptPause)
				if due := must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)); len(due.Corrupt) != 1 {
					t.Errorf("after the pause it told of %v", due.Corrupt)
				}

				page := must[Page](t)(b.Find(b.ctx, Query{}))
				var corrupt *CorruptError
				if len(page.Jobs) != 1 || len(page.Damaged) != 1 || !errors.As(page.Damaged[0], &corrupt) || corrupt.ID != bad {
					t.Errorf("the list is %+v", page)
				}
				ids, _, err := b.CancelWhere(b.ctx, nil, "ada", 0)
				if err != nil || len(ids) == 0 {
					t.Errorf("cancel all: %v, %v", ids, err)
				}
				if b.load(t, good).Cancel == nil {
					t.Error("a damaged record kept another job from being cancelled")
				}
			})
		})
	}
}

// TestDamagedLists ensures that a job whose history or outbox is damaged goes on, and those that are committed with it, and
// that it can be resumed.
func TestDamagedLists(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, b *bench) {
		bad, next := b.told(t)
		good := must[Claimed](t)(b.Begin(b.ctx, b.submit(t, 1)[0], job.StepLaunch, 1, "token", lease))
		for _, kind := range []string{"ev", "past", "out", "hook"} {
			b.must(t, b.rdb.Set(b.ctx, b.keys.of(bad.ID, kind), "damaged", 0).Err())
		}
		next.Step, next.Tasks[0].Status, next.Past = job.StepDone, job.Failed, []job.Attempt{{Number: 1}}
		other := good.Clone()
		other.Step, other.Tasks[0].Status = job.StepDone, job.Failed
		for i, err := range must[[]error](t)(b.Commit(b.ctx, 0, Commit{From: &bad, Next: next}, Commit{From: &good, Next: other})) {
			if err != nil {
				t.Errorf("commit %d: %v", i, err)
			}
		}
		b.sound(t, []job.ID{bad.ID, good.ID})
		must[Woken](t)(b.Resume(b.ctx, bad.ID, "ada"))
		b.sound(t, []job.ID{bad.ID, good.ID})
	})
}

// TestDamagedAct ensures that an act of a damaged record is not begun again and again.
func TestDamagedAct(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(t, 1)[0]
	b.must(t, b.rdb.HSet(b.ctx, b.keys.of(id, "job"), "tasks", "{").Err())
	var corrupt *CorruptError
	if _, err := b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease); !errors.As(err, &corrupt) || corrupt.ID != id {
		t.Errorf("begin gave %v", err)
	}
	b.pass(t, 2*lease)
	if due := must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)); due.Len() != 0 {
		t.Errorf("it is due again when its claim has ended: %+v", due)
	}
	b.pass(t, corruptPause)
	if due := must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)); len(due.Acts) != 1 {
		t.Errorf("after the pause there was %+v", due)
	}
}

// TestIndexWithoutRecord ensures that what retention left behind in the index goes away by itself.
func TestIndexWithoutRecord(t *testing.T) {
	b := newBench(t, 1)
	id := b.watched(t)
	b.must(t, b.rdb.Del(b.ctx, b.keys.of(id, "job")).Err())
	if due := must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)); due.Len() != 0 {
		t.Errorf("claimed %+v", due)
	}
	if n := must[int64](t)(b.rdb.ZCard(b.ctx, b.keys.due(0)).Result()); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// TestG2_AParkedClaimIsOnesOwn ensures that who found a record damaged puts nothing off that is not theirs any more. The schedule:
// a claim is made and its record read as damaged; the driver stands still until the claim has ended; the record is mended and
// claimed by somebody else, or has left the store; then the first one gives its claim back.
func TestG2_AParkedClaimIsOnesOwn(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, b *bench) {
		mended, gone := b.watched(t), b.watched(t)
		stale := []parked{}
		for _, c := range must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)).Jobs {
			stale = append(stale, parked{c.ID, strconv.FormatInt(c.Fence, 10)})
		}
		b.pass(t, 2*lease)
		c := b.claim(t, mended)
		b.must(t, b.rdb.Del(b.ctx, b.keys.of(gone, "job")).Err())
		b.must(t, b.rdb.ZRem(b.ctx, b.keys.due(0), int64(gone)).Err())
		b.unchanged(t, "a claim that is over", func() { b.park(b.ctx, stale...) })
		if len(stale) != 2 {
			t.Errorf("claimed were %v", stale)
		}
		b.commit(t, &c, c.Clone(), false)
	})
}

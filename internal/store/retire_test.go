package store

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestRetirable ensures that retention is told of the jobs that ended first, of those beyond a number, and of those whose own
// logs are due, and never of one that is not done.
func TestRetirable(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		ids := b.submit(t, 6)
		brief := typical(1)
		brief.LogRetention = time.Hour
		own := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: brief}))[0]
		order := []job.ID{ids[3], own, ids[0], ids[5]}
		for i, id := range order {
			b.end(t, id, job.Failed)
			must[int64](t)(b.rdb.ZAdd(b.ctx, b.keys.prefix(b.ShardOf(id))+"ended", zed(id, job.Time(1000+i))).Result())
		}
		c := must[Claimed](t)(b.Begin(b.ctx, ids[1], job.StepLaunch, 1, "t", lease)) // ended, its machine is closing
		next := c.Clone()
		next.Step, next.Tasks[0].Status = job.StepCleanup, job.Failed
		b.commit(t, &c, next, false)
		must[int64](t)(b.rdb.ZAdd(b.ctx, b.keys.prefix(b.ShardOf(ids[1]))+"ended", zed(ids[1], 1)).Result())
		check := func(what string, want []job.ID, before job.Time, stay int64, most int) {
			t.Helper()
			if got := must[[]job.ID](t)(b.Retirable(b.ctx, before, stay, most)); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		check("nothing is due", nil, 0, 0, 10)
		check("by age", order[:2], 1002, 0, 10)
		check("by number", order[:3], 0, 2, 10)
		check("by both", order, 9999, 4, 10)
		check("no more than asked for", order[:1], 9999, 0, 1)
		must[int64](t)(b.rdb.ZAdd(b.ctx, b.keys.prefix(b.ShardOf(own))+"brief", zed(own, 1)).Result())
		check("by its own logs", []job.ID{own}, 0, 0, 10)
		check("by its own logs and by age", []job.ID{own, ids[3]}, 1001, 0, 10)
	})
}

// TestRetireOnlyWhatIsDone ensures that no job leaves the store that lives, or has changed since it was read, and that the same
// call again is success.
func TestRetireOnlyWhatIsDone(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.submit(t, 1)[0]
		retire := func(all Retired) bool {
			t.Helper()
			return must[bool](t)(b.Retire(b.ctx, &all))
		}
		live := must[Retired](t)(b.LoadAll(b.ctx, id))
		b.unchanged(t, "retiring a live job", func() { retire(live) })
		b.end(t, id, job.Failed)
		b.unchanged(t, "retiring what was read before its end", func() { retire(live) })
		ended := must[Retired](t)(b.LoadAll(b.ctx, id))
		must[int64](t)(b.rdb.RPush(b.ctx, b.keys.of(id, "ev"), `{"kind":"note"}`).Result())
		b.unchanged(t, "retiring what an event came to", func() { retire(ended) })
		must[Woken](t)(b.Resume(b.ctx, id, "ada"))
		resumed := must[Retired](t)(b.LoadAll(b.ctx, id))
		b.unchanged(t, "retiring a resumed job", func() { retire(ended); retire(resumed) })
		b.sound(t, []job.ID{id})

		other := b.submit(t, 1)[0]
		b.end(t, other, job.Succeeded)
		gone := must[Retired](t)(b.LoadAll(b.ctx, other))
		for range 2 {
			if !retire(gone) {
				t.Error("a job that is done stays")
			}
		}
		b.sound(t, []job.ID{id})
	})
}

func zed(id job.ID, at job.Time) redis.Z { return redis.Z{Score: float64(at), Member: int64(id)} }

// TestRetirablePassesOver ensures that jobs that must stay, since they have news to tell, keep none behind them in the store,
// however many they are.
func TestRetirablePassesOver(t *testing.T) {
	b := newBench(t, 1)
	const stuck = 1200
	ids := b.submit(t, stuck+3)
	for i, id := range ids {
		must[int64](t)(b.rdb.ZAdd(b.ctx, b.keys.prefix(0)+"ended", zed(id, job.Time(1000+i))).Result())
		if i < stuck {
			must[int64](t)(b.rdb.ZAdd(b.ctx, b.keys.hooks(0), zed(id, 1)).Result())
		}
		must[int64](t)(b.rdb.ZRem(b.ctx, b.keys.due(0), int64(id)).Result())
	}
	if got := must[[]job.ID](t)(b.Retirable(b.ctx, 9999, 0, 10)); !slices.Equal(got, ids[stuck:]) {
		t.Errorf("got %v", got)
	}
}

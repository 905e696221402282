package store

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestChain ensures that one epoch owns a chain: a silent one is taken over, and what is left of the old epoch ends.
func TestChain(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		names := []string{WatchChain(0), WatchChain(1), "fleet:gc"}
		got := must[map[string]int64](t)(b.ChainReclaim(b.ctx, names, lease))
		if want := map[string]int64{"watch-0": 1, "watch-1": 1, "fleet:gc": 1}; !maps.Equal(got, want) {
			t.Fatalf("first look: %v", got)
		}
		if got := must[map[string]int64](t)(b.ChainReclaim(b.ctx, names, lease)); len(got) != 0 {
			t.Fatalf("chains that are well were taken: %v", got)
		}
		b.pass(t, lease/2)
		old := must[Tick](t)(b.ChainBegin(b.ctx, "watch-1", 1, 2*lease)) // a long tick
		b.pass(t, lease)
		if got := must[map[string]int64](t)(b.ChainReclaim(b.ctx, names, lease)); !maps.Equal(got, map[string]int64{"watch-0": 2, "fleet:gc": 2}) {
			t.Fatalf("silent were two: %v", got)
		}
		b.pass(t, 2*lease)
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, names, lease))
		b.unchanged(t, "the old epoch", func() {
			if _, err := b.ChainBegin(b.ctx, "watch-1", 1, lease); !errors.Is(err, ErrStale) {
				t.Errorf("its begin gave %v", err)
			}
			if _, err := b.ChainEnd(b.ctx, old, time.Second, lease); !errors.Is(err, ErrStale) {
				t.Errorf("its end gave %v", err)
			}
		})
		must[Tick](t)(b.ChainBegin(b.ctx, "watch-1", 2, lease))
	})
}

// TestChainWake ensures that a wake between begin and end of a tick asks for the next one at once: that of the
// chain itself, and that of a job in its shard.
func TestChainWake(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.watched(t)
		chain := WatchChain(b.ShardOf(id))
		if epoch := must[int64](t)(b.ChainWake(b.ctx, "never begun")); epoch != 0 {
			t.Errorf("epoch of a chain that never began: %d", epoch)
		}
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{chain}, lease))
		for name, wake := range map[string]func() int64{
			"chain": func() int64 { return must[int64](t)(b.ChainWake(b.ctx, chain)) },
			"job":   func() int64 { return must[Woken](t)(b.Wake(b.ctx, id)).Epoch },
			"all": func() int64 {
				_, woken, err := b.CancelWhere(b.ctx, nil, "ada", 0)
				b.must(t, err)
				return woken[0].Epoch
			},
		} {
			tick := must[Tick](t)(b.ChainBegin(b.ctx, chain, 1, lease))
			if epoch := wake(); epoch != 1 {
				t.Errorf("%s: the wake told epoch %d", name, epoch)
			}
			if in := must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Minute, lease)); in != 0 {
				t.Errorf("%s: the next tick is in %v", name, in)
			}
			tick = must[Tick](t)(b.ChainBegin(b.ctx, chain, 1, lease))
			if in := must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Minute, lease)); in == 0 {
				t.Errorf("%s: the wake counted twice", name)
			}
		}
	})
}

// TestWatchBegin ensures that a tick of a shard's watch has ended at once exactly if no job is due, that the chain lives on as
// long as after any other end, and that a wake after the begin is seen by the end.
func TestWatchBegin(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		const early = 500 * time.Millisecond
		id := b.watched(t)
		shard := b.ShardOf(id)
		names := []string{WatchChain(0), WatchChain(1)}
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, names, lease))
		begin := func(shard int, epoch int64) (Tick, time.Duration, error) {
			return b.WatchBegin(b.ctx, shard, epoch, early, time.Second, lease)
		}
		b.unchanged(t, "another epoch", func() {
			for shard := range 2 {
				if _, _, err := begin(shard, 7); !errors.Is(err, ErrStale) {
					t.Errorf("its begin gave %v", err)
				}
			}
		})
		idle := func(what string, shard int) {
			t.Helper()
			switch tick, in, err := begin(shard, 1); {
			case err != nil:
				t.Fatal(err)
			case in <= 0 || in > time.Second || tick.Chain != "":
				t.Errorf("%s: the tick goes on: %+v, the next one is in %s", what, tick, in)
			default:
				now := must[job.Time](t)(b.Now(b.ctx))
				due := job.Time(must[int64](t)(b.rdb.HGet(b.ctx, b.keys.chain(WatchChain(shard)), "due").Int64()))
				if next := due.Add(-lease); next%1000 != 0 || next.Sub(now) > in || next < now.Add(in-time.Second) {
					t.Errorf("%s: the next tick is expected at %d, and is in %s after %d", what, next, in, now)
				}
			}
		}
		put := func(in time.Duration) {
			t.Helper()
			due := must[job.Time](t)(b.Now(b.ctx)).Add(in)
			b.must(t, b.rdb.ZAdd(b.ctx, b.keys.due(shard), redis.Z{Score: float64(due), Member: int64(id)}).Err())
		}
		idle("no job", 1-shard)
		put(time.Hour)
		idle("a job that is due later", shard)
		for _, in := range []time.Duration{-time.Hour, 0, early} {
			put(in)
			tick, next, err := begin(shard, 1)
			if err != nil || next != 0 || tick.Chain != WatchChain(shard) || tick.Epoch != 1 {
				t.Fatalf("a job that is due in %s: %+v, the next tick is in %s: %v", in, tick, next, err)
			}
			must[Woken](t)(b.Wake(b.ctx, id))
			if in := must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Second, lease)); in != 0 {
				t.Errorf("a wake since the begin: the next tick is in %s", in)
			}
		}
		b.pass(t, lease-time.Second)
		idle("no job, later", 1-shard)
		b.pass(t, 2*time.Second)
		if got := must[map[string]int64](t)(b.ChainReclaim(b.ctx, names[1-shard:2-shard], lease)); len(got) != 0 {
			t.Errorf("a chain whose ticks have nothing to do was taken over: %v", got)
		}
	})
}

// TestChainPeriod ensures that ticks are due at whole seconds of the store's clock, which is all that the queue can do, at
// most a period away if that is of whole seconds, and never now.
func TestChainPeriod(t *testing.T) {
	b := newBench(t, 2)
	must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"fleet"}, lease))
	tick := must[Tick](t)(b.ChainBegin(b.ctx, "fleet", 1, lease))
	rapid.Check(t, func(rt *rapid.T) {
		every := time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "ms")) * time.Millisecond
		if rapid.Bool().Draw(rt, "whole") {
			every = every.Truncate(time.Second) + time.Second
		}
		in := must[time.Duration](rt)(b.ChainEnd(b.ctx, tick, every, lease))
		due := must[int64](rt)(b.rdb.HGet(b.ctx, b.keys.chain("fleet"), "due").Int64())
		if next := due - lease.Milliseconds(); next%1000 != 0 {
			rt.Fatalf("the next tick is at %d", next)
		}
		most, least := every+time.Second, every
		if every%time.Second == 0 {
			most, least = every, every-time.Second
		}
		if in > most || in < least || in <= 0 {
			rt.Fatalf("the next tick of one every %v is in %v", every, in)
		}
	})
}

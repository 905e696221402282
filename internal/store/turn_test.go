package store

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

var sims = Bucket{Provider: "sim", Region: "east", Kind: "write"}

// turn asks for a turn and reports whether it has come.
func (b *bench) turn(tb fataler, r Rate, c Caller) bool {
	tb.Helper()
	return must[time.Duration](tb)(b.Turn(b.ctx, sims, r, c)) == 0
}

// slow is a rate at which no token comes back while a test runs: only pass brings one.
func slow(burst float64) Rate { return Rate{PerSecond: 1.0 / 3600, Burst: burst} }

// TestG9_TurnsAreBounded ensures that no more calls are let through than the burst and what the time since then allows,
// whatever the order in which callers come and come back, and that what is allowed is used when they do.
func TestG9_TurnsAreBounded(t *testing.T) {
	b := newBench(t, 2)
	rapid.Check(t, func(rt *rapid.T) {
		b.again(rt)
		burst := float64(rapid.IntRange(1, 5).Draw(rt, "burst"))
		rate := slow(burst)
		allowed, taken := burst, 0
		waiting := map[int]bool{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "step") == 0 {
				hours := rapid.IntRange(1, 3).Draw(rt, "hours")
				b.pass(rt, time.Duration(hours)*time.Hour)
				clear(waiting) // whoever waited has not come back in time
				allowed = min(allowed+float64(hours), burst)
				continue
			}
			who := rapid.IntRange(0, 9).Draw(rt, "who")
			c := Caller{Name: fmt.Sprint(who), Later: who%2 == 0, Priority: who * 100}
			if b.turn(rt, rate, c) {
				taken++
				allowed--
				delete(waiting, who)
			} else {
				waiting[who] = true
			}
			if allowed < -0.01 {
				rt.Fatalf("%d calls were let through: %g too many", taken, -allowed)
			}
			if waiting[who] && allowed-float64(len(waiting)) > 0.01 {
				rt.Fatalf("%d wait, and there is room for %g", len(waiting), allowed)
			}
		}
	})
}

// TestTurnsInOrder ensures that whoever ends a machine goes before whoever wants one, high priority before low, and then
// whoever came first; and that one that waits tells how long it will be.
func TestTurnsInOrder(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		one := slow(1)
		if !b.turn(t, one, Caller{Name: "first"}) {
			t.Fatal("the first one had to wait")
		}
		line := []Caller{
			{Name: "end", Priority: -5}, {Name: "high", Later: true, Priority: job.MaxPriority},
			{Name: "a", Later: true}, {Name: "b", Later: true}, {Name: "low", Later: true, Priority: job.MinPriority},
		}
		order := []int{4, 2, 1, 3, 0}
		for _, i := range order {
			if wait := must[time.Duration](t)(b.Turn(b.ctx, sims, one, line[i])); wait != turnWait {
				t.Errorf("%s is told to wait %s", line[i].Name, wait)
			}
		}
		for i, c := range line {
			b.minutes(t, 60) // one token; all that wait are still expected
			for j := len(line) - 1; j > i; j-- {
				if b.turn(t, one, line[j]) {
					t.Errorf("%s went before %s", line[j].Name, c.Name)
				}
			}
			if !b.turn(t, one, c) {
				t.Errorf("it is the turn of %s, and it waits", c.Name)
			}
		}
	})
}

// minutes lets time pass for the bucket alone, so that whoever waits keeps its place.
func (b *bench) minutes(tb fataler, n int) {
	tb.Helper()
	must[int64](tb)(b.rdb.HIncrBy(b.ctx, sims.keys()[0], "at", -int64(n)*60_000).Result())
}

// TestWhoDoesNotComeLosesItsTurn ensures that a caller which has died, or whose job was cancelled, holds up nobody.
func TestWhoDoesNotComeLosesItsTurn(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		one := slow(1)
		b.turn(t, one, Caller{Name: "first"})
		if b.turn(t, one, Caller{Name: "gone", Priority: job.MaxPriority}) || b.turn(t, one, Caller{Name: "here"}) {
			t.Fatal("there was more than one token")
		}
		b.minutes(t, 60)
		if b.turn(t, one, Caller{Name: "here"}) {
			t.Error("a place in the line was not kept")
		}
		b.pass(t, turnWait+turnGrace)
		b.minutes(t, 60)
		if !b.turn(t, one, Caller{Name: "here"}) {
			t.Error("one that does not come holds up those that do")
		}
		if keys := must[int64](t)(b.rdb.Exists(b.ctx, sims.keys()[1:]...).Result()); keys != 0 {
			t.Errorf("%d lines are left of nobody", keys)
		}
	})
}

// TestG8_ThrottledSlowsAllDown ensures that a provider's word about too many calls halves the rate for all, once for all the
// answers of a moment, that it never ends the calls, and that the rate grows back.
func TestG8_ThrottledSlowsAllDown(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		rate := Rate{PerSecond: 10, Burst: 100_000}
		pace := func() float64 { return must[float64](t)(b.rdb.HGet(b.ctx, sims.keys()[0], "pace").Float64()) }
		for range 5 {
			b.must(t, b.SlowDown(b.ctx, sims, rate))
		}
		if got := pace(); got < 0.5 || got > 0.51 {
			t.Errorf("the pace is %g after answers of one moment", got)
		}
		for range 20 {
			b.seconds(t, 1)
			b.must(t, b.SlowDown(b.ctx, sims, rate))
		}
		if got := pace(); got < 1.0/64 || got > 0.06 {
			t.Errorf("the pace is %g after many answers", got)
		}
		if wait := must[time.Duration](t)(b.Turn(b.ctx, sims, rate, Caller{Name: "a"})); wait < 500*time.Millisecond || wait > 7*time.Second {
			t.Errorf("the next call is to wait %s", wait)
		}
		b.seconds(t, 61)
		if !b.turn(t, rate, Caller{Name: "a"}) || pace() != 1 {
			t.Errorf("the pace is %g a minute later", pace())
		}
		if !b.turn(t, Rate{}, Caller{Name: "b"}) {
			t.Error("a provider without a limit has one")
		}
	})
}

// seconds lets time pass for the bucket and what it remembers.
func (b *bench) seconds(tb fataler, n int) {
	tb.Helper()
	for _, field := range []string{"at", "slowed"} {
		must[int64](tb)(b.rdb.HIncrBy(b.ctx, sims.keys()[0], field, -int64(n)*1000).Result())
	}
}

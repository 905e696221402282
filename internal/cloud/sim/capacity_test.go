package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Ensure that each form of a capacity is what it says.
func TestCapacityAt(t *testing.T) {
	steps := []Step{{0, 20}, {30 * time.Second, 0}}
	late := []Step{{10 * time.Second, 5}, {20 * time.Second, 7}}
	trace := Capacity{Trace: &Trace{Gap: time.Minute, Machines: []int{3, 0, 4}}}
	for _, tc := range []struct {
		name string
		c    Capacity
		at   time.Duration
		want int
	}{
		{"constant", Capacity{N: 4}, time.Hour, 4},
		{"nothing", Capacity{}, 0, 0},
		{"first step", Capacity{Steps: steps}, 29 * time.Second, 20},
		{"second step", Capacity{Steps: steps}, 30 * time.Second, 0},
		{"the last step stays", Capacity{Steps: steps}, time.Hour, 0},
		{"repeated", Capacity{Steps: steps, Repeat: time.Minute}, 60 * time.Second, 20},
		{"repeated, second step", Capacity{Steps: steps, Repeat: time.Minute}, 95 * time.Second, 0},
		{"before the first step", Capacity{N: 1, Steps: late}, 9 * time.Second, 1},
		{"before the first step of a later round", Capacity{N: 1, Steps: late, Repeat: 30 * time.Second}, 35 * time.Second, 7},
		{"before the beginning", Capacity{Steps: steps}, -time.Hour, 20},
		{"trace", trace, 59 * time.Second, 3},
		{"trace, second gap", trace, 60 * time.Second, 0},
		{"trace, again from the beginning", trace, 3*time.Minute + time.Second, 3},
		{"markov begins up", Capacity{Markov: &Markov{Up: 9, Down: 1, ToDown: 1, ToUp: 1, Every: time.Second}}, 0, 9},
		{"markov goes down for sure", Capacity{Markov: &Markov{Up: 9, Down: 1, ToDown: 1, ToUp: 1, Every: time.Second}}, time.Second, 1},
		{"markov comes up for sure", Capacity{Markov: &Markov{Up: 9, Down: 1, ToDown: 1, ToUp: 1, Every: time.Second}}, 2 * time.Second, 9},
		{"markov that never goes down", Capacity{Markov: &Markov{Up: 9, Every: time.Second}}, time.Hour, 9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.c.check(); err != nil {
				t.Fatal(err)
			}
			if got := tc.c.At(1, "a", tc.at); got != tc.want {
				t.Errorf("At(%s) = %d, want %d", tc.at, got, tc.want)
			}
		})
	}
}

// anyCapacity draws a capacity of any form.
func anyCapacity(t *rapid.T) Capacity {
	n := rapid.IntRange(0, 5)
	seconds := func(from, to int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(from, to), func(s int) time.Duration { return time.Duration(s) * time.Second })
	}
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return Capacity{N: n.Draw(t, "n")}
	case 1:
		c := Capacity{N: n.Draw(t, "n")}
		at := seconds(0, 5).Draw(t, "first")
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			c.Steps = append(c.Steps, Step{at, n.Draw(t, "step")})
			at += seconds(1, 5).Draw(t, "later")
		}
		if rapid.Bool().Draw(t, "repeats") {
			c.Repeat = at
		}
		return c
	case 2:
		return Capacity{Markov: &Markov{
			Up: n.Draw(t, "up"), Down: n.Draw(t, "down"), Every: seconds(1, 5).Draw(t, "every"),
			ToDown: rapid.Float64Range(0, 1).Draw(t, "to down"), ToUp: rapid.Float64Range(0, 1).Draw(t, "to up"),
		}}
	default:
		return Capacity{Trace: &Trace{Gap: seconds(1, 5).Draw(t, "gap"), Machines: rapid.SliceOfN(n, 1, 5).Draw(t, "machines")}}
	}
}

// Ensure that the changes of a capacity are all there are: whoever applies them one by one, in however many parts, has at any
// time what [Capacity.At] says.
func TestCapacityChangesAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCapacity(t)
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		from, have := time.Duration(-1), -1
		for range 5 {
			to := max(from, 0) + time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms"))*time.Millisecond
			last := from
			for _, ch := range c.changes(seed, "a", from, to) {
				if ch.At <= last || ch.At > to {
					t.Fatalf("change at %s between %s and %s, after one at %s", ch.At, from, to, last)
				}
				last, have = ch.At, ch.N
			}
			if want := c.At(seed, "a", to); have != want {
				t.Fatalf("at %s the changes lead to %d, At says %d", to, have, want)
			}
			from = to
		}
	})
}

// Ensure that a capacity is the same for whoever asks and whenever, differs from zone to zone where it is random, and that a
// repeated one repeats.
func TestCapacityIsAFunctionOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, seed := anyCapacity(t), rapid.Uint64().Draw(t, "seed")
		at := time.Duration(rapid.IntRange(0, 100_000).Draw(t, "ms")) * time.Millisecond
		n := c.At(seed, "a", at)
		c.At(seed, "a", at+time.Hour)
		if again := c.At(seed, "a", at); again != n {
			t.Fatalf("%d, then %d", n, again)
		}
		if later := c.At(seed, "a", at+c.Repeat); c.Repeat > 0 && at >= c.Repeat && later != n {
			t.Fatalf("%d, a round later %d", n, later)
		}
	})
	c := Capacity{Markov: &Markov{Up: 1, ToDown: 0.5, ToUp: 0.5, Every: time.Second}}
	var a, b []int
	for i := range 64 {
		a, b = append(a, c.At(1, "a", time.Duration(i)*time.Second)), append(b, c.At(1, "b", time.Duration(i)*time.Second))
	}
	if cmp.Equal(a, b) {
		t.Error("two zones go up and down together")
	}
}

// Ensure that a random capacity is up as long as its probabilities say.
func TestMarkovKeepsItsProbabilities(t *testing.T) {
	const looks = 20_000
	c := Capacity{Markov: &Markov{Up: 1, ToDown: 0.1, ToUp: 0.3, Every: time.Second}}
	up := 0
	for i := range looks {
		up += c.At(7, "a", time.Duration(i)*time.Second)
	}
	if part := float64(up) / looks; part < 0.70 || part > 0.80 { // 0.3 / (0.1 + 0.3); the seed is fixed
		t.Errorf("up for %.3f of the time, want about 0.75", part)
	}
}

// Ensure that the public form of traces is read, and what is none is refused.
func TestParseTrace(t *testing.T) {
	got, err := ParseTrace([]byte(`{"metadata": {"gap_seconds": 1.5, "zone": "us-west-2a"}, "data": [1, 0, 4]}`), 2.5)
	if diff := cmp.Diff(&Trace{Gap: 1500 * time.Millisecond, Machines: []int{2, 0, 10}}, got); err != nil || diff != "" {
		t.Errorf("error %v, trace (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "[]", "{}", `{"metadata": {"gap_seconds": 0}, "data": [1]}`, `{"metadata": {"gap_seconds": 1}, "data": []}`, `{"metadata": {"gap_seconds": 1}, "data": ["a"]}`} {
		if _, err := ParseTrace([]byte(bad), 1); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

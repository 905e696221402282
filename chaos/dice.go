package main

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice are the dice of one subject: no other subject's throws change what they show.
type dice struct{ *rand.Rand }

func newDice(seed uint64, subject string) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(subject)) // never fails
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// between is a time from lo up to hi.
func (d dice) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(d.Int64N(int64(hi-lo))).Truncate(time.Millisecond)
}

// oneIn is true in one of n throws.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// pick picks one of a list, which must not be empty.
func pick[T any](d dice, list []T) T { return list[d.IntN(len(list))] }

// weighted picks a place of a list of weights.
func (d dice) weighted(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(max(sum, 1))
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

package tasks

import (
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// clock is the store's clock, carried on by ours. Two clocks of one worker differ by what the answers with their times
// took on the way: a time of one drive is compared with what happened here by that drive's own clock.
type clock struct {
	store job.Time
	read  time.Time // when store was read, by our own clock
}

func (c clock) now() job.Time { return c.of(time.Now()) }

// of is what the store's clock showed at t, rounded down to its milliseconds.
func (c clock) of(t time.Time) job.Time {
	since := t.Sub(c.read)
	if since < 0 {
		since -= time.Millisecond - 1
	}
	return c.store.Add(since)
}

// local is when the store's clock showed t.
func (c clock) local(t job.Time) time.Time { return c.read.Add(t.Sub(c.store)) }

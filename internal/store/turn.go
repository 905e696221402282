package store

import (
	"context"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// Rate bounds calls: so many a second in the long run, and at most Burst at once.
type Rate struct {
	PerSecond float64 // 0 is no limit
	Burst     float64 // at least 1
}

// Bucket names what a [Rate] is for: one kind of calls in one region of a provider.
type Bucket struct {
	Provider string
	Region   string // "" for what belongs to no region
	Kind     string
}

// Caller is who asks for a turn. It is the same each time that the same call is tried.
type Caller struct {
	Name     string
	Later    bool // it comes after all that are not: a new machine can wait, one to be ended costs money
	Priority int  // of the job; higher first
}

const (
	// turnWait bounds the wait until a caller is to ask again: how long the line really takes, it sees then.
	turnWait = time.Minute
	// turnGrace is how long beyond its wait a caller keeps its place: a tick, and a queue that is not empty. One that does
	// not come is gone, and must not hold up the others.
	turnGrace = 5 * time.Second
)

// rank orders callers before the time at which they came: a number below 2^12, of which each is 2^41 ms wide.
func (c Caller) rank() int {
	r := job.MaxPriority - c.Priority
	if c.Later {
		r += 2048
	}
	return r
}

func (b Bucket) keys() []string {
	base := deploymentPrefix + "rate:" + b.Provider + ":" + b.Region + ":" + b.Kind
	return []string{base, base + ":line", base + ":expected"}
}

// Turn asks for the turn of a call. It returns zero if the call may be made now, or how long to wait until the caller asks
// again: it stands in the line then, and holds nothing else (G9).
func (s *Store) Turn(ctx context.Context, b Bucket, r Rate, c Caller) (time.Duration, error) {
	if r.PerSecond <= 0 {
		return 0, nil
	}
	wait, err := s.lua.turn.Run(ctx, s.rdb, b.keys(), "take", r.PerSecond, max(r.Burst, 1), c.Name, c.rank(), ms(turnWait), ms(turnGrace)).Int64()
	if err != nil {
		return 0, unavailable("ask for a turn", err)
	}
	return time.Duration(wait) * time.Millisecond, nil
}

// SlowDown halves the rate of a bucket for all workers, since the provider has said that there were too many calls. It grows
// back within a minute.
func (s *Store) SlowDown(ctx context.Context, b Bucket, r Rate) error {
	if r.PerSecond <= 0 {
		return nil
	}
	if err := s.lua.turn.Run(ctx, s.rdb, b.keys(), "slow", r.PerSecond, max(r.Burst, 1)).Err(); err != nil {
		return unavailable("slow down", err)
	}
	return nil
}

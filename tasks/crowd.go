package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

const (
	crowdPatience = 5 * time.Second // until a call counts as slow
	crowdPause    = 5 * time.Second // until an act that found no place asks again
)

// crowd bounds the calls of each provider that take long: those of one that hangs would else take all places of a worker's
// acts, and all that is to be done at other providers, and every cancel, would wait for its time limits. A call that becomes
// slow when there are too many is cut off, and none is begun then: who finds no place waits in the record (G9).
type crowd struct {
	most     int // slow calls of one kind
	patience time.Duration
	mu       sync.Mutex
	slow     map[string]int
}

func newCrowd(most int) *crowd {
	return &crowd{most: max(most, 1), patience: crowdPatience, slow: map[string]int{}}
}

// errCrowded is the cause with which a call is cut off.
var errCrowded = errors.New("cut off: too many calls of this provider have had no answer for a while")

// enter begins a call of a kind, under a context of its own; leave ends it. There is a fault if too many of them are slow
// already.
func (c *crowd) enter(ctx context.Context, kind string) (_ context.Context, leave func(), full *job.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.slow[kind]; n >= c.most {
		return ctx, func() {}, &job.Fault{
			Class: job.Throttled, Wait: crowdPause, Text: fmt.Sprintf("not called yet: %d calls of %s have had no answer for a while", n, kind),
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	counted, left := false, false
	timer := time.AfterFunc(c.patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case left:
		case c.slow[kind] >= c.most:
			cancel(errCrowded)
		default:
			counted = true
			c.slow[kind]++
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if left = true; counted {
			counted = false
			c.slow[kind]--
		}
	}, nil
}

package tasks

import (
	"context"
	"sync"
)

// interrupt ends what a driver is doing at the moment, once, without ending the drive: a create call or an upload may
// take minutes, and a cancel should not wait for it.
type interrupt struct {
	mu      sync.Mutex
	fired   bool
	arrived bool // some work was ended for it
	stop    context.CancelCauseFunc
}

func newInterrupt() *interrupt { return &interrupt{} }

// fire ends the work under way, or the next one that begins. Doing it again does nothing: by then the cancel is known.
func (i *interrupt) fire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fired = true
	i.deliver()
}

func (i *interrupt) deliver() {
	if i.fired && !i.arrived && i.stop != nil {
		i.arrived = true
		i.stop(errCancelled)
	}
}

// work returns the context for one piece of work.
func (i *interrupt) work(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.stop = cancel
	i.deliver()
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.stop = nil
		i.mu.Unlock()
		cancel(nil)
	}
}

package tasks

import (
	"context"
	"sync"
)

// interrupt ends what a driver is doing at the moment, without ending the drive: a create call or an upload may take
// minutes, and a cancel should not wait for it.
type interrupt struct {
	mu    sync.Mutex
	fired bool
	stop  context.CancelCauseFunc
}

func newInterrupt() *interrupt { return &interrupt{} }

// fire ends the work under way, once: the cancel is in the record from then on.
func (i *interrupt) fire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fired {
		return
	}
	i.fired = true
	if i.stop != nil {
		i.stop(errCancelled)
	}
}

// work returns the context for one piece of work.
func (i *interrupt) work(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	i.stop = cancel
	i.mu.Unlock()
	return ctx, func() {
		i.mu.Lock()
		i.stop = nil
		i.mu.Unlock()
		cancel(nil)
	}
}

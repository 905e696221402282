package tasks

import (
	"context"
	"sync"
	"time"
)

// slowPlaces is how many slow looks may go on, for each place of those that are quick.
const slowPlaces = 32

// places bounds the looks that go on at a time. A quick look costs this computer something; a slow one only waits for a
// machine or a provider that hangs. So a look that has become slow makes room for the next one and goes on among the
// slow: many machines that hang do not delay the looks at those that answer.
type places struct {
	quick, slow chan struct{}
	patience    time.Duration // until a look counts as slow
}

func newPlaces(width int, patience time.Duration) *places {
	return &places{quick: make(chan struct{}, width), slow: make(chan struct{}, width*slowPlaces), patience: patience}
}

// enter waits for a place, as long as ctx lets it. leave gives up whatever place the look has by then.
func (p *places) enter(ctx context.Context) (leave func(), err error) {
	select {
	case p.quick <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var mu sync.Mutex
	have := p.quick // nil when it has left
	timer := time.AfterFunc(p.patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if have == nil {
			return
		}
		select {
		case p.slow <- struct{}{}:
			have = p.slow
			<-p.quick
		default: // it stays where it is
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		<-have
		have = nil
	}, nil
}

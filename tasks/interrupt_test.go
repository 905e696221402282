package tasks

import (
	"context"
	"errors"
	"testing"
)

// Ensure that a cancel ends the work under way, or the next one if it comes in between, and only one of them.
func TestInterrupt(t *testing.T) {
	ended := func(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errCancelled) }
	for name, during := range map[string]bool{"during a piece of work": true, "between two": false} {
		i := newInterrupt()
		first, done := i.work(context.Background())
		if during {
			i.fire()
		}
		if ended(first) != during {
			t.Errorf("%s: the first work ended: %t", name, ended(first))
		}
		done()
		i.fire()
		second, done := i.work(context.Background())
		if ended(second) == during {
			t.Errorf("%s: the second work ended: %t", name, ended(second))
		}
		done()
		i.fire()
		third, done := i.work(context.Background())
		if ended(third) {
			t.Errorf("%s: the cancel has ended two pieces of work", name)
		}
		done()
	}
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/tasks"
)

// actions are what the page can do: the wishes that the command line writes into a record, with the same wake after it.
type actions struct {
	store    *store.Store
	dispatch *tasks.Dispatcher
}

func (a actions) Cancel(ctx context.Context, id job.ID, by string, grace time.Duration) (web.Result, error) {
	return a.hurry(ctx)(a.store.Cancel(ctx, id, by, grace))
}

func (a actions) Resume(ctx context.Context, id job.ID, by string) (web.Result, error) {
	return a.hurry(ctx)(a.store.Resume(ctx, id, by))
}

func (a actions) Preempt(ctx context.Context, id job.ID, _ string) (web.Result, error) {
	return a.hurry(ctx)(a.store.Preempt(ctx, id, 0))
}

func (a actions) Follow(ctx context.Context, id job.ID) error {
	_, err := a.hurry(ctx)(a.store.Follow(ctx, id))
	return err
}

// hurry makes what a wake found take effect at once. It takes the results of the store's methods as they come. A queue
// that does not take the tick changes nothing but the time: the record is written.
func (a actions) hurry(ctx context.Context) func(store.Woken, error) (web.Result, error) {
	return func(w store.Woken, err error) (web.Result, error) {
		result := web.Accepted
		var unsafe *store.UnsafeError
		if errors.As(err, &unsafe) {
			result, err = web.Unsafe, nil
		}
		switch {
		case err != nil:
			return "", err
		case !w.Live:
			return web.TooLate, nil
		}
		if err := a.dispatch.RunWatch(ctx, w.Shard, w.Epoch); err != nil {
			return web.Later, nil //nolint:nilerr // the watch does it within seconds
		}
		return result, nil
	}
}

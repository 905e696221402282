package cloudtest

import (
	"context"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// calls are the methods of a provider that reach out.
func (w *world) calls(p cloud.Provider) map[string]func(context.Context) error {
	r := w.attempt(1, 1)
	return map[string]func(context.Context) error{
		"create":    func(ctx context.Context) error { _, err := p.Create(ctx, r); return err },
		"list":      func(ctx context.Context) error { _, err := p.List(ctx, r.Offer.Region); return err },
		"terminate": func(ctx context.Context) error { return p.Terminate(ctx, r.Offer.Region, matchOf(r)) },
	}
}

// promptly is how soon a call returns whose context has ended.
const promptly = 2 * time.Second

// A call whose context has ended returns at once, with an error that is no verdict on anything.
func cancelledCallsReturn(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	for name, call := range w.calls(w.p) {
		began := time.Now()
		err := call(ctx)
		if took := time.Since(began); took > promptly {
			w.Errorf("%s took %s", name, took)
		}
		if err == nil {
			w.Errorf("%s succeeded though nobody wanted it any more", name)
			continue
		}
		if got := cloud.ClassOf(err); got != job.Transient {
			w.Errorf("%s: class %s, want %s: %v", name, got, job.Transient, err)
		}
	}
	w.settled()
	if n := w.list(w.p, matchOf(w.attempt(1, 1))); len(n) != 0 {
		w.Errorf("a cancelled create has made %+v", n)
	}
}

// An error that the provider does not know is Transient: it must not end a job.
func unknownErrorsAreTransient(w *world) {
	if w.account.Break == nil {
		w.Skip("the provider cannot be broken")
	}
	p := w.account.Open(deployment)
	w.account.Break(p)
	for name, call := range w.calls(p) {
		err := call(w.ctx())
		if err == nil {
			w.Errorf("%s of a broken provider succeeded", name)
			continue
		}
		if got := cloud.ClassOf(err); got != job.Transient {
			w.Errorf("%s: class %s, want %s: %v", name, got, job.Transient, err)
		}
	}
}

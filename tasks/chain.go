package tasks

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/outlast-dev/outlast/internal/store"
)

// Chains are looked after by every worker, without a leader. The longest silence after a kill is
// DefaultSilence and one look.
const (
	// DefaultSilence is how long a tick may take, and how late the next one may be, before the chain counts as dead:
	// more than the queue's delay and a worker that is busy.
	DefaultSilence = 10 * time.Second
	chainLook      = time.Second
)

// tick is the body of a chain: what it does, and how long until it does so again.
type tick func(ctx context.Context, chain string) (time.Duration, error)

// handleTick makes an asynq handler of a chain's body.
func (w *Worker) handleTick(body tick) asynq.HandlerFunc {
	return func(ctx context.Context, t *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		chain, epoch, err := parseChainID(id)
		if err != nil {
			w.log.Error().Err(err).Msg("dropped a task")
			return nil
		}
		begun, err := w.store.ChainBegin(ctx, chain, epoch, w.silence)
		switch {
		case errors.Is(err, store.ErrStale):
			return nil // another epoch owns the chain: this one ends here
		case err != nil:
			return again{time.Second} // the store is away: keep the chain
		}
		every, err := body(ctx, chain)
		if err != nil && ctx.Err() == nil {
			w.log.Warn().Err(err).Str("chain", chain).Msg("a tick failed and is repeated")
		}
		end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		in, err := w.store.ChainEnd(end, begun, max(every, time.Second), w.silence)
		switch {
		case errors.Is(err, store.ErrStale):
			return nil
		case err != nil:
			return again{time.Second}
		default:
			return again{in}
		}
	}
}

// keepChains takes over chains that went silent, until ctx ends.
func (w *Worker) keepChains(ctx context.Context) {
	for {
		if err := w.takeOver(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn().Err(err).Msg("cannot look after the chains")
		}
		jitter := time.Duration(rand.Int64N(int64(chainLook / 4)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(chainLook - chainLook/8 + jitter):
		}
	}
}

func (w *Worker) takeOver(ctx context.Context) error {
	chains, err := w.chains(ctx)
	if err != nil {
		return err
	}
	taken, err := w.store.ChainReclaim(ctx, chains, w.silence)
	if err != nil {
		return err
	}
	for chain, epoch := range taken {
		w.metrics.reclaimed.Inc()
		w.log.Debug().Str("chain", chain).Int64("epoch", epoch).Msg("took over a silent chain")
		if err := w.queue.beginChain(ctx, chain, epoch); err != nil {
			return err // it is silent again after the grace
		}
	}
	return nil
}

// chains are all chains of the deployment.
func (w *Worker) chains(ctx context.Context) ([]string, error) {
	var names []string
	for shard := range w.store.Shards() {
		names = append(names, store.WatchChain(shard))
	}
	names = append(names, ChainAdmission)
	for _, site := range w.sites {
		regions, err := site.Provider.Regions(ctx)
		if err != nil {
			return nil, err
		}
		for _, region := range regions {
			names = append(names, ViewChain(site.Provider.Name(), region))
		}
	}
	return names, nil
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
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

// opening begins a tick. If there is nothing to do, it has ended it, and says how long until the next one; else that is 0.
type opening func(ctx context.Context, chain string, epoch int64) (store.Tick, time.Duration, error)

// handleTick makes an asynq handler of a chain's body.
func (w *Worker) handleTick(body tick) asynq.HandlerFunc {
	return w.handle(func(ctx context.Context, chain string, epoch int64) (store.Tick, time.Duration, error) {
		begun, err := w.store.ChainBegin(ctx, chain, epoch, w.silence)
		return begun, 0, err
	}, body)
}

// handleWatch is handleTick for the watch of shards: that of one with nothing to do is one call of Redis.
func (w *Worker) handleWatch() asynq.HandlerFunc {
	return w.handle(func(ctx context.Context, chain string, epoch int64) (store.Tick, time.Duration, error) {
		shard, err := watchShard(chain)
		if err != nil {
			return store.Tick{}, 0, fmt.Errorf("%w: %w", store.ErrStale, err) // nobody's tick
		}
		return w.store.WatchBegin(ctx, shard, epoch, w.every/2, w.every, w.silence)
	}, w.watch)
}

func (w *Worker) handle(open opening, body tick) asynq.HandlerFunc {
	return func(ctx context.Context, t *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		chain, epoch, err := parseChainID(id)
		if err != nil {
			w.log.Error().Err(err).Msg("dropped a task")
			return nil
		}
		begun, in, err := open(ctx, chain, epoch)
		switch {
		case errors.Is(err, store.ErrStale):
			return nil // another epoch owns the chain: this one ends here
		case err != nil:
			return again{time.Second} // the store is away: keep the chain
		case in > 0:
			return again{in}
		}
		every, err := w.ticking(ctx, begun, body)
		if err != nil && ctx.Err() == nil {
			w.log.Warn().Err(err).Str("chain", chain).Msg("a tick failed and is repeated")
		}
		end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		in, err = w.store.ChainEnd(end, begun, max(every, time.Second), w.silence)
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

// ticking runs a body. One that asks a provider may take its time, and that of a provider which hangs more than that, and
// so may retention with an archive that does: its chain lives as long as its worker does, or every silence would put
// another tick beside the one that waits. All others must be quick.
func (w *Worker) ticking(ctx context.Context, t store.Tick, body tick) (time.Duration, error) {
	if !strings.HasPrefix(t.Chain, viewPrefix) && !strings.HasPrefix(t.Chain, offersPrefix) && t.Chain != ChainRetention {
		return body(ctx, t.Chain)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var beats sync.WaitGroup
	beats.Go(func() {
		next := time.NewTicker(w.silence / 3)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			if _, err := w.store.ChainBegin(ctx, t.Chain, t.Epoch, w.silence); errors.Is(err, store.ErrStale) {
				cancel(err)
			}
		}
	})
	defer beats.Wait()
	defer cancel(nil)
	return body(ctx, t.Chain)
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

// takeOver looks once at all chains of the deployment. Those of the store come first: no provider that is away may keep
// the jobs from being watched.
func (w *Worker) takeOver(ctx context.Context) error {
	names := []string{ChainAdmission, ChainRetention, ChainHooks}
	for shard := range w.store.Shards() {
		names = append(names, store.WatchChain(shard))
	}
	if err := errors.Join(w.queue.remember(ctx), w.reclaim(ctx, names)); err != nil {
		return err
	}
	regions, silent := w.sites.regions(ctx, chainLook)
	names = nil
	for provider := range w.sites {
		names = append(names, OffersChain(provider))
	}
	for _, at := range regions {
		names = append(names, ViewChain(at.provider, at.region))
	}
	return errors.Join(silent, w.reclaim(ctx, names))
}

// reclaim takes over those of the chains that went silent.
func (w *Worker) reclaim(ctx context.Context, chains []string) error {
	if len(chains) == 0 {
		return nil
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

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/store"
)

// guardEvery is how often a running worker looks whether Redis is still set so that it loses nothing: settings can be changed
// while it runs, and after a failover it is another server.
const guardEvery = 15 * time.Second

// guard looks after the settings of Redis while a worker runs.
type guard struct {
	rdb    redis.UniversalClient
	log    zerolog.Logger
	why    atomic.Pointer[error]
	store  *store.Store
	leases []string                 // the further servers of this worker's leases
	theirs atomic.Pointer[[]string] // those of the deployment, as they were read last
}

// fit returns nil, or why this worker must not drive jobs: the others ask other servers for their locks.
func (g *guard) fit() error {
	theirs := g.store.Deployment().Leases
	if read := g.theirs.Load(); read != nil {
		theirs = *read
	}
	return sameServers(g.leases, theirs)
}

// preflight refuses a Redis that would lose jobs, and tells of one that might.
func (g *guard) preflight(ctx context.Context) error {
	if err := g.rdb.Ping(ctx).Err(); err != nil { // nothing else needs to be tried
		return fmt.Errorf("reach redis: %w: %w", store.ErrUnavailable, err)
	}
	warnings, err := store.Preflight(ctx, g.rdb, time.Now)
	for _, w := range warnings {
		g.log.Warn().Msg(w)
	}
	return err
}

// ready returns nil, or what is wrong with Redis since the worker started.
func (g *guard) ready() error {
	if why := g.why.Load(); why != nil {
		return *why
	}
	return nil
}

// follow looks every now and then until ctx ends. A Redis that must not be used any more is told in the log and by /readyz;
// the worker goes on, since jobs that nobody drives are no better.
func (g *guard) follow(ctx context.Context) {
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look(ctx)
		}
	}
}

func (g *guard) look(ctx context.Context) {
	if theirs, err := g.store.Leases(ctx); err == nil {
		g.theirs.Store(&theirs)
	}
	_, err := store.Preflight(ctx, g.rdb, time.Now) // what it warns of was told at the start
	before := g.ready()
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		g.why.Store(nil)
		if before != nil {
			g.log.Info().Msg("redis is set as it should be again")
		}
		return
	case before == nil || before.Error() != err.Error():
		trouble, _ := store.TroubleOf(err)
		g.log.Error().Err(err).Str("advice", trouble.Advice).Msg("redis was changed, and may lose jobs now")
	}
	err = fmt.Errorf("redis was changed while this worker runs: %w", err)
	g.why.Store(&err)
}

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A chain is a tick that keeps coming: the watch of a shard, or one of the fleet's. One epoch owns it; whoever finds
// it silent raises the epoch, and what is left of the old one ends at its next begin.

// Tick is one begun tick of a chain.
type Tick struct {
	Chain string
	Epoch int64
	wakes string
}

// ChainBegin begins a tick, which must end within lease. ErrStale means that another epoch owns the chain.
func (s *Store) ChainBegin(ctx context.Context, chain string, epoch int64, lease time.Duration) (Tick, error) {
	reply, err := s.lua.chainBegin.Run(ctx, s.rdb, []string{s.keys.chain(chain)}, epoch, ms(lease)).Slice()
	if err != nil {
		return Tick{}, unavailable("begin a tick", err)
	}
	if asInt(reply[0]) == 0 {
		return Tick{}, fmt.Errorf("tick of %s, epoch %d: %w", chain, epoch, ErrStale)
	}
	return Tick{Chain: chain, Epoch: epoch, wakes: asString(reply[2])}, nil
}

// WatchBegin is ChainBegin for the watch of a shard. If no job of it is due, or will be so early, the tick has ended as by
// ChainEnd, and all that is returned is how long until the next one.
func (s *Store) WatchBegin(ctx context.Context, shard int, epoch int64, early, every, lease time.Duration) (Tick, time.Duration, error) {
	t := Tick{Chain: WatchChain(shard), Epoch: epoch}
	keys := []string{s.keys.chain(t.Chain), s.keys.due(shard)}
	reply, err := s.lua.watchBegin.Run(ctx, s.rdb, keys, epoch, ms(lease), ms(early), ms(every), ms(lease)).Slice()
	if err != nil {
		return Tick{}, 0, unavailable("begin a tick", err)
	}
	switch asInt(reply[0]) {
	case 0:
		return Tick{}, 0, fmt.Errorf("tick of %s, epoch %d: %w", t.Chain, epoch, ErrStale)
	case 1:
		t.wakes = asString(reply[2])
		return t, 0, nil
	default:
		return Tick{}, time.Duration(asInt(reply[1])) * time.Millisecond, nil
	}
}

// ChainEnd ends a tick and returns how long until the next one; zero if somebody woke the chain since the begin. The
// chain counts as silent if that one has not begun grace later.
func (s *Store) ChainEnd(ctx context.Context, t Tick, every, grace time.Duration) (time.Duration, error) {
	reply, err := s.lua.chainEnd.Run(ctx, s.rdb, []string{s.keys.chain(t.Chain)}, t.Epoch, t.wakes, ms(every), ms(grace)).Slice()
	if err != nil {
		return 0, unavailable("end a tick", err)
	}
	if asInt(reply[0]) == 0 {
		return 0, fmt.Errorf("tick of %s, epoch %d: %w", t.Chain, t.Epoch, ErrStale)
	}
	return time.Duration(asInt(reply[1])) * time.Millisecond, nil
}

// ChainReclaim takes over those of the chains that are silent, or never began, in one round trip. It returns the new
// epochs by name.
func (s *Store) ChainReclaim(ctx context.Context, chains []string, grace time.Duration) (map[string]int64, error) {
	cmds := make([]*redis.Cmd, len(chains))
	err := s.pipelined(ctx, s.lua.chainReclaim, func(pipe redis.Pipeliner) {
		for i, name := range chains {
			cmds[i] = s.lua.chainReclaim.EvalSha(ctx, pipe, []string{s.keys.chain(name)}, ms(grace))
		}
	})
	if err != nil {
		return nil, unavailable("look after the chains", err)
	}
	taken := map[string]int64{}
	for i, c := range cmds {
		if epoch, err := c.Int64(); err == nil && epoch > 0 {
			taken[chains[i]] = epoch
		}
	}
	return taken, nil
}

// ChainWake asks for a tick of a chain now and returns its epoch, zero if it never began.
func (s *Store) ChainWake(ctx context.Context, chain string) (int64, error) {
	pipe := s.rdb.TxPipeline()
	pipe.HIncrBy(ctx, s.keys.chain(chain), "wakes", 1)
	epoch := pipe.HGet(ctx, s.keys.chain(chain), "epoch")
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, unavailable("wake a chain", err)
	}
	n, _ := epoch.Int64()
	return n, nil
}

package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Woken tells what a wake found.
type Woken struct {
	Shard int
	Epoch int64 // of the shard's watch chain: its tick can be run now
	Live  bool  // there is such a job and it is not done
	Known bool  // there is such a job
}

// wish is a field that a client writes into a record.
type wish struct {
	field string
	value any
	mode  string // "set", "once" or "max"
}

// anyLife is for wishes that do no harm to a job that was resumed since.
const anyLife = "*"

func (s *Store) wake(ctx context.Context, id job.ID, wishes ...wish) (Woken, error) {
	return s.wakeIn(ctx, anyLife, id, wishes...)
}

// wakeIn wakes a job, unless it was resumed since it was in that life.
func (s *Store) wakeIn(ctx context.Context, life string, id job.ID, wishes ...wish) (Woken, error) {
	shard := s.keys.shardOf(id)
	keys := []string{s.keys.of(id, "job"), s.keys.due(shard), s.keys.chain(WatchChain(shard))}
	args := []any{int64(id), life}
	for _, w := range wishes {
		args = append(args, w.field, w.value, w.mode)
	}
	reply, err := s.lua.wake.Run(ctx, s.rdb, keys, args...).Slice()
	if err != nil {
		return Woken{}, unavailable("wake", err)
	}
	return Woken{Shard: shard, Epoch: asInt(reply[0]), Live: asInt(reply[1]) == 1, Known: asInt(reply[2]) == 1}, nil
}

// Wake makes a job due now.
func (s *Store) Wake(ctx context.Context, id job.ID) (Woken, error) { return s.wake(ctx, id) }

// Cancel writes the wish to end a job into its record (G7). The first wish stands. It is for
// the life that the job is in: repeated by go-redis, it does not cancel the next one. Grace below zero leaves it to the task.
func (s *Store) Cancel(ctx context.Context, id job.ID, by string, grace time.Duration) (w Woken, err error) {
	err = s.safely(ctx, s.safeJobs(id), func() error { w, err = s.cancel(ctx, id, by, grace); return err })
	return w, err
}

func (s *Store) cancel(ctx context.Context, id job.ID, by string, grace time.Duration) (Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return Woken{}, err
	}
	life, err := s.rdb.HGet(ctx, s.keys.of(id, "job"), "resumed").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Woken{}, unavailable("cancel", err)
	}
	w, err := s.wakeIn(ctx, life, id, wish{"cancel", mustJSON(job.Cancel{At: now, By: by, Grace: grace}), "once"})
	if err == nil && !w.Known {
		err = fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	return w, err
}

const (
	cancelCall = 100  // jobs in one call of the script: a millisecond
	cancelPipe = 1000 // jobs in one pipeline: others have their turn behind it
)

// CancelWhere cancels every live job, or those with a name, in small steps. It returns their ids and what to wake. A job that
// was accepted before the call is found, whatever becomes of it meanwhile: its place in the index stays, and so does its wish
// (G7). One that comes during the call may be spared. After an error, what is returned is cancelled.
func (s *Store) CancelWhere(ctx context.Context, name *string, by string, grace time.Duration) (ids []job.ID, woken []Woken, err error) {
	err = s.safely(ctx, s.allShards(), func() error { ids, woken, err = s.cancelWhere(ctx, name, by, grace); return err })
	return ids, woken, err
}

func (s *Store) cancelWhere(ctx context.Context, name *string, by string, grace time.Duration) ([]job.ID, []Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, nil, err
	}
	q := Query{Live: true}
	wanted, match := "", 0
	if name != nil {
		q.Name, wanted, match = *name, *name, 1 // the name may be a part of others: the script looks at it again
	}
	found, _, err := s.search(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	byShard := make([][]job.ID, s.keys.shards)
	for _, id := range found {
		byShard[s.keys.shardOf(id)] = append(byShard[s.keys.shardOf(id)], id)
	}
	var calls []cancelling
	for shard, ids := range byShard {
		for part := range slices.Chunk(ids, cancelCall) {
			calls = append(calls, cancelling{shard: shard, ids: part})
		}
	}
	var ids []job.ID
	epochs := map[int]int64{}
	for part := range slices.Chunk(calls, cancelPipe/cancelCall) {
		err := s.pipelined(ctx, s.lua.cancelWhere, func(pipe redis.Pipeliner) {
			for i, c := range part {
				args := []any{s.keys.prefix(c.shard), mustJSON(job.Cancel{At: now, By: by, Grace: grace}), wanted, match}
				for _, id := range c.ids {
					args = append(args, int64(id))
				}
				part[i].reply = s.lua.cancelWhere.EvalSha(ctx, pipe, []string{s.keys.due(c.shard), s.keys.chain(WatchChain(c.shard))}, args...)
			}
		})
		for _, c := range part {
			reply, _ := c.reply.Slice()
			for i, v := range reply {
				if i > 0 {
					ids, epochs[c.shard] = append(ids, job.ID(asInt(v))), asInt(reply[0])
				}
			}
		}
		if err != nil {
			return ids, wokenOf(epochs), unavailable("cancel", err)
		}
	}
	return ids, wokenOf(epochs), nil
}

// cancelling is one call of the script.
type cancelling struct {
	shard int
	ids   []job.ID
	reply *redis.Cmd
}

// wokenOf is what to wake, by shard and epoch.
func wokenOf(epochs map[int]int64) []Woken {
	var woken []Woken
	for _, shard := range slices.Sorted(maps.Keys(epochs)) {
		woken = append(woken, Woken{Shard: shard, Epoch: epochs[shard], Live: true, Known: true})
	}
	return woken
}

// Preempt writes the wish to lose the machine into a job's record.
func (s *Store) Preempt(ctx context.Context, id job.ID, notice time.Duration) (w Woken, err error) {
	err = s.safely(ctx, s.safeJobs(id), func() error { w, err = s.preempt(ctx, id, notice); return err })
	return w, err
}

func (s *Store) preempt(ctx context.Context, id job.ID, notice time.Duration) (Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return Woken{}, err
	}
	w, err := s.wake(ctx, id, wish{"preempt", mustJSON(job.Preempt{At: now, Notice: notice}), "set"})
	if err == nil && !w.Known {
		err = fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	return w, err
}

// followFor is how long one Follow keeps the looks quick.
const followFor = 15 * time.Second

// Follow says that somebody follows the logs, for the next fifteen seconds.
func (s *Store) Follow(ctx context.Context, id job.ID) (Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return Woken{}, err
	}
	return s.wake(ctx, id, wish{"follow", int64(now.Add(followFor)), "max"})
}

// DoubtAll is Doubt for many jobs. It returns one of them for each shard that has some which are not done.
func (s *Store) DoubtAll(ctx context.Context, ids []job.ID) ([]Woken, error) {
	shards := map[int]Woken{}
	for part := range slices.Chunk(ids, readAtOnce) {
		cmds := make([]*redis.Cmd, len(part))
		err := s.pipelined(ctx, s.lua.wake, func(pipe redis.Pipeliner) {
			for i, id := range part {
				shard := s.keys.shardOf(id)
				keys := []string{s.keys.of(id, "job"), s.keys.due(shard), s.keys.chain(WatchChain(shard))}
				cmds[i] = s.lua.wake.EvalSha(ctx, pipe, keys, int64(id), anyLife, "doubt", "now", "max")
			}
		})
		if err != nil {
			return nil, unavailable("doubt", err)
		}
		for i, c := range cmds {
			reply, err := c.Slice()
			if err != nil {
				return nil, unavailable("doubt", err)
			}
			if shard := s.keys.shardOf(part[i]); asInt(reply[1]) == 1 {
				shards[shard] = Woken{Shard: shard, Epoch: asInt(reply[0]), Live: true, Known: true}
			}
		}
	}
	return slices.Collect(maps.Values(shards)), nil
}

// Doubt says that the provider has lost a machine of the job: it is looked at now, with a view newer than this.
func (s *Store) Doubt(ctx context.Context, id job.ID) (Woken, error) {
	return s.wake(ctx, id, wish{"doubt", "now", "max"})
}

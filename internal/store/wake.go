package store

import (
	"context"
	"fmt"
	"time"

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

func (s *Store) wake(ctx context.Context, id job.ID, wishes ...wish) (Woken, error) {
	shard := s.keys.shardOf(id)
	keys := []string{s.keys.of(id, "job"), s.keys.due(shard), s.keys.chain(WatchChain(shard))}
	args := []any{int64(id)}
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

// Cancel writes the wish to end a job into its record (G7). The first wish stands. Grace below zero leaves it to the task.
func (s *Store) Cancel(ctx context.Context, id job.ID, by string, grace time.Duration) (Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return Woken{}, err
	}
	w, err := s.wake(ctx, id, wish{"cancel", mustJSON(job.Cancel{At: now, By: by, Grace: grace}), "once"})
	if err == nil && !w.Known {
		err = fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	return w, err
}

// CancelWhere cancels every live job, or those with a name, in one pass over the shards. It returns their ids and
// what to wake.
func (s *Store) CancelWhere(ctx context.Context, name *string, by string, grace time.Duration) ([]job.ID, []Woken, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted, match := "", 0
	if name != nil {
		wanted, match = *name, 1
	}
	value := mustJSON(job.Cancel{At: now, By: by, Grace: grace})
	var ids []job.ID
	var woken []Woken
	for shard := range s.keys.shards {
		keys := []string{s.keys.due(shard), s.keys.chain(WatchChain(shard))}
		reply, err := s.lua.cancelWhere.Run(ctx, s.rdb, keys, s.keys.prefix(shard), value, wanted, match).Slice()
		if err != nil {
			return ids, woken, unavailable("cancel", err)
		}
		for _, v := range reply[1:] {
			ids = append(ids, job.ID(asInt(v)))
		}
		if len(reply) > 1 {
			woken = append(woken, Woken{Shard: shard, Epoch: asInt(reply[0]), Live: true, Known: true})
		}
	}
	return ids, woken, nil
}

// Preempt writes the wish to lose the machine into a job's record.
func (s *Store) Preempt(ctx context.Context, id job.ID, notice time.Duration) (Woken, error) {
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

// Doubt says that the provider has lost a machine of the job: it is looked at now, with a view newer than this.
func (s *Store) Doubt(ctx context.Context, id job.ID) (Woken, error) {
	return s.wake(ctx, id, wish{"doubt", "now", "max"})
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Retired is a job as it is before it leaves the store, with all that is to be kept of it.
type Retired struct {
	Record  job.Record
	Request job.Request
	Past    []job.Attempt
	Events  []job.Event
}

// retireLook bounds the entries of an index that one call looks at: machines that do not close keep their jobs.
const retireLook = 1000

// RetireRest is how long a job that was resumed stays after its end at least. Whoever writes a job to the archive must have
// given up within it: what was read before the job was resumed would else be written over its second end.
const RetireRest = time.Minute

// Retirable names up to most jobs that may leave the store: those that ended before a time, those beyond the number that
// may stay, those that ended first first, and those whose logs are due by their own retention. Zero for most that may stay
// is no limit.
func (s *Store) Retirable(ctx context.Context, before job.Time, stay int64, most int) ([]job.ID, error) {
	cmds := make([]*redis.Cmd, s.keys.shards)
	err := s.pipelined(ctx, s.lua.retirable, func(pipe redis.Pipeliner) {
		for shard := range cmds {
			keys := []string{s.keys.prefix(shard) + "ended", s.keys.due(shard), s.keys.prefix(shard) + "brief", s.keys.hooks(shard)}
			cmds[shard] = s.lua.retirable.EvalSha(ctx, pipe, keys, s.keys.prefix(shard), most, retireLook, ms(RetireRest))
		}
	})
	if err != nil {
		return nil, unavailable("look for ended jobs", err)
	}
	type ended struct {
		id job.ID
		at job.Time
	}
	var all []ended
	surplus := -stay
	for _, c := range cmds {
		reply, err := c.Slice()
		if err != nil {
			return nil, unavailable("look for ended jobs", err)
		}
		surplus += asInt(reply[0])
		for i := 1; i+1 < len(reply); i += 2 {
			all = append(all, ended{job.ID(asInt(reply[i])), job.Time(asInt(reply[i+1]))})
		}
	}
	slices.SortFunc(all, func(a, b ended) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	var ids []job.ID
	for _, e := range all {
		if slices.Contains(ids, e.id) {
			continue // it is there for its logs already
		}
		beyond := stay > 0 && int64(len(ids)) < surplus
		if len(ids) == most || e.at >= before && !beyond {
			break
		}
		ids = append(ids, e.id)
	}
	return ids, nil
}

// LoadAll reads all that is known about a job.
func (s *Store) LoadAll(ctx context.Context, id job.ID) (Retired, error) {
	var all Retired
	var err error
	if all.Record, err = s.Load(ctx, id); err != nil {
		return all, err
	}
	if all.Request, err = s.Request(ctx, id); err != nil {
		return all, err
	}
	if all.Past, err = s.Past(ctx, id); err != nil {
		return all, err
	}
	all.Events, err = s.Events(ctx, id)
	return all, err
}

// Retire deletes a job that is in the archive. It reports whether the job is gone: one that was resumed, or has changed
// otherwise since it was read, stays.
func (s *Store) Retire(ctx context.Context, r *Retired) (bool, error) {
	id := r.Record.ID
	prefix := s.keys.prefix(s.keys.shardOf(id))
	keys := []string{
		s.keys.of(id, "job"), prefix + "ended", prefix + "brief", s.keys.blocks(s.keys.shardOf(id)), s.keys.hooks(s.keys.shardOf(id)),
		s.keys.of(id, "ev"), s.keys.of(id, "past"), s.keys.of(id, "req"), s.keys.of(id, "sec"), s.keys.of(id, "jrn"), s.LeaseKey(id), s.keys.of(id, "out"), s.keys.of(id, "hook"),
	}
	for _, list := range [][]job.Attempt{r.Past, r.Record.Live} {
		for _, a := range list {
			keys = append(keys, s.tailKeys(id, a.Task, a.Number)...)
		}
	}
	gone, err := s.lua.retire.Run(ctx, s.rdb, keys, int64(id), r.Record.Seq, states(&r.Record), len(r.Events), len(r.Past),
		prefix, s.keys.shards, string(r.Record.Status())).Int()
	if err != nil {
		return false, unavailable(fmt.Sprintf("retire job %d", id), err)
	}
	return gone == 1, nil
}

// Forget takes a job that has left the store out of what is to be retired, and reports whether it has.
func (s *Store) Forget(ctx context.Context, id job.ID) (bool, error) {
	return s.Retire(ctx, &Retired{Record: job.Record{Head: job.Head{ID: id}}}) // a record that is there is another one, and stays
}

// Defer puts off the retirement of a job that cannot be read, as if it had ended now, so that it keeps no other back.
func (s *Store) Defer(ctx context.Context, id job.ID) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	prefix := s.keys.prefix(s.keys.shardOf(id))
	pipe := s.rdb.Pipeline()
	pipe.ZAddXX(ctx, prefix+"ended", redis.Z{Score: float64(now), Member: int64(id)})
	pipe.ZRem(ctx, prefix+"brief", int64(id))
	if _, err := pipe.Exec(ctx); err != nil {
		return unavailable("put off a retirement", err)
	}
	return nil
}

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Retired is a job as it is before it leaves the store, with all that is to be kept of it.
type Retired struct {
	Record  job.Record
	Request job.Request
	Past    []job.Attempt
	Events  []job.Event
	Journal []byte // what workers have logged about it
}

// retireLook bounds the entries of an index that one call looks at.
const retireLook = 200

// Retirable names up to most jobs that may leave the store: those that ended before a time, those beyond the number that
// may stay, those that ended first first, and those whose logs are due by their own retention. Zero for most that may stay
// is no limit. Jobs that must stay, since they have news to tell or machines that do not close, are passed over, however many
// there are.
func (s *Store) Retirable(ctx context.Context, before job.Time, stay int64, most int) ([]job.ID, error) {
	all, total, err := s.endedFirst(ctx, most)
	if err != nil {
		return nil, err
	}
	surplus := total - stay
	slices.SortFunc(all, func(a, b ended) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	var ids []job.ID
	known := map[job.ID]bool{}
	for _, e := range all {
		if known[e.id] {
			continue // it is there for its logs already
		}
		beyond := stay > 0 && int64(len(ids)) < surplus
		if len(ids) == most || e.at >= before && !beyond {
			break
		}
		ids, known[e.id] = append(ids, e.id), true
	}
	return ids, nil
}

// ended is a job that may leave the store, and when it ended.
type ended struct {
	id job.ID
	at job.Time
}

// endedFirst are jobs that may leave the store: of each shard as many of those that ended first as it takes to know the first
// of all shards, and how many jobs have ended.
func (s *Store) endedFirst(ctx context.Context, most int) (all []ended, total int64, err error) {
	shards := make([]int, s.keys.shards)
	for shard := range shards {
		shards[shard] = shard
	}
	for from := 0; len(shards) > 0; from += retireLook {
		cmds := make([]*redis.Cmd, len(shards))
		err := s.pipelined(ctx, s.lua.retirable, func(pipe redis.Pipeliner) {
			for i, shard := range shards {
				keys := []string{s.keys.prefix(shard) + "ended", s.keys.due(shard), s.keys.prefix(shard) + "brief", s.keys.hooks(shard)}
				cmds[i] = s.lua.retirable.EvalSha(ctx, pipe, keys, most, retireLook, from)
			}
		})
		if err != nil {
			return nil, 0, unavailable("look for ended jobs", err)
		}
		var open []int // shards where all that was looked at must stay: what may go is behind it
		for i, c := range cmds {
			reply, err := c.Slice()
			if err != nil {
				return nil, 0, unavailable("look for ended jobs", err)
			}
			if from == 0 {
				total += asInt(reply[0])
			}
			if len(reply) == 2 && asInt(reply[1]) == 1 {
				open = append(open, shards[i])
			}
			for j := 2; j+1 < len(reply); j += 2 {
				all = append(all, ended{job.ID(asInt(reply[j])), job.Time(asInt(reply[j+1]))})
			}
		}
		shards = open
	}
	return all, total, nil
}

// LoadAll reads all that is known about a job.
func (s *Store) LoadAll(ctx context.Context, id job.ID) (Retired, error) {
	all, errs := s.LoadAllOf(ctx, []job.ID{id})
	return all[0], errs[0]
}

// LoadAllOf reads all that is known about some jobs, in one round trip. Each has an error of its own.
func (s *Store) LoadAllOf(ctx context.Context, ids []job.ID) ([]Retired, []error) {
	pipe := s.rdb.Pipeline()
	replies := make([]wholeReply, len(ids))
	for i, id := range ids {
		replies[i] = wholeReply{
			pipe.HGetAll(ctx, s.keys.of(id, "job")), pipe.ZScore(ctx, s.keys.due(s.keys.shardOf(id)), strconv.FormatInt(int64(id), 10)),
			pipe.Get(ctx, s.keys.of(id, "req")), pipe.Get(ctx, s.keys.of(id, "jrn")),
			pipe.LRange(ctx, s.keys.of(id, "past"), 0, -1), pipe.LRange(ctx, s.keys.of(id, "ev"), 0, -1),
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	all, errs := make([]Retired, len(ids)), make([]error, len(ids))
	for i, id := range ids {
		all[i], errs[i] = replies[i].parse(id)
	}
	return all, errs
}

// wholeReply is what Redis tells of a job.
type wholeReply struct {
	record       *redis.MapStringStringCmd
	due          *redis.FloatCmd
	request, jrn *redis.StringCmd
	past, events *redis.StringSliceCmd
}

func (w *wholeReply) parse(id job.ID) (all Retired, err error) {
	raw, err := w.record.Result()
	switch {
	case err != nil && redis.HasErrorPrefix(err, wrongType):
		return all, &CorruptError{ID: id, Err: err}
	case err != nil:
		return all, unavailable("load", err)
	case len(raw) == 0:
		return all, fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	var corrupt *CorruptError
	if all.Record, corrupt = decode(id, raw); corrupt != nil {
		return all, corrupt
	}
	all.Record.Due = job.Time(w.due.Val()) // jobs that are done are in no due index
	if all.Request, err = parseRequest(id, w.request); err != nil {
		return all, err
	}
	if all.Past, err = parseList[job.Attempt](fmt.Sprintf("the attempts of job %d", id), w.past); err != nil {
		return all, err
	}
	if all.Events, err = parseList[job.Event](fmt.Sprintf("the history of job %d", id), w.events); err != nil {
		return all, err
	}
	all.Events = slices.Insert(all.Events, 0, submitted(&all.Record.Head))
	if all.Journal, err = w.jrn.Bytes(); err != nil && !errors.Is(err, redis.Nil) {
		return all, unavailable("read the journal", err)
	}
	return all, nil
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
	gone, err := s.lua.retire.Run(ctx, s.rdb, keys, int64(id), r.Record.Seq, states(&r.Record), len(r.Events)-1, len(r.Past), // the first event is not stored
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

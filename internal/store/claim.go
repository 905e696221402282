package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Claimed is a job that the caller drives until its claim ends.
type Claimed struct {
	job.Record
	Now   job.Time // by the store's clock when the claim was made
	Token string   // of the act's lease; empty for the watch
	raw   fields   // as read, to commit only what changed
}

// Overdue is a job whose next act may have been lost, or is due again after a wait.
type Overdue struct {
	Act        // that must exist
	Ran  int64 // number of the act that last began
	Slot bool  // it waits for a launch slot
	Over bool  // a limit of the user is reached: it must be driven, whatever it waits for
}

// Due is what one claim of the watch found.
type Due struct {
	Now     job.Time
	Until   job.Time // of the claims
	Jobs    []Claimed
	Calm    []Calm // only taken: they are not held, and nothing may be committed to them
	Acts    []Overdue
	Corrupt []*CorruptError
}

// Len is how many entries of the index were taken.
func (d Due) Len() int { return len(d.Jobs) + len(d.Calm) + len(d.Acts) + len(d.Corrupt) }

// Claim takes up to limit jobs of a shard that are due, or will be so early, for lease. Jobs at a step that is driven by
// an act are reported as Overdue and looked at again after grace.
func (s *Store) Claim(ctx context.Context, shard, limit int, early, lease, grace time.Duration) (Due, error) {
	return s.claim(ctx, shard, lease, limit, ms(lease), ms(grace), ms(corruptPause), ms(early), s.raise(), 0)
}

// Take is Claim, but calm jobs are only taken: whoever asks their agents and hears nothing new calls [Store.Rest], else
// [Store.ClaimThese].
func (s *Store) Take(ctx context.Context, shard, limit int, early, lease, grace time.Duration) (Due, error) {
	return s.claim(ctx, shard, lease, limit, ms(lease), ms(grace), ms(corruptPause), ms(early), s.raise(), 1)
}

// ClaimThese claims jobs of a shard whether they are due or not, unless somebody holds them.
func (s *Store) ClaimThese(ctx context.Context, shard int, lease, grace time.Duration, ids ...job.ID) (Due, error) {
	args := []any{len(ids), ms(lease), ms(grace), ms(corruptPause), 0, s.raise(), 0}
	for _, id := range ids {
		args = append(args, int64(id))
	}
	return s.claim(ctx, shard, lease, args...)
}

func (s *Store) claim(ctx context.Context, shard int, lease time.Duration, args ...any) (Due, error) {
	reply, err := s.lua.claim.Run(ctx, s.rdb, []string{s.keys.due(shard)}, append([]any{s.keys.prefix(shard)}, args...)...).Slice()
	if err != nil {
		return Due{}, unavailable("claim", err)
	}
	due := Due{Now: job.Time(asInt(reply[0]))}
	due.Until = due.Now.Add(lease)
	claimed := map[job.ID]hold{}
	for _, e := range reply[1:] {
		entry, _ := e.([]any)
		id := job.ID(asInt(entry[0]))
		switch rest := entry[2:]; asString(entry[1]) {
		case "claimed":
			claimed[id] = hold{fence: asString(rest[0]), due: job.Time(asInt(rest[1]))}
		case "calm":
			due.addCalm(id, asString(rest[0]), job.Time(asInt(rest[1])))
		case "act":
			due.addAct(Overdue{Act: actOf(id, rest[0], rest[1], rest[3]), Ran: asInt(rest[2]), Slot: asInt(rest[4]) == 1, Over: asInt(rest[5]) == 1})
		default:
			due.Corrupt = append(due.Corrupt, &CorruptError{ID: id, Err: errors.New(asString(rest[0]))})
		}
	}
	if err := s.readClaimed(ctx, &due, claimed); err != nil {
		return Due{}, err // they are due again when their claims end
	}
	return due, nil
}

// step is by how much a claim raises the fence. It is random: a Redis that has lost its last second would else give the same
// fence twice, to a driver that goes on and to the one that comes after it, and take the commits of both.
func step() int64 { return 1 + rand.Int64N(1<<20) }

// Raising is the same store with other steps, for who has to know them beforehand.
func (s *Store) Raising(step func() int64) *Store {
	c := *s
	c.raise = step
	return &c
}

// hold is a claim that was just made.
type hold struct {
	fence string
	due   job.Time
}

// readClaimed reads the records that were just claimed, in one round trip. One that somebody else has claimed since, which
// takes a claim's whole life, is left to them.
func (s *Store) readClaimed(ctx context.Context, due *Due, claimed map[job.ID]hold) error {
	if len(claimed) == 0 {
		return nil
	}
	pipe := s.rdb.Pipeline()
	hashes := make(map[job.ID]*redis.MapStringStringCmd, len(claimed))
	for id := range claimed {
		hashes[id] = pipe.HGetAll(ctx, s.keys.of(id, "job"))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return unavailable("read what was claimed", err)
	}
	var damaged []parked
	for id, hash := range hashes {
		raw := fields(hash.Val())
		if raw["fence"] != claimed[id].fence {
			continue
		}
		rec, err := decode(id, raw)
		if err != nil {
			due.Corrupt = append(due.Corrupt, err)
			damaged = append(damaged, parked{id, raw["fence"]})
			continue
		}
		rec.Due = claimed[id].due
		due.Jobs = append(due.Jobs, Claimed{Record: rec, Now: due.Now, raw: raw})
	}
	s.park(ctx, damaged...)
	return nil
}

// addAct takes an overdue act, if there is such a step.
func (d *Due) addAct(o Overdue) {
	if !o.Step.Acts() {
		d.Corrupt = append(d.Corrupt, &CorruptError{ID: o.ID, Err: fmt.Errorf("step %q", o.Step)})
		return
	}
	d.Acts = append(d.Acts, o)
}

// corruptPause is how long a damaged record is left alone: it stays in the index, so that it is reported again and
// driven on when somebody has mended it, but not at the pace of a claim that ends.
const corruptPause = 10 * time.Minute

// parked is a claim on a damaged record.
type parked struct {
	id    job.ID
	fence string
}

// park gives back claims on damaged records and puts off the next look at them; a wake still brings it at once. A job that
// somebody has claimed since, or that has left the store, is left alone. If it fails they are only looked at sooner, when
// their claims end.
func (s *Store) park(ctx context.Context, damaged ...parked) {
	if len(damaged) == 0 {
		return
	}
	_ = s.pipelined(ctx, s.lua.park, func(pipe redis.Pipeliner) {
		for _, p := range damaged {
			keys := []string{s.keys.of(p.id, "job"), s.keys.due(s.keys.shardOf(p.id))}
			s.lua.park.EvalSha(ctx, pipe, keys, int64(p.id), p.fence, ms(corruptPause))
		}
	})
}

// Begin begins act n of a step under a lease with that token. ErrStale means that the act is not to be: end quietly. A
// record that cannot be read is a [CorruptError].
func (s *Store) Begin(ctx context.Context, id job.ID, step job.Step, n int64, token string, lease time.Duration) (Claimed, error) {
	if !step.Acts() {
		return Claimed{}, fmt.Errorf("begin %s %d of job %d: %w", step, n, id, ErrStale)
	}
	keys := []string{s.keys.of(id, "job"), s.keys.due(s.keys.shardOf(id)), s.LeaseKey(id)}
	reply, err := s.lua.begin.Run(ctx, s.rdb, keys, int64(id), string(step), n, token, ms(lease), s.raise()).Slice()
	if err != nil {
		return Claimed{}, unavailable("begin", err)
	}
	if asString(reply[0]) != "ok" {
		return Claimed{}, fmt.Errorf("begin %s %d of job %d: %w", step, n, id, ErrStale)
	}
	raw, now := asFields(reply[2]), job.Time(asInt(reply[1]))
	rec, corrupt := decode(id, raw)
	if corrupt != nil {
		s.park(ctx, parked{id, raw["fence"]})
		return Claimed{}, corrupt
	}
	return Claimed{Record: rec, Now: now, Token: token, raw: raw}, nil
}

// Beat prolongs an act's claim. It tells whether the user has cancelled meanwhile.
func (s *Store) Beat(ctx context.Context, id job.ID, fence int64, lease time.Duration) (cancelled bool, err error) {
	keys := []string{s.keys.of(id, "job"), s.keys.due(s.keys.shardOf(id))}
	reply, err := s.lua.beat.Run(ctx, s.rdb, keys, int64(id), fence, ms(lease)).Slice()
	if err != nil {
		return false, unavailable("beat", err)
	}
	if asString(reply[0]) != "ok" {
		return false, fmt.Errorf("beat of job %d: %w", id, ErrStale)
	}
	return asString(reply[1]) != "", nil
}

// Redispatch makes the next act of an overdue job and returns its number, or 0 if somebody was faster. As long as that
// act has not begun, the same call returns the same number.
func (s *Store) Redispatch(ctx context.Context, o Overdue, grace time.Duration) (int64, error) {
	if !o.Step.Acts() {
		return 0, nil
	}
	keys := []string{s.keys.of(o.ID, "job"), s.keys.due(s.keys.shardOf(o.ID))}
	n, err := s.lua.redispatch.Run(ctx, s.rdb, keys, int64(o.ID), string(o.Step), o.N, o.Ran, ms(grace)).Int64()
	if err != nil {
		return 0, unavailable("redispatch", err)
	}
	return n, nil
}

// Handover gives a claim back unfinished, so that another worker takes the job at once. It returns the epoch of the
// shard's watch chain, to run its tick now; zero if the claim was lost already.
func (s *Store) Handover(ctx context.Context, c *Claimed) (int64, error) {
	shard := s.keys.shardOf(c.ID)
	keys := []string{s.keys.of(c.ID, "job"), s.keys.due(shard), s.LeaseKey(c.ID), s.keys.chain(WatchChain(shard))}
	reply, err := s.lua.handover.Run(ctx, s.rdb, keys, int64(c.ID), c.Fence, c.Token).Text()
	if err != nil {
		return 0, unavailable("hand over", err)
	}
	epoch, _ := strconv.ParseInt(reply, 10, 64)
	return epoch, nil
}

// Load reads a job.
func (s *Store) Load(ctx context.Context, id job.ID) (job.Record, error) {
	pipe := s.rdb.Pipeline()
	hash := pipe.HGetAll(ctx, s.keys.of(id, "job"))
	due := pipe.ZScore(ctx, s.keys.due(s.keys.shardOf(id)), strconv.FormatInt(int64(id), 10))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // done jobs are in no due index
		return job.Record{}, unavailable("load", err)
	}
	if len(hash.Val()) == 0 {
		return job.Record{}, fmt.Errorf("job %d: %w", id, ErrNotFound)
	}
	rec, corrupt := decode(id, hash.Val())
	if corrupt != nil {
		return rec, corrupt
	}
	rec.Due = job.Time(due.Val())
	return rec, nil
}

func asInt(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case string:
		i, _ := strconv.ParseInt(n, 10, 64)
		return i
	default:
		return 0
	}
}

func asString(v any) string {
	s, _ := v.(string)
	return s
}

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// News of jobs that have somebody to tell wait in an outbox, which the commit that makes them writes. Beside it stands how far
// each receiver has come. An index says which jobs have news, and when the next delivery is due.
//
//	out:<job>    list of job.News           hook:<job>  base   number of the first news in the list
//	hooks        index: job -> due                      p:<r>  number of the next news for receiver r
//	                                                    s:<r>  the rest of its state
//	                                                    n, held, holder  of the delivery that was begun last
//
// The outbox keeps the last 200 news. Jobs without receivers have none of this.

// appendNews appends what a record's outbox tells to the arguments of a script.
func appendNews(args []any, r *job.Record) []any {
	news := job.NewsOf(r)
	args = append(args, len(news))
	for _, n := range news {
		args = append(args, mustJSON(n))
	}
	return args
}

// firstNews is that of a submission, or "" if nobody is to be told.
func firstNews(r job.Record, e job.Event) any {
	r.Events = []job.Event{e}
	for _, n := range job.NewsOf(&r) {
		return mustJSON(n)
	}
	return ""
}

// HookDue is a job with news, and the number of the delivery that must exist.
type HookDue struct {
	ID job.ID
	N  int64
}

// HooksDue returns up to limit jobs of each shard whose news were to be delivered so long ago, and puts them off for the grace:
// their deliveries are being made.
func (s *Store) HooksDue(ctx context.Context, limit int64, ago, grace time.Duration) ([]HookDue, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	pipe := s.rdb.Pipeline()
	found := make([]*redis.StringSliceCmd, s.keys.shards)
	for shard := range found {
		found[shard] = pipe.ZRangeByScore(ctx, s.keys.hooks(shard), &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(int64(now.Add(-ago)), 10), Count: limit})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable("look for news", err)
	}
	var ids []job.ID
	for _, f := range found {
		for _, m := range f.Val() {
			id, _ := strconv.ParseInt(m, 10, 64)
			ids = append(ids, job.ID(id))
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	pipe = s.rdb.Pipeline()
	counts := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		counts[i] = pipe.HGet(ctx, s.keys.of(id, "hook"), "n")
		pipe.ZAddXX(ctx, s.keys.hooks(s.keys.shardOf(id)), redis.Z{Score: float64(now.Add(grace)), Member: int64(id)})
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable("look for news", err)
	}
	due := make([]HookDue, len(ids))
	for i, id := range ids {
		due[i] = HookDue{ID: id, N: asInt(counts[i].Val()) + 1}
	}
	return due, nil
}

// Hook is the claim on a job's news.
type Hook struct {
	ID    job.ID
	Now   job.Time
	Base  int64 // number of the first of News
	News  []job.News
	token string
	raw   fields
}

// End is the number after the last news.
func (h *Hook) End() int64 { return h.Base + int64(len(h.News)) }

// Of reads how far a receiver has come: the number of its next news, and the rest of its state into state.
func (h *Hook) Of(receiver string, state any) (int64, error) {
	if text := h.raw["s:"+receiver]; text != "" {
		if err := json.Unmarshal([]byte(text), state); err != nil {
			return 0, fmt.Errorf("read the state of %s of job %d: %w", receiver, h.ID, err)
		}
	}
	return max(asInt(h.raw["p:"+receiver]), h.Base), nil
}

// ClaimHook begins delivery n of a job's news. ErrStale means that it is not to be: end quietly.
func (s *Store) ClaimHook(ctx context.Context, due HookDue, token string, lease time.Duration) (*Hook, error) {
	id := due.ID
	keys := []string{s.keys.of(id, "hook"), s.keys.of(id, "out"), s.keys.hooks(s.keys.shardOf(id)), s.keys.of(id, "job")}
	reply, err := s.lua.hookClaim.Run(ctx, s.rdb, keys, int64(id), due.N, token, ms(lease)).Slice()
	if err != nil {
		return nil, unavailable("claim news", err)
	}
	if len(reply) == 0 {
		return nil, fmt.Errorf("delivery %d of job %d: %w", due.N, id, ErrStale)
	}
	h := &Hook{ID: id, Now: job.Time(asInt(reply[0])), Base: asInt(reply[1]), token: token, raw: asFields(reply[2])}
	lines, _ := reply[3].([]any)
	for _, line := range lines {
		var n job.News
		if err := json.Unmarshal([]byte(asString(line)), &n); err != nil {
			n = job.News{Event: job.Event{Kind: "damaged"}} // keeps its number; nobody is told of it
		}
		h.News = append(h.News, n)
	}
	return h, nil
}

// SaveHook writes how far a receiver has come, with a note for the history if there is one, and prolongs the claim.
func (s *Store) SaveHook(ctx context.Context, h *Hook, receiver string, next int64, state any, note *job.Event, lease time.Duration) error {
	keys := []string{s.keys.of(h.ID, "hook"), s.keys.hooks(s.keys.shardOf(h.ID)), s.keys.of(h.ID, "ev")}
	line := []byte{}
	if note != nil {
		line = mustJSON(note)
	}
	ok, err := s.lua.hookSave.Run(ctx, s.rdb, keys, int64(h.ID), h.token, ms(lease), receiver, next, mustJSON(state), line).Int64()
	return hookResult("save a delivery", h.ID, ok, err)
}

// ReleaseHook gives the claim back. Due is when one of the receivers is to be tried next. What all of them have heard is
// dropped; without receivers, since nobody can say who they are, all news are kept.
func (s *Store) ReleaseHook(ctx context.Context, h *Hook, receivers []string, due job.Time) error {
	id := h.ID
	keys := []string{s.keys.of(id, "hook"), s.keys.of(id, "out"), s.keys.hooks(s.keys.shardOf(id)), s.keys.of(id, "job"), s.keys.of(id, "sec")}
	args := []any{int64(id), h.token, h.End(), int64(due)}
	for _, r := range receivers {
		args = append(args, r)
	}
	ok, err := s.lua.hookRelease.Run(ctx, s.rdb, keys, args...).Int64()
	return hookResult("release the news", id, ok, err)
}

func hookResult(doing string, id job.ID, ok int64, err error) error {
	switch {
	case err != nil:
		return unavailable(doing, err)
	case ok == 0:
		return fmt.Errorf("%s of job %d: %w", doing, id, ErrStale)
	default:
		return nil
	}
}

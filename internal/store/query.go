package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Request reads what a user asked for.
func (s *Store) Request(ctx context.Context, id job.ID) (job.Request, error) {
	return parseRequest(id, s.rdb.Get(ctx, s.keys.of(id, "req")))
}

func parseRequest(id job.ID, c *redis.StringCmd) (job.Request, error) {
	b, err := c.Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return job.Request{}, fmt.Errorf("request of job %d: %w", id, ErrNotFound)
	case err != nil:
		return job.Request{}, unavailable("read the request", err)
	}
	var r job.Request
	if err := json.Unmarshal(b, &r); err != nil {
		return r, &CorruptError{ID: id, Err: fmt.Errorf("request: %w", err)}
	}
	return r, nil
}

// Secrets reads a job's sealed secrets; nil if it has none.
func (s *Store) Secrets(ctx context.Context, id job.ID) ([]byte, error) {
	b, err := s.rdb.Get(ctx, s.keys.of(id, "sec")).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable("read the secrets", err)
	}
	return b, nil
}

// Events reads a job's history, oldest first.
func (s *Store) Events(ctx context.Context, id job.ID) ([]job.Event, error) {
	pipe := s.rdb.Pipeline()
	head := pipe.HGet(ctx, s.keys.of(id, "job"), "head")
	list := pipe.LRange(ctx, s.keys.of(id, "ev"), 0, -1)
	_, _ = pipe.Exec(ctx) // each command has its own error
	events, err := parseList[job.Event](s.keys.of(id, "ev"), list)
	if err != nil {
		return nil, err
	}
	var h job.Head
	if json.Unmarshal([]byte(head.Val()), &h) == nil { // else the record is damaged, and its history still worth telling
		events = slices.Insert(events, 0, submitted(&h))
	}
	return events, nil
}

// Past reads a job's attempts that are gone, oldest first.
func (s *Store) Past(ctx context.Context, id job.ID) ([]job.Attempt, error) {
	return readList[job.Attempt](ctx, s, s.keys.of(id, "past"))
}

func readList[T any](ctx context.Context, s *Store, key string) ([]T, error) {
	return parseList[T](key, s.rdb.LRange(ctx, key, 0, -1))
}

func parseList[T any](key string, list *redis.StringSliceCmd) ([]T, error) {
	lines, err := list.Result()
	if err != nil {
		return nil, unavailable("read "+key, err)
	}
	out := make([]T, 0, len(lines))
	for _, line := range lines {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// wrongType begins Redis's answer to a command for another type than the key's.
const wrongType = "WRONGTYPE"

// LoadMany reads jobs by id, in as few round trips as their answers allow. Unknown ones are missing from the answer; damaged ones are named apart, so
// that nobody takes them for unknown.
func (s *Store) LoadMany(ctx context.Context, ids []job.ID) (known map[job.ID]job.Record, damaged map[job.ID]error, err error) {
	known, damaged = map[job.ID]job.Record{}, map[job.ID]error{}
	for part := range slices.Chunk(ids, readAtOnce) {
		if err := s.loadInto(ctx, part, known, damaged); err != nil {
			return nil, nil, err
		}
	}
	return known, damaged, nil
}

// readAtOnce bounds the records in one pipeline: its answer must come within the time that the client waits for one.
const readAtOnce = 1000

func (s *Store) loadInto(ctx context.Context, ids []job.ID, known map[job.ID]job.Record, damaged map[job.ID]error) error {
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		cmds[i] = pipe.HGetAll(ctx, s.keys.of(id, "job"))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, c := range cmds {
		switch {
		case c.Err() != nil && redis.HasErrorPrefix(c.Err(), wrongType):
			damaged[ids[i]] = &CorruptError{ID: ids[i], Err: c.Err()}
			continue
		case c.Err() != nil:
			return unavailable("load", c.Err())
		case len(c.Val()) == 0:
			continue
		}
		rec, err := decode(ids[i], c.Val())
		if err != nil {
			damaged[ids[i]] = err
			continue
		}
		known[ids[i]] = rec
	}
	return nil
}

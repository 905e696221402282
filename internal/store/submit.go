package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// firstDue is when the watch looks whether a new job's first act exists: submission makes it at once for those that
// get a launch slot, so this is only for a client that died in between.
const firstDue = 2 * time.Second

// keyLife is how long an idempotency key is remembered.
const keyLife = 30 * 24 * time.Hour

// Submission is what a client hands in: n jobs of one request.
type Submission struct {
	Request job.Request
	Sealed  []byte // secrets, sealed for the deployment's recipient; nil for none
	Count   int    // 0 counts as 1
	Key     string // the same key again gives the same jobs; "" for none
}

// KeyTakenError says that an idempotency key was used for another request.
type KeyTakenError struct {
	Key string
	ID  job.ID
}

func (e *KeyTakenError) Error() string {
	return fmt.Sprintf("the key %q was used before for job %d, with another job file", e.Key, e.ID)
}

// batch bounds the jobs in one call of a script: one that runs long stalls everybody.
const batch = 250

// Submit writes new jobs and returns their ids in order. It costs a constant number of round trips per batch. Whatever is
// repeated, by go-redis or by a user with the same key, makes no second job.
func (s *Store) Submit(ctx context.Context, sub Submission) ([]job.ID, error) {
	count := max(sub.Count, 1)
	pipe := s.rdb.Pipeline()
	last := pipe.IncrBy(ctx, deploymentPrefix+"id", int64(count))
	clock := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable("number the job", err)
	}
	first := job.ID(last.Val() - int64(count) + 1)
	sub.Request.Count = count
	if sub.Key != "" {
		var err error
		if first, err = s.takeKey(ctx, sub, first); err != nil {
			return nil, err
		}
	}
	ids := make([]job.ID, count)
	byShard := map[int][]job.ID{}
	for i := range ids {
		ids[i] = first + job.ID(i)
		byShard[s.keys.shardOf(ids[i])] = append(byShard[s.keys.shardOf(ids[i])], ids[i])
	}
	if err := s.writeNew(ctx, sub, first, byShard, job.TimeOf(clock.Val())); err != nil {
		return nil, err
	}
	return ids, nil
}

// takeKey binds a key to the ids, or returns the first id it was bound to before.
func (s *Store) takeKey(ctx context.Context, sub Submission, first job.ID) (job.ID, error) {
	sum := sha256.Sum256(mustJSON(sub.Request))
	value := strconv.FormatInt(int64(first), 10) + " " + hex.EncodeToString(sum[:8])
	key := deploymentPrefix + "key:" + sub.Key
	old, err := s.rdb.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", Get: true, TTL: keyLife}).Result()
	switch {
	case errors.Is(err, redis.Nil): // it was free
		return first, nil
	case err != nil:
		return 0, unavailable("take the key", err)
	}
	var id int64
	var hash string
	if _, err := fmt.Sscanf(old, "%d %s", &id, &hash); err != nil {
		return 0, fmt.Errorf("the key %q is damaged: %q", sub.Key, old)
	}
	if hash != hex.EncodeToString(sum[:8]) {
		return 0, &KeyTakenError{Key: sub.Key, ID: job.ID(id)}
	}
	return job.ID(id), nil
}

func (s *Store) writeNew(ctx context.Context, sub Submission, first job.ID, byShard map[int][]job.ID, now job.Time) error {
	if err := s.lua.submit.Load(ctx, s.rdb).Err(); err != nil { // a pipeline cannot fall back from EVALSHA to EVAL
		return unavailable("load the submit script", err)
	}
	pipe := s.rdb.Pipeline()
	for shard, ids := range byShard {
		for from := 0; from < len(ids); from += batch {
			args, err := s.newArgs(sub, first, shard, ids[from:min(from+batch, len(ids))], now)
			if err != nil {
				return err
			}
			s.lua.submit.EvalSha(ctx, pipe, []string{s.keys.due(shard)}, args...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return unavailable("write the job", err)
	}
	return nil
}

// newArgs are the arguments of the submit script.
func (s *Store) newArgs(sub Submission, first job.ID, shard int, ids []job.ID, now job.Time) ([]any, error) {
	args := []any{s.keys.prefix(shard), ms(firstDue), nil}
	for _, id := range ids {
		req := sub.Request
		req.Rank = int(id - first)
		rec := job.NewRecord(job.HeadOf(id, req, now))
		f, err := encode(&rec)
		if err != nil {
			return nil, err
		}
		f["head"] = string(mustJSON(rec.Head))
		for _, zero := range []string{"ran", "fence", "seq", "wakes", "held"} {
			f[zero] = "0"
		}
		args[2] = len(f)
		event := job.Event{At: now, Kind: "status", To: string(job.Pending), Cause: job.Cause{Text: "submitted"}}
		args = append(args, int64(id), mustJSON(req), sub.Sealed, mustJSON(event))
		for k, v := range f {
			args = append(args, k, v)
		}
	}
	return args, nil
}

// mustJSON encodes our own types, which always can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

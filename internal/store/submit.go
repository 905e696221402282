package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// firstDue is when the watch looks whether a new job's first act exists: submission makes it at once for those that
// get a launch slot, so this is only for a client that died in between.
const firstDue = 2 * time.Second

const (
	// keyLife is how long an idempotency key is remembered.
	keyLife = 30 * 24 * time.Hour
	// madeLife is how long the ids of a key's jobs are remembered when all are written, for who is still writing them.
	madeLife = time.Hour
)

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

const (
	// batch bounds the jobs in one call of a script: one that runs long stalls everybody.
	batch = 250
	// flight bounds the jobs in one pipeline, and so the memory that a large submission takes.
	flight = 10_000
)

// numberTries is how often ids are taken that turn out to be those of other jobs, until somebody has to look at the store.
const numberTries = 12

// Submit writes new jobs and returns their ids in order. It costs a constant number of round trips per 10,000 jobs.
// Whatever is repeated, by go-redis or by a user with the same key, makes no second job. After an error some of the jobs
// may have been written: with a key, the same submission again completes them. An [UnsafeError] beside the ids says that the
// jobs are accepted and too few replicas have them so far.
func (s *Store) Submit(ctx context.Context, sub Submission) (ids []job.ID, err error) {
	if sub.Key == "" && s.deploy.Replicas > 0 {
		sub.Key = ulid.Make().String() // so that it can be repeated after a failover
	}
	again := false
	err = s.safely(ctx, s.allShards(), func() error {
		ids, err = s.submit(ctx, sub, again)
		again = true
		return err
	})
	return ids, err
}

// submit writes new jobs. again says that this was done a moment ago, and that some of it may have been lost since: what a key
// says of it does not count.
func (s *Store) submit(ctx context.Context, sub Submission, again bool) ([]job.ID, error) {
	var taken *takenError
	for try := range numberTries {
		ids, err := s.submitOnce(ctx, sub, 1<<(2*try)-1, again)
		if !errors.As(err, &taken) {
			return ids, err
		}
	}
	return nil, taken
}

// submitOnce numbers the jobs, passing over some ids, and writes them.
func (s *Store) submitOnce(ctx context.Context, sub Submission, over int64, again bool) ([]job.ID, error) {
	count := max(sub.Count, 1)
	pipe := s.rdb.Pipeline()
	last := pipe.IncrBy(ctx, deploymentPrefix+"id", int64(count)+over)
	clock := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, unavailable("number the job", err)
	}
	first := job.ID(last.Val() - int64(count) + 1)
	sub.Request.Count = count
	if sub.Key != "" {
		bound, written, err := s.takeKey(ctx, sub, first)
		if err != nil {
			return nil, err
		}
		if written && !again {
			return idsFrom(bound, count), nil
		}
		first = bound
	}
	ids := idsFrom(first, count)
	for from := 0; from < count; from += flight {
		err := s.writeNew(ctx, sub, first, ids[from:min(from+flight, count)], job.TimeOf(clock.Val()))
		var taken *takenError
		if errors.As(err, &taken) {
			if err := s.unnumber(ctx, sub, first, taken, ids[:min(from+flight, count)]); err != nil {
				return nil, err
			}
			return nil, taken
		}
		if err != nil {
			return nil, err
		}
	}
	if sub.Key != "" {
		if err := s.sealKey(ctx, sub, first); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// takenError says that ids are those of other jobs: the node of a cluster that counts has lost its last second, and others have
// not.
type takenError struct{ ids []job.ID }

func (e *takenError) Error() string {
	return fmt.Sprintf("the id %d was given again, though there is such a job: the count of ids is behind the jobs", e.ids[0])
}

func idsFrom(first job.ID, count int) []job.ID {
	ids := make([]job.ID, count)
	for i := range ids {
		ids[i] = first + job.ID(i)
	}
	return ids
}

// bound is what an idempotency key is bound to: "first id, hash of the request", and "written" once all jobs are. From
// then on a repetition writes nothing: retention may have taken the jobs by then, and they must not run again. Until then
// each shard remembers which of them it has written, under [keys.made].
func bound(sub Submission, first job.ID) string {
	sum := sha256.Sum256(mustJSON(sub.Request))
	return strconv.FormatInt(int64(first), 10) + " " + hex.EncodeToString(sum[:8])
}

const writtenMark = " written"

// takeKey binds a key to the ids, or returns the first id that it was bound to before, and whether those were all written.
func (s *Store) takeKey(ctx context.Context, sub Submission, first job.ID) (job.ID, bool, error) {
	key := submissionKey(sub.Key)
	old, err := s.rdb.SetArgs(ctx, key, bound(sub, first), redis.SetArgs{Mode: "NX", Get: true, TTL: keyLife}).Result()
	switch {
	case errors.Is(err, redis.Nil): // it was free
		return first, false, nil
	case err != nil:
		return 0, false, unavailable("take the key", err)
	}
	old, written := strings.CutSuffix(old, writtenMark)
	number, _, _ := strings.Cut(old, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("the key %q is damaged: %q", sub.Key, old)
	}
	if old != bound(sub, job.ID(id)) {
		return 0, false, &KeyTakenError{Key: sub.Key, ID: job.ID(id)}
	}
	return job.ID(id), written, nil
}

func submissionKey(key string) string { return deploymentPrefix + "key:" + key }

// KeyUsed reports whether jobs were submitted with a key before; with none that is never so.
func (s *Store) KeyUsed(ctx context.Context, key string) (bool, error) {
	if key == "" {
		return false, nil
	}
	n, err := s.rdb.Exists(ctx, submissionKey(key)).Result()
	if err != nil {
		return false, unavailable("look for the key", err)
	}
	return n > 0, nil
}

// sealKey notes that all jobs of a key are written.
func (s *Store) sealKey(ctx context.Context, sub Submission, first job.ID) error {
	pipe := s.rdb.Pipeline()
	pipe.Set(ctx, submissionKey(sub.Key), bound(sub, first)+writtenMark, keyLife)
	for shard := range min(s.keys.shards, sub.Request.Count) {
		pipe.Expire(ctx, s.keys.made(s.keys.shardOf(first+job.ID(shard)), first), madeLife)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return unavailable("seal the key", err)
	}
	return nil
}

// writeNew writes the records of ids, which are of one submission whose first job is first.
func (s *Store) writeNew(ctx context.Context, sub Submission, first job.ID, ids []job.ID, now job.Time) error {
	nonce := newNonce()
	byShard := map[int][]job.ID{}
	for _, id := range ids {
		byShard[s.keys.shardOf(id)] = append(byShard[s.keys.shardOf(id)], id)
	}
	type call struct {
		shard int
		args  []any
		reply *redis.Cmd
	}
	var calls []*call
	for shard, ids := range byShard {
		for part := range slices.Chunk(ids, batch) {
			args, err := s.newArgs(sub, first, shard, part, nonce, now)
			if err != nil {
				return err
			}
			calls = append(calls, &call{shard: shard, args: args})
		}
	}
	err := s.pipelined(ctx, s.lua.submit, func(pipe redis.Pipeliner) {
		for _, c := range calls {
			keys := []string{s.keys.due(c.shard)}
			if sub.Key != "" {
				keys = append(keys, s.keys.made(c.shard, first))
			}
			c.reply = s.lua.submit.EvalSha(ctx, pipe, keys, c.args...)
		}
	})
	if err != nil {
		return unavailable("write the job", err)
	}
	taken := &takenError{}
	for _, c := range calls {
		of, err := c.reply.Slice()
		if err != nil {
			return unavailable("write the job", err)
		}
		for _, id := range of {
			taken.ids = append(taken.ids, job.ID(asInt(id)))
		}
	}
	if len(taken.ids) > 0 {
		return taken
	}
	return nil
}

// unnumber is what is left to do when some ids of a submission are those of other jobs, before it is numbered anew: its other
// jobs are cancelled, and its key is bound to those ids no longer.
func (s *Store) unnumber(ctx context.Context, sub Submission, first job.ID, taken *takenError, ids []job.ID) error {
	for _, id := range ids {
		if slices.Contains(taken.ids, id) {
			continue
		}
		if _, err := s.Cancel(ctx, id, "the store, which had to number its submission anew", 0); err != nil {
			return err
		}
	}
	if sub.Key == "" {
		return nil
	}
	if err := s.lua.unbind.Run(ctx, s.rdb, []string{submissionKey(sub.Key)}, bound(sub, first)).Err(); err != nil {
		return unavailable("unbind the key", err)
	}
	return nil
}

// newNonce tells the jobs of one call from any others that ever have the same ids: those that a store has lost.
func newNonce() string {
	b := make([]byte, 6)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// newArgs are the arguments of the submit script.
func (s *Store) newArgs(sub Submission, first job.ID, shard int, ids []job.ID, nonce string, now job.Time) ([]any, error) {
	args := []any{s.keys.prefix(shard), s.keys.shards, ms(firstDue), int64(keyLife.Seconds()), nil, nonce}
	for _, id := range ids {
		req := sub.Request
		req.Rank = int(id - first)
		head := job.HeadOf(id, req, now)
		head.Nonce = nonce
		rec := job.NewRecord(head)
		f, err := encode(&rec)
		if err != nil {
			return nil, err
		}
		f["head"] = string(mustJSON(rec.Head))
		for _, zero := range []string{"ran", "fence", "seq", "held"} {
			f[zero] = "0"
		}
		args[4] = len(f) // new records all have the same fields
		args = append(args, int64(id), mustJSON(req), sub.Sealed, int64(now), indexed(rec.User), indexedName(rec.Name), firstNews(rec, submitted(&rec.Head)))
		for k, v := range f {
			args = append(args, k, v)
		}
	}
	return args, nil
}

// submitted is the first event of every job. It is not stored, since the head tells all of it.
func submitted(h *job.Head) job.Event {
	return job.Event{At: h.SubmittedAt, Kind: "status", To: string(job.Pending), Cause: job.Cause{Text: "submitted"}}
}

// mustJSON encodes our own types, which always can be.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

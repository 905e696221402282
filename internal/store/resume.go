package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/outlast-dev/outlast/internal/job"
)

// Resume lets a job that failed or was cancelled go again, under the same id, from the task that did not succeed; see
// [job.Resumed]. It needs nothing else of a client than to run the watch that it names: the job stands in line for a launch
// slot as any other. A job that cannot go again gives a [job.NotResumableError].
func (s *Store) Resume(ctx context.Context, id job.ID, by string) (Woken, error) {
	var woken Woken
	err := s.safely(ctx, s.safeJobs(id), func() error {
		again, err := s.resumeNow(ctx, id, by)
		var refused *job.NotResumableError
		if woken.Live && errors.As(err, &refused) {
			return nil // a failover has not lost it
		}
		woken = again
		return err
	})
	return woken, err
}

func (s *Store) resumeNow(ctx context.Context, id job.ID, by string) (Woken, error) {
	for range resumeTries {
		woken, err := s.resume(ctx, id, by)
		if err != nil || woken.Live {
			return woken, err
		}
	}
	return Woken{}, fmt.Errorf("resume job %d: %w", id, ErrStale)
}

// resumeTries: nothing but another resume changes a job that is done, so the next reading tells why it was refused.
const resumeTries = 3

// resume tries once. The answer is not Live if the record has changed since it was read.
func (s *Store) resume(ctx context.Context, id job.ID, by string) (Woken, error) {
	rec, err := s.Load(ctx, id)
	if err != nil {
		return Woken{}, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return Woken{}, err
	}
	next, err := job.Resumed(rec, by, now)
	if err != nil {
		return Woken{}, err
	}
	if err := s.secretsKept(ctx, &next); err != nil {
		return Woken{}, err
	}
	set, err := encode(&next)
	if err != nil {
		return Woken{}, err
	}
	shard := s.keys.shardOf(id)
	keys := []string{s.keys.of(id, "job"), s.keys.due(shard), s.keys.chain(WatchChain(shard))}
	args := []any{s.keys.prefix(shard), s.keys.shards, int64(id), ulid.Make().String(), rec.Fence, rec.Seq, states(&rec), string(rec.Status()), string(next.Status())}
	args = append(args, len(set))
	for k, v := range set {
		args = append(args, k, v)
	}
	drop := []any{"cancel", "follow"} // which only users write
	for _, k := range optional {
		if set[k] == "" {
			drop = append(drop, k)
		}
	}
	args = append(append(args, len(drop)), drop...)
	args = append(args, len(next.Events))
	for _, e := range next.Events {
		args = append(args, mustJSON(e))
	}
	args = appendNews(args, &next)
	reply, err := s.lua.resume.Run(ctx, s.rdb, keys, args...).Slice()
	if err != nil {
		return Woken{}, unavailable("resume", err)
	}
	return Woken{Shard: shard, Epoch: asInt(reply[1]), Live: asInt(reply[0]) == 1, Known: true}, nil
}

// secretsKept refuses a job whose secrets are gone. They are kept, sealed, until it succeeds or leaves the store.
func (s *Store) secretsKept(ctx context.Context, r *job.Record) error {
	req, err := s.Request(ctx, r.ID)
	if err != nil {
		return err
	}
	needed := false
	for i := r.Cur; i < len(req.Tasks); i++ {
		needed = needed || len(req.Tasks[i].Secrets) > 0
	}
	if !needed {
		return nil
	}
	sealed, err := s.Secrets(ctx, r.ID)
	if err != nil {
		return err
	}
	if sealed == nil {
		return &job.NotResumableError{ID: r.ID, Why: "its secrets are not kept any more; submit it again with launch"}
	}
	return nil
}

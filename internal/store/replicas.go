package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// UnsafeError says that something was done, and that too few replicas have it so far: if the master is lost now, it may be
// lost with it. It stands beside the result, which is valid.
type UnsafeError struct {
	Have, Want int
	Err        error // what kept Redis from telling; nil if it has told
}

func (e *UnsafeError) Error() string {
	text := fmt.Sprintf("accepted, but not safe yet: %d of %d replicas of Redis have it, and a failover now may lose it", e.Have, e.Want)
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

func (e *UnsafeError) Unwrap() error { return e.Err }

const (
	// replicasWait is how long a client waits for replicas, which usually takes a millisecond.
	replicasWait = 5 * time.Second
	// replicasRound is how long one question may take: less than a client waits for any answer.
	replicasRound = time.Second
	// replicasTries bounds how often what a failover may have lost is done again.
	replicasTries = 3
)

// errMoved says that another master is in charge than when a write began.
var errMoved = errors.New("a replica has become the master meanwhile")

// safely does something that a person is told is done, and waits until enough replicas have it, if the deployment asks for
// that. do must be safe to repeat: it is done again after a failover that may have lost it. An [UnsafeError] says that it was
// done and may be lost yet; any other error is that of do.
func (s *Store) safely(ctx context.Context, shards []int, do func() error) error {
	if s.deploy.Replicas == 0 {
		return do()
	}
	var err error
	for range replicasTries {
		before, failed := s.histories(ctx, shards)
		if failed != nil {
			return unavailable("ask for the replicas", failed)
		}
		if err = do(); err != nil {
			return err
		}
		var unsafe *UnsafeError
		if err = s.replicated(ctx, before); !errors.As(err, &unsafe) || !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

// history is a master as it was before a write: as long as its replication has the same id, nothing that it took was lost.
type history struct {
	mark string // a key that lies there
	id   string
}

// masterOf is the server that a key lies on.
func (s *Store) masterOf(ctx context.Context, key string) (*redis.Client, error) {
	switch rdb := s.rdb.(type) {
	case *redis.ClusterClient:
		return rdb.MasterForKey(ctx, key)
	case *redis.Client:
		return rdb, nil
	default:
		return nil, fmt.Errorf("replicas cannot be waited for with a %T", s.rdb)
	}
}

// histories are those of the masters which some shards, and what belongs to no shard, lie on.
func (s *Store) histories(ctx context.Context, shards []int) ([]history, error) {
	marks := []string{deploymentPrefix + "mark"}
	for _, shard := range shards {
		marks = append(marks, s.keys.prefix(shard)+"mark")
	}
	var out []history
	seen := map[*redis.Client]bool{}
	for _, mark := range marks {
		master, err := s.masterOf(ctx, mark)
		if err != nil {
			return nil, err
		}
		if seen[master] {
			continue
		}
		seen[master] = true
		id, err := replicationID(ctx, master)
		if err != nil {
			return nil, err
		}
		out = append(out, history{mark, id})
	}
	return out, nil
}

// replicationID names the history that a master's replicas follow. It is another one after a failover.
func replicationID(ctx context.Context, c redis.Cmdable) (string, error) {
	info, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(info, "master_replid:")
	if !found {
		return "", errors.New("this Redis does not tell who replicates it")
	}
	id, _, _ := strings.Cut(rest, "\r")
	return id, nil
}

// replicated waits until enough replicas of some masters have all that these took before.
func (s *Store) replicated(ctx context.Context, before []history) error {
	ctx, done := context.WithTimeout(ctx, replicasWait)
	defer done()
	for _, h := range before {
		if have, err := s.await(ctx, h); err != nil || have < s.deploy.Replicas {
			return &UnsafeError{Have: have, Want: s.deploy.Replicas, Err: err}
		}
	}
	return nil
}

// await waits for the replicas of one master. Redis waits for what came over the same connection: so a mark is written over it,
// and who has the mark has all that was before it.
func (s *Store) await(ctx context.Context, h history) (have int, err error) {
	master, err := s.masterOf(ctx, h.mark)
	if err != nil {
		return 0, err
	}
	conn := master.Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.Set(ctx, h.mark, 1, 0).Err(); err != nil {
		return 0, err
	}
	for have < s.deploy.Replicas && ctx.Err() == nil {
		n, err := conn.Wait(ctx, s.deploy.Replicas, replicasRound).Result()
		if err != nil && ctx.Err() == nil {
			return have, err
		}
		have = int(n)
	}
	id, err := replicationID(context.WithoutCancel(ctx), conn)
	if err == nil && id != h.id {
		err = errMoved
	}
	return have, err
}

// safeJobs are the shards of some jobs.
func (s *Store) safeJobs(ids ...job.ID) []int {
	var shards []int
	for _, id := range ids[:min(len(ids), s.keys.shards)] { // their numbers are in a row, and so are their shards
		shards = append(shards, s.keys.shardOf(id))
	}
	return shards
}

// allShards are all of them.
func (s *Store) allShards() []int {
	var shards []int
	for shard := range s.keys.shards {
		shards = append(shards, shard)
	}
	return shards
}

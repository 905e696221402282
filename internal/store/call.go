package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Act names one act of a job.
type Act struct {
	ID       job.ID
	Step     job.Step
	N        int64
	Priority int // of the job, which never changes
}

func actOf(id job.ID, step, n, priority any) Act {
	return Act{ID: id, Step: job.Step(asString(step)), N: asInt(n), Priority: int(asInt(priority))}
}

// Call returns the acts that jobs need next whose turn has come: make them now. They must begin within grace, or the watch looks
// for them. Jobs that no act drives now are woken instead, and one of them is returned for each shard. What cannot be called
// is looked at when it is due.
func (s *Store) Call(ctx context.Context, ids []job.ID, grace time.Duration) ([]Act, []Woken, error) {
	var acts []Act
	woken := map[int]Woken{}
	for part := range slices.Chunk(ids, readAtOnce) {
		cmds := make([]*redis.Cmd, len(part))
		err := s.pipelined(ctx, s.lua.call, func(pipe redis.Pipeliner) {
			for i, id := range part {
				shard := s.keys.shardOf(id)
				keys := []string{s.keys.of(id, "job"), s.keys.due(shard), s.keys.chain(WatchChain(shard))}
				cmds[i] = s.lua.call.EvalSha(ctx, pipe, keys, int64(id), ms(grace))
			}
		})
		if err != nil {
			return acts, nil, unavailable("call jobs", err)
		}
		for i, c := range cmds {
			reply, err := c.Slice()
			if err != nil {
				return acts, nil, unavailable("call jobs", err)
			}
			switch id := part[i]; asString(reply[0]) {
			case "act":
				acts = append(acts, actOf(id, reply[1], reply[2], reply[3]))
			case "woken":
				shard := s.keys.shardOf(id)
				woken[shard] = Woken{Shard: shard, Epoch: asInt(reply[1]), Live: true, Known: true}
			}
		}
	}
	return acts, slices.Collect(maps.Values(woken)), nil
}

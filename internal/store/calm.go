package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Calm is a job at which a look is nothing but a question to its agent, as long as the answer is that nothing has changed:
// see [job.Record]. Its record is not read, and nothing is written to it.
type Calm struct {
	ID       job.ID
	Due      job.Time      // when it was due
	Wakes    int64         // that the record had seen: any other makes it calm no more
	Every    time.Duration // until the next look
	Tail     int64         // bytes of the log that are known
	Provider string
	Node     job.Node
}

// ticket is what the record of a calm job has beside it, "" if it has none: the fields of [Calm], the address last.
func ticket(r *job.Record) string {
	a := r.Started()
	if !r.Calm || a == nil || len(a.Nodes) != 1 {
		return ""
	}
	node := a.Nodes[0]
	if node.ID == "" || node.Address == "" || strings.ContainsAny(a.Offer.Provider+node.ID, " \n") {
		return "" // it could not be told apart
	}
	return fmt.Sprintf("%d %d %d %s %s %s", r.Wakes, r.Look.Every, r.Look.Tail, a.Offer.Provider, node.ID, node.Address)
}

// parseTicket is the inverse of ticket. What is damaged has no provider, so that its record is read.
func parseTicket(text string) Calm {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) < 6 {
		return Calm{}
	}
	return Calm{
		Wakes: asInt(parts[0]), Every: time.Duration(asInt(parts[1])) * time.Millisecond, Tail: asInt(parts[2]),
		Provider: parts[3], Node: job.Node{ID: parts[4], Address: parts[5]},
	}
}

func (d *Due) addCalm(id job.ID, text string, due job.Time) {
	c := parseTicket(text)
	c.ID, c.Due = id, due
	d.Calm = append(d.Calm, c)
}

// Rested is a calm job of which nothing new was heard, and when it is to be looked at again.
type Rested struct {
	ID  job.ID
	Due job.Time
}

// Rest puts off the next looks at jobs of one shard that were taken until a time. One that was woken meanwhile is due at once.
func (s *Store) Rest(ctx context.Context, shard int, until job.Time, jobs ...Rested) error {
	if len(jobs) == 0 {
		return nil
	}
	if len(jobs) > maxRest {
		return errors.New("too many jobs for one script")
	}
	args := make([]any, 0, 1+2*len(jobs))
	args = append(args, int64(until))
	for _, r := range jobs {
		args = append(args, int64(r.ID), int64(r.Due))
	}
	if err := s.lua.rest.Run(ctx, s.rdb, []string{s.keys.due(shard)}, args...).Err(); err != nil {
		return unavailable("put off looks", err)
	}
	return nil
}

// maxRest bounds the jobs of one script: what Lua can pass on at once.
const maxRest = 2000

// Calms are those of the jobs that are calm: on which machine each of them runs is known without its record.
func (s *Store) Calms(ctx context.Context, ids []job.ID) (map[job.ID]Calm, error) {
	out := map[job.ID]Calm{}
	for part := range slices.Chunk(ids, readAtOnce) {
		pipe := s.rdb.Pipeline()
		cmds := make([]*redis.SliceCmd, len(part))
		for i, id := range part {
			cmds[i] = pipe.HMGet(ctx, s.keys.of(id, "job"), "step", "calm")
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		for i, c := range cmds {
			if c.Err() != nil && !redis.HasErrorPrefix(c.Err(), wrongType) { // whoever reads the record tells of a damaged one
				return nil, unavailable("look who is calm", c.Err())
			}
			if v := c.Val(); len(v) == 2 && asString(v[0]) == string(job.StepWatch) && asString(v[1]) != "" {
				calm := parseTicket(asString(v[1]))
				calm.ID = part[i]
				out[part[i]] = calm
			}
		}
	}
	return out, nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/chaos/history"
)

// sampleEvery is how often Redis is looked into.
const sampleEvery = 500 * time.Millisecond

// sample looks into Redis itself now and then, beside all proxies, until ctx ends: who holds launch slots, and what nobody
// has driven for how long. It reads keys as they are written down in package store, and uses nothing of it.
func (r *round) sample(ctx context.Context) {
	for pause(ctx, sampleEvery) {
		s, err := r.look(ctx)
		if err != nil {
			continue // Redis is away, which is a fault of ours
		}
		r.out.Add(s)
	}
}

func (r *round) look(ctx context.Context) (history.Sample, error) {
	var s history.Sample
	ctx, done := context.WithTimeout(ctx, time.Second)
	defer done()
	c, err := r.admin(ctx)
	if err != nil {
		return s, err
	}
	t, err := c.Time(ctx).Result()
	if err != nil {
		return s, err
	}
	s.At = history.TimeOf(t)
	if err := r.lookSlots(ctx, c, &s); err != nil {
		return s, err
	}
	for shard := range r.size.shards {
		if err := r.lookShard(ctx, c, shard, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (r *round) lookSlots(ctx context.Context, c *redis.Client, s *history.Sample) error {
	held, err := c.ZRangeWithScores(ctx, "ol:{d}:slots", 0, -1).Result()
	if err != nil {
		return err
	}
	waiting, err := c.ZCard(ctx, "ol:{d}:waiting").Result()
	if err != nil {
		return err
	}
	s.Waiting = int(waiting)
	for _, z := range held {
		id, err := strconv.ParseInt(fmt.Sprint(z.Member), 10, 64)
		if err != nil {
			return err
		}
		f, err := c.HMGet(ctx, r.record(id), "step", "states", "wait").Result()
		if err != nil {
			return err
		}
		var wait struct{ For struct{ Code string } }
		_ = json.Unmarshal([]byte(text(f[2])), &wait) // most wait for nothing
		s.Slots = append(s.Slots, history.Slot{Job: id, Until: history.Time(z.Score), Step: text(f[0]), Status: text(f[1]), Wait: wait.For.Code})
	}
	return nil
}

// lookShard looks for what is overdue: a job is due when somebody must look at it, a chain when its tick should have ended.
func (r *round) lookShard(ctx context.Context, c *redis.Client, shard int, s *history.Sample) error {
	prefix := fmt.Sprintf("ol:{s%02d}:", shard)
	first, err := c.ZRangeWithScores(ctx, prefix+"due", 0, 0).Result()
	if err != nil {
		return err
	}
	live, err := c.ZCard(ctx, prefix+"due").Result()
	if err != nil {
		return err
	}
	s.Live += int(live)
	if len(first) > 0 {
		if late := s.At.Sub(history.Time(first[0].Score)); late > s.Overdue {
			s.Overdue = late
			s.Job, _ = strconv.ParseInt(fmt.Sprint(first[0].Member), 10, 64)
		}
	}
	due, err := c.HGet(ctx, prefix+"chain", "due").Int64()
	if err != nil {
		return err
	}
	if late := s.At.Sub(history.Time(due)); late > s.Silence {
		s.Silence, s.Chain = late, fmt.Sprintf("watch-%d", shard)
	}
	return nil
}

// live counts the jobs that are not done: not ended, or not cleaned up.
func (r *round) live(ctx context.Context) (int, error) {
	s, err := r.look(ctx)
	return s.Live, err
}

func (r *round) record(id int64) string {
	return fmt.Sprintf("ol:{s%02d}:job:%d", id%int64(r.size.shards), id)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

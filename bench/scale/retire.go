package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// retiring is how ended jobs leave Redis for the archive.
type retiring struct {
	Jobs        float64 `json:"jobs"`
	PerSecond   float64 `json:"per_second"`
	RedisUS     float64 `json:"redis_us"` // processor time of Redis for each, that of the fleet's looks included
	WorkerUS    float64 `json:"worker_us"`
	RedisBefore float64 `json:"redis_before"` // bytes of memory
	RedisAfter  float64 `json:"redis_after"`
	LateP99     float64 `json:"late_p99"` // of looks at live jobs meanwhile, in seconds
}

// keptEnded is how many ended jobs stay in Redis while retention is measured.
const keptEnded = 1000

// measureRetention lets the ended jobs leave for the archive, for as long as a quiet fleet is measured.
func (f *fleet) measureRetention(ctx context.Context, r *report) error {
	say("letting %d ended jobs leave for the archive", f.ended-keptEnded)
	if err := f.stopWorkers(); err != nil {
		return err
	}
	f.retain = keptEnded
	if err := os.WriteFile(filepath.Join(f.dir, "config.yaml"), []byte(f.configFile()), 0o600); err != nil {
		return err
	}
	if err := f.startWorkers(ctx); err != nil {
		return err
	}
	if err := until(ctx, time.Minute, "the first job to leave", func() (bool, error) {
		u, err := f.usage(ctx)
		return u.retired > 0, err
	}); err != nil {
		return err
	}
	before, err := f.usage(ctx)
	if err != nil {
		return err
	}
	stop := f.profile(ctx, "retire")
	err = pause(ctx, f.window)
	stop()
	if err != nil {
		return err
	}
	after, err := f.usage(ctx)
	if err != nil {
		return err
	}
	n := after.retired - before.retired
	r.Retiring = &retiring{
		Jobs: n, PerSecond: n / after.at.Sub(before.at).Seconds(),
		RedisUS: micros(after.redis-before.redis, n), WorkerUS: micros(after.workers-before.workers, n),
		RedisBefore: before.memory, RedisAfter: after.memory, LateP99: after.late.since(before.late).quantile(.99),
	}
	return nil
}

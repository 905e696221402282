package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// grow makes the fleet so large: by ordinary launches as far as that was asked for, and the rest is planted.
func (f *fleet) grow(ctx context.Context, n int, r *report) error {
	if more := min(n, f.launched) - f.live; more > 0 {
		if err := f.launch(ctx, more, r); err != nil {
			return err
		}
	}
	if more := n - f.live; more > 0 {
		say("planting %d jobs", more)
		if err := f.plant(ctx, more); err != nil {
			return err
		}
		f.live = n
	}
	return nil
}

// launch submits jobs and waits until all run. How long that takes is a figure, too.
func (f *fleet) launch(ctx context.Context, more int, r *report) error {
	n := f.live + more
	say("launching %d jobs", more)
	before, err := f.usage(ctx)
	if err != nil {
		return err
	}
	stop := f.profile(ctx, fmt.Sprintf("launch-%d", n))
	defer stop()
	began := time.Now()
	for left := more; left > 0; left -= min(left, batch) {
		if _, err := f.submit(ctx, "fleet", min(left, batch), 0); err != nil {
			return err
		}
	}
	if err := f.calm(ctx, time.Hour, n); err != nil {
		return err
	}
	after, err := f.usage(ctx)
	if err != nil {
		return err
	}
	f.live = n
	took := time.Since(began)
	r.Launches = append(r.Launches, launch{
		Jobs: more, Seconds: took.Seconds(), PerSecond: float64(more) / took.Seconds(),
		RedisUS:  micros(after.redis-before.redis, float64(more)),
		WorkerUS: micros(after.workers-before.workers, float64(more)), Calls: (after.all() - before.all()) / float64(more),
	})
	say("  launched in %s", took.Round(time.Second))
	return nil
}

// batch is how many jobs one client submits at once.
const batch = 5000

// micros is a processor time for each of n, in microseconds.
func micros(d time.Duration, n float64) float64 { return float64(d.Microseconds()) / n }

// settled is how long it takes until looks at a job that has just begun come at the quiet interval: each wait is half as long
// again as the one before.
func (f *fleet) settled() time.Duration {
	total, every := time.Duration(0), time.Second
	for every < f.quiet {
		total += every
		every = every * 3 / 2
	}
	return total + f.quiet
}

// quietly measures a fleet in which nothing happens.
func (f *fleet) quietly(ctx context.Context, r *report) error {
	say("waiting until %d jobs are quiet", f.live)
	if err := pause(ctx, f.settled()); err != nil {
		return err
	}
	if err := f.forget(ctx); err != nil {
		return err
	}
	q, err := f.window1(ctx, fmt.Sprintf("quiet-%d", f.live))
	if err != nil {
		return err
	}
	if q.ScriptUS, q.ScriptsPerSecond, err = f.script(ctx); err != nil {
		return err
	}
	r.Quiet = append(r.Quiet, q)
	say("  late p50 %.2f s, p99 %.2f s, max %.2f s; %.3f + %.3f cores", q.LateP50, q.LateP99, q.LateMax, q.RedisCores, q.WorkerCores)
	return nil
}

// window1 measures one window of time.
func (f *fleet) window1(ctx context.Context, name string) (quiet, error) {
	before, err := f.usage(ctx)
	if err != nil {
		return quiet{}, err
	}
	stop := f.profile(ctx, name)
	err = pause(ctx, f.window)
	stop()
	if err != nil {
		return quiet{}, err
	}
	after, err := f.usage(ctx)
	if err != nil {
		return quiet{}, err
	}
	seconds := after.at.Sub(before.at).Seconds()
	late, looks := after.late.since(before.late), after.looks-before.looks
	return quiet{
		Jobs: f.live, Looks: looks / seconds,
		LateP50: late.quantile(.5), LateP99: late.quantile(.99), LateMax: late.most(),
		RedisCores: (after.redis - before.redis).Seconds() / seconds, WorkerCores: (after.workers - before.workers).Seconds() / seconds,
		SimCores: (after.away - before.away).Seconds() / seconds, WorkerBytes: float64(after.resident), RedisBytes: after.memory / float64(f.live),
		CallsPerMinute: (after.all() - before.all()) / seconds * 60,
		RedisUS:        micros(after.redis-before.redis, looks), WorkerUS: micros(after.workers-before.workers, looks),
		Commands: (after.commands - before.commands) / looks,
	}, nil
}

// like is a script of about the size of what a look does to one job: fields read and written, an index moved.
const like = `local r = redis.call('HMGET', KEYS[1], 'step', 'fence', 'held', 'seq', 'states', 'wakes')
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'held', ARGV[2], 'seq', ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
return r[1]`

// script asks Redis, while the quiet fleet goes on, for as many calls of such a script as it can do, with redis-benchmark. It
// returns the processor time of one and how many there were a second.
func (f *fleet) script(ctx context.Context) (us, perSecond float64, err error) {
	sha, err := f.redis.rdb.ScriptLoad(ctx, like).Result()
	if err != nil {
		return 0, 0, err
	}
	const calls = 60_000
	idle, err := cpuOf(f.redis.pid)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := pause(ctx, 5*time.Second); err != nil {
		return 0, 0, err
	}
	before, err := cpuOf(f.redis.pid)
	if err != nil {
		return 0, 0, err
	}
	background := (before - idle).Seconds() / time.Since(began).Seconds()
	began = time.Now()
	socket := strings.TrimPrefix(f.redis.URL(), "unix://")
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-s", socket, "-n", strconv.Itoa(calls), "-c", "16", "-r", "1000000", "--csv", "-q",
		"EVALSHA", sha, "2", "bench:{b}:job:__rand_int__", "bench:{b}:due", "1", "1700000000000", "__rand_int__")
	text, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	took := time.Since(began)
	after, err := cpuOf(f.redis.pid)
	if err != nil {
		return 0, 0, err
	}
	_ = text
	own := (after - before).Seconds() - background*took.Seconds()
	return own / calls * 1e6, calls / took.Seconds(), f.forgetBench(ctx)
}

// forgetBench removes what redis-benchmark has left.
func (f *fleet) forgetBench(ctx context.Context) error {
	it := f.redis.rdb.Scan(ctx, 0, "bench:{b}:*", 10_000).Iterator()
	var keys []string
	for it.Next(ctx) {
		keys = append(keys, it.Val())
	}
	if err := it.Err(); err != nil || len(keys) == 0 {
		return err
	}
	for from := 0; from < len(keys); from += 10_000 {
		if err := f.redis.rdb.Unlink(ctx, keys[from:min(from+10_000, len(keys))]...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// forget clears what Redis remembers of slow commands and of all commands.
func (f *fleet) forget(ctx context.Context) error {
	if err := f.redis.rdb.ConfigResetStat(ctx).Err(); err != nil {
		return err
	}
	return f.redis.rdb.Do(ctx, "SLOWLOG", "RESET").Err()
}

// profile writes profiles of a phase, until the function is called that it returns.
func (f *fleet) profile(ctx context.Context, phase string) (stop func()) {
	if f.profiles == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, w := range f.workers {
			f.fetch(ctx, w.url+"/debug/pprof/profile?seconds=15", fmt.Sprintf("%s-w%d.cpu", phase, i))
			f.fetch(ctx, w.url+"/debug/pprof/heap", fmt.Sprintf("%s-w%d.heap", phase, i))
			f.fetch(ctx, w.url+"/debug/pprof/allocs", fmt.Sprintf("%s-w%d.allocs", phase, i))
			break // they all do the same
		}
	}()
	return func() {
		<-done
		stats, _ := f.redis.rdb.Info(ctx, "commandstats").Result()
		slow, _ := f.redis.rdb.SlowLogGet(ctx, 30).Result()
		var text strings.Builder
		text.WriteString(stats)
		for _, s := range slow {
			what := strings.Join(s.Args, " ")
			fmt.Fprintf(&text, "%s %.200s\n", s.Duration, what)
		}
		_ = os.WriteFile(filepath.Join(f.profiles, phase+".redis"), []byte(text.String()), 0o600)
	}
}

// fetch saves what a URL answers; what fails is left out.
func (f *fleet) fetch(ctx context.Context, url, file string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		say("  no profile: %v", err)
		return
	}
	defer res.Body.Close()
	out, err := os.Create(filepath.Join(f.profiles, file))
	if err != nil {
		say("  no profile: %v", err)
		return
	}
	defer out.Close()
	_, _ = io.Copy(out, res.Body)
}

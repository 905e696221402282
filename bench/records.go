package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// records is a store without workers.
type records struct {
	redis *devredis.Server
	rdb   redis.UniversalClient
	store *store.Store
}

func newRecords(ctx context.Context, b *bench) (*records, error) {
	dir, err := os.MkdirTemp(b.dir, "records")
	if err != nil {
		return nil, err
	}
	r := &records{}
	if r.redis, err = devredis.Start(ctx, filepath.Join(dir, "redis"), zerolog.Nop()); err != nil {
		return nil, err
	}
	if r.rdb, err = config.RedisURL(r.redis.URL()).RecordClient(); err != nil {
		return nil, err
	}
	r.store, err = store.Found(ctx, r.rdb, store.Deployment{Shards: 64, Caps: store.Caps{Launches: 64}})
	return r, err
}

func (r *records) close() {
	_ = r.rdb.Close()
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_ = r.redis.Stop(ctx)
}

// typical is a job as people submit it.
func typical(count int) store.Submission {
	return store.Submission{Count: count, Request: job.Request{Name: "train-resnet", User: "somebody", Tasks: []job.TaskRequest{{
		Resources: job.Resources{Any: []job.Want{{Provider: "local", CPUs: job.Quantity{N: 4, AtLeast: true}, UseSpot: true}}},
		Envs:      map[string]string{"EPOCHS": "90", "DATA": "s3://some-bucket/imagenet"},
		Setup:     "pip install -r requirements.txt",
		Run:       "python train.py --epochs $EPOCHS --data $DATA --checkpoint /checkpoints",
	}}}}
}

// submitThroughput: jobs a second in batches of a thousand, records and queue for slots.
func submitThroughput(ctx context.Context, b *bench) ([]float64, error) {
	r, err := newRecords(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var samples []float64
	for range b.n {
		began := time.Now()
		ids, err := r.store.Submit(ctx, typical(1000))
		if err != nil {
			return nil, err
		}
		if _, err := r.store.Join(ctx, r.store.Deployment().Caps, 0, ids); err != nil {
			return nil, err
		}
		samples = append(samples, 1000/time.Since(began).Seconds())
	}
	return samples, nil
}

// quietJobs are that many jobs whose code runs: made by the decisions themselves, with a provider and an agent that always
// say yes.
func (r *records) quietJobs(ctx context.Context, n int) error {
	ids, err := r.store.Submit(ctx, typical(n))
	if err != nil {
		return err
	}
	yes := true
	for _, id := range ids {
		c, err := r.store.Begin(ctx, id, job.StepLaunch, 1, "bench", time.Minute)
		if err != nil {
			return err
		}
		offer := job.Offer{Provider: "local", Region: "a", Zone: "a", Type: "local", Spot: true, Price: 0.03, CPUs: 8, MemoryGB: 32}
		node := job.SeenNode{Node: job.Node{ID: "a-0123456789abcdef", Address: "/var/lib/outlast/local/a/a-0123456789abcdef"}, Attempt: 1, State: job.NodeRunning}
		seen := job.Seen{
			Slot: &yes, Choice: &job.Chosen{Choice: job.Choice{Offer: &offer}}, Survey: &job.Survey{At: c.Now.Add(time.Hour)},
			Create: &job.Created{Attempt: 1, Nodes: []job.SeenNode{node}}, Start: &job.Probe{Attempt: 1, At: c.Now, State: job.RunAlive},
		}
		for c.Step != job.StepWatch {
			next, do := job.Decide(c.Record, seen, job.DefaultRules, c.Now)
			next.Due = c.Now // due at once
			_, err := r.store.Commit(ctx, r.store.ShardOf(id), store.Commit{From: &c, Next: next, Keep: next.Step != job.StepWatch})
			if err != nil {
				return err
			}
			if do.Kind == job.DoWait && next.Step != job.StepWatch {
				return fmt.Errorf("job %d waits: %+v", id, next.Wait)
			}
		}
	}
	return nil
}

// looks looks once at every quiet job, as the watch does, and returns how many there were.
func (r *records) looks(ctx context.Context) (int, error) {
	total := 0
	for shard := range r.store.Shards() {
		for {
			due, err := r.store.Claim(ctx, shard, 200, 0, 15*time.Second, 15*time.Second)
			if err != nil {
				return total, err
			}
			var commits []store.Commit
			for i := range due.Jobs {
				c := &due.Jobs[i]
				seen := job.Seen{Probe: &job.Probe{Attempt: 1, At: c.Now, State: job.RunAlive}}
				next, do := job.Decide(c.Record, seen, job.DefaultRules, c.Now)
				next.Due = do.Until
				commits = append(commits, store.Commit{From: c, Next: next})
			}
			if len(commits) == 0 {
				break
			}
			if _, err := r.store.Commit(ctx, shard, commits...); err != nil {
				return total, err
			}
			total += len(commits)
		}
	}
	return total, nil
}

// info reads a number from INFO.
func (r *records) info(ctx context.Context, section, field string) (float64, error) {
	text, err := r.rdb.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

func (r *records) cpu(ctx context.Context) (float64, error) {
	user, err := r.info(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := r.info(ctx, "cpu", "used_cpu_sys")
	return user + system, err
}

// quietFleet is how many quiet jobs the costs are measured with.
const quietFleet = 5000

// perLook measures something that grows with looks, several times.
func perLook(ctx context.Context, b *bench, read func(context.Context, *records) (float64, error)) ([]float64, error) {
	var samples []float64
	for range max(b.n/40, 1) {
		r, err := newRecords(ctx, b)
		if err != nil {
			return nil, err
		}
		if err := r.quietJobs(ctx, quietFleet); err != nil {
			r.close()
			return nil, err
		}
		before, err := read(ctx, r)
		if err != nil {
			return nil, err
		}
		n, err := r.looks(ctx)
		if err != nil {
			return nil, err
		}
		after, err := read(ctx, r)
		r.close()
		if err != nil {
			return nil, err
		}
		if n != quietFleet {
			return nil, fmt.Errorf("%d looks at %d jobs", n, quietFleet)
		}
		samples = append(samples, (after-before)/float64(n))
	}
	return samples, nil
}

func lookCost(ctx context.Context, b *bench) ([]float64, error) {
	return perLook(ctx, b, func(ctx context.Context, r *records) (float64, error) {
		s, err := r.cpu(ctx)
		return s * 1e6, err
	})
}

func lookCommands(ctx context.Context, b *bench) ([]float64, error) {
	return perLook(ctx, b, func(ctx context.Context, r *records) (float64, error) {
		return r.info(ctx, "stats", "total_commands_processed")
	})
}

func bytesPerJob(ctx context.Context, b *bench) ([]float64, error) {
	r, err := newRecords(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.close()
	before, err := r.info(ctx, "memory", "used_memory")
	if err != nil {
		return nil, err
	}
	if err := r.quietJobs(ctx, quietFleet); err != nil {
		return nil, err
	}
	after, err := r.info(ctx, "memory", "used_memory")
	return []float64{(after - before) / quietFleet}, err
}

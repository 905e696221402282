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
	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// records is a store without workers.
type records struct {
	redis   *devredis.Server
	clients []redis.UniversalClient
	store   *store.Store
	queue   *tasks.Dispatcher
}

// newRecords starts Redis and makes a deployment in it. The caller must call close.
func newRecords(ctx context.Context, b *bench) (*records, error) {
	dir, err := os.MkdirTemp(b.dir, "records")
	if err != nil {
		return nil, err
	}
	r := &records{}
	if r.redis, err = startRedis(ctx, filepath.Join(dir, "redis")); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *records) open(ctx context.Context) error {
	url := config.RedisURL(r.redis.URL())
	rdb, err := url.RecordClient()
	if err != nil {
		return err
	}
	r.clients = append(r.clients, rdb)
	queue, err := url.QueueClient(clientsAtOnce)
	if err != nil {
		return err
	}
	tasks.KeepWrites(queue)
	r.clients, r.queue = append(r.clients, queue), tasks.NewDispatcher(queue)
	r.store, err = store.Found(ctx, rdb, store.Deployment{Shards: 64, Caps: store.Caps{Launches: 64}})
	return err
}

func (r *records) close() {
	for _, c := range r.clients {
		_ = c.Close()
	}
	_ = stopRedis(r.redis)
}

// typical is a job as people submit it, count times.
func typical(count int) store.Submission {
	return store.Submission{Count: count, Request: job.Request{Name: "train-resnet", User: "somebody", Tasks: []job.TaskRequest{{
		Resources: job.Resources{Any: []job.Want{{Provider: "local", CPUs: job.Quantity{N: 4, AtLeast: true}, UseSpot: true}}},
		Envs:      map[string]string{"EPOCHS": "90", "DATA": "s3://some-bucket/imagenet"},
		Setup:     "pip install -r requirements.txt",
		Run:       "python train.py --epochs $EPOCHS --data $DATA --checkpoint /checkpoints",
	}}}}
}

// submit hands in count jobs as the client does.
func (r *records) submit(ctx context.Context, count int) error {
	ids, err := r.store.Submit(ctx, typical(count))
	if err != nil {
		return err
	}
	granted, err := r.store.Join(ctx, r.store.Deployment().Caps, 0, ids)
	if err != nil {
		return err
	}
	return r.queue.Call(ctx, r.store, granted)
}

const (
	batchSize     = 5000 // of one submission
	clientsAtOnce = 16
	singles       = 50 // submissions of one client in one sample
)

// batchThroughput: jobs a second of submissions of 5,000 jobs, one after the other.
func batchThroughput(ctx context.Context, b *bench) ([]float64, error) {
	return b.throughput(ctx, batchSize, func(ctx context.Context, r *records) error { return r.submit(ctx, batchSize) })
}

// singleThroughput: jobs a second of many clients, each of which submits one job after the other.
func singleThroughput(ctx context.Context, b *bench) ([]float64, error) {
	return b.throughput(ctx, clientsAtOnce*singles, func(ctx context.Context, r *records) error {
		g, ctx := errgroup.WithContext(ctx)
		for range clientsAtOnce {
			g.Go(func() error {
				for range singles {
					if err := r.submit(ctx, 1); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	})
}

// throughput measures something that submits so many jobs, with fewer samples than a latency: each is of thousands of jobs.
func (b *bench) throughput(ctx context.Context, jobs int, submit func(context.Context, *records) error) ([]float64, error) {
	r, err := newRecords(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var samples []float64
	for range max(b.n/10, 3) {
		began := time.Now()
		if err := submit(ctx, r); err != nil {
			return nil, err
		}
		samples = append(samples, float64(jobs)/time.Since(began).Seconds())
	}
	return samples, nil
}

// info reads a number from INFO.
func (r *records) info(ctx context.Context, section, field string) (float64, error) {
	text, err := r.clients[0].Info(ctx, section).Result()
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

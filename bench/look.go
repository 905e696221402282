package main

import (
	"context"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/bench/plant"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// quietFleet is a store full of jobs whose code runs. What the provider and the agents would say is made up, so that
// only Redis is measured; claims, decisions and commits are the worker's own.
type quietFleet struct {
	*records
	perShard []int
	jobs     int
	bytes    float64 // of Redis memory, a job
}

// quietFleet makes the quiet fleet when it is first asked for.
func (b *bench) quietFleet(ctx context.Context) (*quietFleet, error) {
	if b.still != nil {
		return b.still, nil
	}
	r, err := newRecords(ctx, b)
	if err != nil {
		return nil, err
	}
	q := &quietFleet{records: r, perShard: make([]int, r.store.Shards()), jobs: b.quiet}
	if err := q.fill(ctx); err != nil {
		q.close()
		return nil, err
	}
	b.still = q
	return q, nil
}

// fill submits the jobs and brings each to where its code runs.
func (q *quietFleet) fill(ctx context.Context) error {
	if _, err := q.looks(ctx); err != nil { // loads the scripts, which are no part of a job
		return err
	}
	before, err := q.info(ctx, "memory", "used_memory")
	if err != nil {
		return err
	}
	ids, err := q.store.Submit(ctx, typical(q.jobs))
	if err != nil {
		return err
	}
	for _, id := range ids {
		q.perShard[q.store.ShardOf(id)]++
	}
	launch := plant.Launch{
		Rules: job.DefaultRules,
		See:   func(c *store.Claimed) job.Seen { return wellDone(c.Now) },
		Last:  func(next *job.Record, now job.Time) { next.Due = now },
	}
	if err := launch.All(ctx, q.store, ids); err != nil {
		return err
	}
	if _, err := q.looks(ctx); err != nil { // the first look writes more than those that follow
		return err
	}
	after, err := q.info(ctx, "memory", "used_memory")
	q.bytes = (after - before) / float64(q.jobs)
	return err
}

// wellDone is what a launch sees when everything goes well.
func wellDone(now job.Time) job.Seen {
	yes := true
	offer := job.Offer{Provider: "local", Region: "a", Zone: "a", Type: "local", Spot: true, Price: 0.03, CPUs: 8, MemoryGB: 32}
	node := job.Node{ID: "a-0123456789abcdef", Address: "/var/lib/outlast/local/a/a-0123456789abcdef"}
	return job.Seen{
		Slot: &yes, Choice: &job.Chosen{Choice: job.Choice{Offer: &offer}}, Survey: &job.Survey{At: now.Add(time.Hour)},
		Create: &job.Created{Attempt: 1, Nodes: []job.SeenNode{{Node: node, Attempt: 1, State: job.NodeRunning}}},
		Start:  &job.Probe{Attempt: 1, At: now, State: job.RunAlive},
	}
}

// looks looks once at every job, as the watch does, and returns how many there were. All are due again at once.
func (q *quietFleet) looks(ctx context.Context) (int, error) {
	const claim = 15 * time.Second
	total := 0
	for shard, left := range q.perShard {
		for left > 0 {
			due, err := q.store.Claim(ctx, shard, min(left, 200), 0, claim, claim)
			if err != nil {
				return total, err
			}
			if len(due.Jobs) == 0 || len(due.Jobs) != due.Len() {
				return total, fmt.Errorf("shard %d has %d quiet jobs less than it should have", shard, left)
			}
			if err := q.lookAt(ctx, shard, due.Jobs); err != nil {
				return total, err
			}
			left -= len(due.Jobs)
			total += len(due.Jobs)
		}
	}
	return total, nil
}

func (q *quietFleet) lookAt(ctx context.Context, shard int, jobs []store.Claimed) error {
	commits := make([]store.Commit, len(jobs))
	for i := range jobs {
		c := &jobs[i]
		seen := job.Seen{Probe: &job.Probe{Attempt: 1, At: c.Now, State: job.RunAlive}}
		next, _ := job.Decide(c.Record, seen, job.DefaultRules, c.Now)
		next.Due = c.Now
		commits[i] = store.Commit{From: c, Next: next}
	}
	results, err := q.store.Commit(ctx, shard, commits...)
	if err != nil {
		return err
	}
	for _, err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

// perLook measures what grows with looks: each sample is the mean of one look at every job.
func perLook(ctx context.Context, b *bench, read func(context.Context, *records) (float64, error)) ([]float64, error) {
	q, err := b.quietFleet(ctx)
	if err != nil {
		return nil, err
	}
	var samples []float64
	for range max(b.n/20, 3) {
		before, err := read(ctx, q.records)
		if err != nil {
			return nil, err
		}
		n, err := q.looks(ctx)
		if err != nil {
			return nil, err
		}
		after, err := read(ctx, q.records)
		if err != nil {
			return nil, err
		}
		samples = append(samples, (after-before)/float64(n))
	}
	return samples, nil
}

// lookCost is CPU time of the whole Redis process, its append-only file included.
func lookCost(ctx context.Context, b *bench) ([]float64, error) {
	return perLook(ctx, b, func(ctx context.Context, r *records) (float64, error) {
		user, err := r.info(ctx, "cpu", "used_cpu_user")
		if err != nil {
			return 0, err
		}
		system, err := r.info(ctx, "cpu", "used_cpu_sys")
		return (user + system) * 1e6, err
	})
}

// lookCommands counts those that scripts call, too.
func lookCommands(ctx context.Context, b *bench) ([]float64, error) {
	return perLook(ctx, b, func(ctx context.Context, r *records) (float64, error) {
		return r.info(ctx, "stats", "total_commands_processed")
	})
}

func bytesPerJob(ctx context.Context, b *bench) ([]float64, error) {
	q, err := b.quietFleet(ctx)
	if err != nil {
		return nil, err
	}
	return []float64{q.bytes}, nil
}

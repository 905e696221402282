package store

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// trips counts round trips.
type trips struct{ n atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

// commands is how many the server has run, those that scripts call included.
func (b *bench) commands(tb fataler) int {
	tb.Helper()
	info := must[string](tb)(b.rdb.Info(b.ctx, "commandstats").Result())
	total := 0
	for _, m := range regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		if m[1] != "info" {
			total += must[int](tb)(strconv.Atoi(m[2]))
		}
	}
	return total
}

// costs runs a store and measures what is done with it.
type costs struct {
	*bench
	t     *testing.T
	trips *trips
}

func newCosts(t *testing.T, shards int) *costs {
	t.Helper()
	c := &costs{newBench(t, shards), t, &trips{}}
	for _, l := range c.lua.all() { // so that no first call is dearer than the others
		must[string](t)(l.Load(c.ctx, c.rdb).Result())
	}
	c.rdb.AddHook(c.trips)
	return c
}

// cost fails the test unless f takes so many round trips and no more commands.
func (c *costs) cost(what string, trips int64, commands int, f func()) {
	c.t.Helper()
	tripsBefore, commandsBefore := c.trips.n.Load(), c.commands(c.t)
	f()
	gotTrips, gotCommands := c.trips.n.Load()-tripsBefore-1, c.commands(c.t)-commandsBefore // one to ask for it
	if gotTrips != trips || gotCommands > commands {
		c.t.Errorf("to %s takes %d round trips and %d commands, want %d and at most %d", what, gotTrips, gotCommands, trips, commands)
	}
}

// commitAll commits the same change of all jobs, a shard at a time.
func (c *costs) commitAll(all []Claimed, change func(job.Record) job.Record) {
	c.t.Helper()
	byShard := map[int][]Commit{}
	for i := range all {
		shard := c.ShardOf(all[i].ID)
		byShard[shard] = append(byShard[shard], Commit{From: &all[i], Next: change(all[i].Record)})
	}
	for shard, commits := range byShard {
		for _, err := range must[[]error](c.t)(c.Commit(c.ctx, shard, commits...)) {
			c.must(c.t, err)
		}
	}
}

// TestCost pins what things cost, in round trips and in commands of Redis, those of scripts included, whatever the speed of the
// machine. Who makes one of them dearer sees it here; who makes one cheaper should write that down here.
func TestCost(t *testing.T) {
	t.Parallel()
	const jobs, acts, shards = 1000, 100, 8
	c := newCosts(t, shards)
	var ids []job.ID
	c.cost("submit 1000 jobs", 3, 8200, func() { ids = c.submit(t, jobs) })
	var begun []Claimed
	c.cost("begin 100 acts", acts, 800, func() {
		for _, id := range ids[:acts] {
			begun = append(begun, must[Claimed](t)(c.Begin(c.ctx, id, job.StepLaunch, 1, "token", lease)))
		}
	})
	c.cost("beat 100 acts", acts, 500, func() {
		for _, a := range begun {
			must[bool](t)(c.Beat(c.ctx, a.ID, a.Fence, lease))
		}
	})
	c.cost("commit that 100 jobs run", shards, 1124, func() { c.commitAll(begun, running) })
	for _, id := range ids[acts:] { // so that only those that run are due
		c.must(t, c.rdb.ZRem(c.ctx, c.keys.due(c.ShardOf(id)), int64(id)).Err())
	}
	c.pass(t, lease)
	var quiet []Claimed
	c.cost("claim 100 quiet jobs", 2*shards, 430, func() {
		for shard := range shards {
			quiet = append(quiet, must[Due](t)(c.Claim(c.ctx, shard, 200, 0, lease, grace)).Jobs...)
		}
	})
	if len(quiet) != acts {
		t.Fatalf("%d were claimed", len(quiet))
	}
	c.cost("commit 100 quiet looks", shards, 324, func() {
		c.commitAll(quiet, func(r job.Record) job.Record {
			next := r.Clone()
			next.Look.Every++
			next.Due = r.SubmittedAt.Add(lease)
			return next
		})
	})
	c.cost("cancel 1000 jobs", 4, 4600, func() { // the time, the index, then a thousand at a time
		if got, _, err := c.CancelWhere(c.ctx, nil, "ada", 0); err != nil || len(got) != jobs {
			t.Errorf("cancelled %d: %v", len(got), err)
		}
	})
}

// TestCostOfIdleTicks pins what a second costs in which nothing is due: one call for each shard.
func TestCostOfIdleTicks(t *testing.T) {
	t.Parallel()
	const shards = 8
	c := newCosts(t, shards)
	for shard := range shards {
		must[map[string]int64](t)(c.ChainReclaim(c.ctx, []string{WatchChain(shard)}, lease))
	}
	c.cost("tick in 8 shards in which nothing is due", shards, 5*shards, func() {
		for shard := range shards {
			if _, in, err := c.WatchBegin(c.ctx, shard, 1, 0, time.Second, lease); err != nil || in == 0 {
				t.Errorf("the next tick is in %s: %v", in, err)
			}
		}
	})
}

// TestCostOfLists pins what a page costs: no more among many jobs than among few, unless it has to pass all of them. Then it is
// three commands for 128 jobs.
func TestCostOfLists(t *testing.T) {
	t.Parallel()
	const few, many, shards = 1000, 20_000, 8
	c := newCosts(t, shards)
	page := func(q Query) func() {
		q.Limit = 50
		return func() { must[Page](t)(c.Find(c.ctx, q)) }
	}
	for _, jobs := range []int{few, many} {
		last := c.submit(t, jobs)[jobs-1]
		blocks := int(last)/findBlock + shards
		rounds := int64(1)
		for seen, next := findFirst, findFirst; seen*shards < blocks; seen += next {
			rounds++
			next = min(4*next, findMost)
		}
		c.cost("read the first page", 2, 120, page(Query{}))
		c.cost("read a page from the middle", 2, 120, page(Query{Live: true, Before: last / 2}))
		c.cost("read a page of a user and a part of the name", 2, 160, page(Query{User: "ada", Name: "RESNET"}))
		c.cost("read a page up to a time", 2, 400, page(Query{Until: job.Time(1 << 50)}))
		c.cost("look for a status that no job has", 1, 2*shards, page(Query{Statuses: []job.Status{job.Failed}}))
		c.cost("look for a user who has no job", rounds, 3*blocks+20*shards, page(Query{User: "nobody"}))
		c.cost("look for a name that no job has", rounds, 3*blocks+20*shards, page(Query{Name: "zebra", Live: true}))
		c.cost("count jobs by status", 1, shards, func() { must[map[job.Status]int64](t)(c.Statuses(c.ctx)) })
	}
}

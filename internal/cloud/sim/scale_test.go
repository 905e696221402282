package sim_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// many opens a world with room for as many machines as a benchmark wants, without a ledger.
func many(tb testing.TB, rdb redis.UniversalClient) *sim.Cloud {
	tb.Helper()
	w := small()
	w.NoLedger, w.Zones[0].Capacity.N, w.Zones[0].Boot = true, 1_000_000, 0
	c, err := sim.Open(tb.Context(), rdb, w)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// fill makes machines with a run each, by many goroutines.
func fill(tb testing.TB, c *sim.Cloud, n int) []string {
	tb.Helper()
	p, d := c.Provider("01JZZZZZZZZZZZZZZZZZZZZZZZ", "worker"), c.Dialer("worker")
	ids := make([]string, n)
	next := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range next {
				r := request(job.ID(i+1), 1, 1)
				r.Deployment = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
				nodes, err := p.Create(tb.Context(), r)
				if err != nil {
					tb.Error(err)
					continue
				}
				ids[i] = nodes[0].ID
				s, err := d.Dial(tb.Context(), job.Node{ID: ids[i]})
				if err != nil {
					tb.Error(err)
					continue
				}
				_, err = machine.NewClient(s, sim.AgentArgv).Start(tb.Context(), "/sim/agent", agent.StartRequest{
					Token: r.Token, Run: "echo working\nsleep 3600\necho done", NoticeFile: "/sim/notice.json",
				})
				if err != nil {
					tb.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return ids
}

// used is the memory that Redis uses for what it keeps, without the buffers of its clients.
func used(tb testing.TB, rdb redis.UniversalClient) int {
	tb.Helper()
	info, err := rdb.Info(context.Background(), "memory").Result()
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.SplitSeq(info, "\r\n") {
		if n, ok := strings.CutPrefix(line, "used_memory_dataset:"); ok {
			bytes, err := strconv.Atoi(n)
			if err != nil {
				tb.Fatal(err)
			}
			return bytes
		}
	}
	tb.Fatal("Redis does not tell how much memory it uses")
	return 0
}

// Ensure that a machine with its run takes less than 600 bytes of Redis, so that 100,000 of them fit anywhere.
func TestMachineIsSmall(t *testing.T) {
	t.Parallel()
	const machines, most = 4000, 600
	w := open(t, small())
	c := many(t, w.rdb)
	fill(t, c, 100) // what is there once
	before := used(t, w.rdb)
	fill(t, c, machines)
	if each := (used(t, w.rdb) - before) / (machines - 100); each > most {
		t.Errorf("a machine takes %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a machine takes %d bytes", each)
	}
}

package sim_test

import (
	"sync/atomic"
	"testing"

	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

const benchMachines = 100_000

// BenchmarkWorld measures what a fleet does all the time with 100,000 machines: polls, by many at once and by one alone, and
// lists.
func BenchmarkWorld(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	c := many(b, rdb)
	empty := used(b, rdb)
	ids := fill(b, c, benchMachines)
	b.Logf("%d bytes of Redis a machine", (used(b, rdb)-empty)/benchMachines)
	poll := func(b *testing.B, id string) {
		s, err := c.Dialer("worker").Dial(b.Context(), job.Node{ID: id})
		if err == nil {
			_, err = machine.NewClient(s, sim.AgentArgv).Poll(b.Context(), "/sim/agent", 8, 1000)
		}
		if err != nil {
			b.Error(err)
		}
	}
	b.Run("PollAtATime", func(b *testing.B) {
		var next atomic.Int64
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				poll(b, ids[next.Add(1)%benchMachines])
			}
		})
	})
	b.Run("PollAlone", func(b *testing.B) {
		for i := range b.N {
			poll(b, ids[i%benchMachines])
		}
	})
	b.Run("List", func(b *testing.B) {
		p := c.Provider("01JZZZZZZZZZZZZZZZZZZZZZZZ", "worker")
		for range b.N {
			nodes, err := p.List(b.Context(), "east")
			if err != nil || len(nodes) != benchMachines {
				b.Fatalf("%d machines, error %v", len(nodes), err)
			}
		}
	})
}

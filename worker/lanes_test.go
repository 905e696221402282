package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// Ensure that a whole deployment works on every kind of Redis, with the real server (docs/redis.md).
func TestLaneValkey(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Valkey(), redistest.TCP(), redistest.Password(word))
	newFleetOn(t, "redis://:"+word+"@"+s.Address(), s).lane(nil)
}

// Ensure that a whole deployment works over TLS, with a certificate of the client's own and authorities that nobody else trusts.
func TestLaneTLS(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.TLS(a, a.Issue("redis.example.org", time.Now().Add(time.Hour))), redistest.Password(word))
	f := newFleetOn(t, "rediss://:"+word+"@"+s.Address(), s)
	own := a.Issue("worker", time.Now().Add(time.Hour))
	f.env = []string{"OUTLAST_REDIS_TLS_CA=" + a.CA, "OUTLAST_REDIS_TLS_CERT=" + own.Cert, "OUTLAST_REDIS_TLS_KEY=" + own.Key, "OUTLAST_REDIS_TLS_SERVER_NAME=redis.example.org"}
	f.lane(nil)
}

// Ensure that a whole deployment works behind Sentinels, which ask for another password than the servers, and goes on when the
// master dies in the middle.
func TestLaneSentinel(t *testing.T) {
	t.Parallel()
	w := redistest.StartSentinel(t, 1, redistest.Password(word))
	f := newFleetOn(t, fmt.Sprintf("redis+sentinel://:%s@%s/%s", word, w.Hosts(), redistest.MasterName), append(w.Replicas, w.Master)...)
	f.env = []string{"OUTLAST_REDIS_SENTINEL_PASSWORD=" + redistest.SentinelPassword, "OUTLAST_REDIS_REPLICAS=1"}
	f.lane(func() {
		old := w.Current()
		old.Kill9()
		w.AwaitFailover(old)
		old.Restart() // and is told that it is a replica now
	})
}

// Ensure that a whole deployment works on a cluster, while slots that it uses move from one node to another: no script touches
// two slots, neither ours nor asynq's, and each can be repeated where it is redirected to.
func TestLaneCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.Password(word))
	f := newFleetOn(t, fmt.Sprintf("redis+cluster://:%s@%s", word, c.Hosts()), c.Nodes...)
	f.addRights("+cluster|slots") // and what else the docs add for a cluster
	f.lane(func() {
		for _, tag := range []string{"ol:{d}:", "ol:{s00}:", "ol:{s01}:", "asynq:{watch}:", "asynq:{launch}:", "asynq:{control}:", "asynq:{fleet}:"} {
			slot := c.Slot(tag)
			to := c.Nodes[0]
			if c.Owner(slot) == to {
				to = c.Nodes[1]
			}
			c.Open(slot, to)
			c.Close(slot, to)
		}
	})
}

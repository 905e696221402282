package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long servers may take to find each other. It is no measurement: the machine may be busy.
const patience = 60 * time.Second

// slots is how many there are in a cluster.
const slots = 16384

// Cluster is several masters that share the slots.
type Cluster struct {
	Nodes []*Server
	tb    testing.TB
}

// StartCluster runs a cluster of n masters until the end of the test.
func StartCluster(tb testing.TB, n int, with ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range n {
		bus := FreePort(tb)
		s := prepare(tb, append([]Option{TCP(), Set("--databases", "1", "--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port", strconv.Itoa(bus))}, with...))
		s.Restart()
		for _, other := range c.Nodes {
			s.do("CLUSTER", "MEET", "127.0.0.1", other.port, busOf(other))
		}
		c.Nodes = append(c.Nodes, s)
	}
	for i, s := range c.Nodes {
		s.do("CLUSTER", "ADDSLOTSRANGE", i*slots/n, (i+1)*slots/n-1)
	}
	for _, s := range c.Nodes {
		until(tb, "every node to know all slots", func() bool {
			info := s.do("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", n)) &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n))
		})
	}
	return c
}

// busOf is the port on which other nodes talk to a server.
func busOf(s *Server) string {
	for i, word := range s.settings {
		if word == "--cluster-port" {
			return s.settings[i+1]
		}
	}
	return "0"
}

// Hosts are the addresses of the nodes, as a URL has them.
func (c *Cluster) Hosts() string {
	var all []string
	for _, s := range c.Nodes {
		all = append(all, s.Address())
	}
	return strings.Join(all, ",")
}

// Client returns a new client that is closed at the end of tb.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(c.Hosts(), ","), Username: c.Nodes[0].user, Password: c.Nodes[0].password, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Slot is the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	var n int
	if _, err := fmt.Sscan(c.Nodes[0].do("CLUSTER", "KEYSLOT", key), &n); err != nil {
		c.tb.Fatal(err)
	}
	return n
}

// Owner is the node that a slot belongs to, as the node itself sees it.
func (c *Cluster) Owner(slot int) *Server {
	c.tb.Helper()
	for _, s := range c.Nodes {
		for line := range strings.Lines(s.do("CLUSTER", "NODES")) {
			words := strings.Fields(line)
			if len(words) < 9 || !strings.Contains(words[2], "myself") {
				continue
			}
			for _, part := range words[8:] {
				var from, to int
				if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 1 {
					to = from
				} else if n == 0 {
					continue
				}
				if from <= slot && slot <= to {
					return s
				}
			}
		}
	}
	c.tb.Fatalf("no node has slot %d", slot)
	return nil
}

// Open begins to move a slot: the keys that it has stay where they are, and new ones are to go to the other node. A script
// that touches some of both is answered with TRYAGAIN until [Cluster.Close].
func (c *Cluster) Open(slot int, to *Server) {
	c.tb.Helper()
	from := c.Owner(slot)
	to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.do("CLUSTER", "MYID"))
	from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.do("CLUSTER", "MYID"))
}

// Close moves the keys of an open slot, and then the slot.
func (c *Cluster) Close(slot int, to *Server) {
	c.tb.Helper()
	from := c.Owner(slot)
	rdb := from.Client(c.tb)
	for {
		keys, err := rdb.ClusterGetKeysInSlot(c.tb.Context(), slot, 100).Result()
		if err != nil {
			c.tb.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"MIGRATE", "127.0.0.1", to.port, "", 0, 5000}
		if to.password != "" {
			args = append(args, "AUTH", to.password)
		}
		args = append(args, "KEYS")
		for _, k := range keys {
			args = append(args, k)
		}
		from.do(args...)
	}
	id := to.do("CLUSTER", "MYID")
	to.do("CLUSTER", "SETSLOT", slot, "NODE", id)
	from.do("CLUSTER", "SETSLOT", slot, "NODE", id)
	for _, s := range c.Nodes {
		s.do("CLUSTER", "SETSLOT", slot, "NODE", id)
	}
}

// until waits until a condition holds.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	ctx, done := context.WithTimeout(tb.Context(), patience)
	defer done()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-ctx.Done():
			tb.Fatalf("waited too long for %s", what)
		}
	}
}

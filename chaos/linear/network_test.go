package linear_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// network is a redis-server with a proxy in front of it for each client.
type network struct {
	t       *testing.T
	server  *redistest.Server
	admin   *redis.Client // not by way of a proxy
	bridge  net.Listener  // toxiproxy speaks TCP, the server listens on a unix socket
	open    atomic.Bool   // the bridge lets connections through
	proxies []*toxiproxy.Proxy
	pipes   sync.WaitGroup
}

func newNetwork(t *testing.T, clients int) *network {
	t.Helper()
	bridge, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, server: redistest.Start(t), bridge: bridge}
	n.admin = n.server.Client(t)
	n.durable()
	n.pipes.Go(n.carry)
	made := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for range clients {
		p := toxiproxy.NewProxy(made, "client", "127.0.0.1:0", bridge.Addr().String())
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		n.proxies = append(n.proxies, p)
	}
	t.Cleanup(func() {
		for _, p := range n.proxies {
			p.Stop()
		}
		_ = bridge.Close()
		n.server.Kill9() // ends what the pipes wait for
		n.pipes.Wait()
	})
	return n
}

// durable makes the server write before it answers. With everysec a killed server may lose the answers of the milliseconds
// of its last write to the disk, which is stated elsewhere and is no fault of the scripts.
func (n *network) durable() {
	n.t.Helper()
	if err := n.admin.ConfigSet(context.Background(), "appendfsync", "always").Err(); err != nil {
		n.t.Fatal(err)
	}
	n.open.Store(true)
}

// carry carries connections from the bridge to the server.
func (n *network) carry() {
	for {
		near, err := n.bridge.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("unix", n.server.Options().Addr)
		if err != nil || !n.open.Load() {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			n.pipes.Go(func() {
				_, _ = io.Copy(way[0], way[1])
				_, _ = near.Close(), far.Close()
			})
		}
	}
}

// kill kills the server and starts it again from its file.
func (n *network) kill() {
	n.open.Store(false)
	n.server.Kill9()
	n.server.Restart()
	n.durable()
}

// client is a connection by way of a proxy. It repeats nothing by itself: each repetition is a call of its own.
func (n *network) client(i int) *redis.Client {
	o := n.server.Options()
	o.Network, o.Addr = "tcp", n.proxies[i].Listen
	o.MaxRetries, o.PoolSize = -1, 2
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = answerWithin, answerWithin, answerWithin
	c := redis.NewClient(o)
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answerWithin is how long a client waits for an answer before it counts as lost.
const answerWithin = 150 * time.Millisecond

// harm does something bad to one client's connections for a while.
func (n *network) harm(ctx context.Context, i int, toxic string, lasts time.Duration) {
	p := n.proxies[i]
	if toxic == "" {
		p.Stop()
		pause(ctx, lasts)
		if err := p.Start(); err != nil {
			n.t.Error(err)
		}
		return
	}
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		n.t.Error(err)
		return
	}
	pause(ctx, lasts)
	if err := p.Toxics.RemoveToxic(context.Background(), "it"); err != nil {
		n.t.Error(err)
	}
}

// toxics are what harm does; "" cuts all connections and refuses new ones.
var toxics = []string{
	"",
	`{"name":"it","type":"latency","stream":"downstream","attributes":{"latency":30,"jitter":30}}`,
	`{"name":"it","type":"latency","stream":"upstream","attributes":{"latency":60,"jitter":60}}`,
	`{"name":"it","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`,
	`{"name":"it","type":"limit_data","stream":"downstream","attributes":{"bytes":700}}`,
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// network makes the proxies through which everybody reaches Redis.
type network struct{ server *toxiproxy.ApiServer }

func newNetwork() *network {
	return &network{toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// link is the way of one party to one server.
type link struct {
	proxy  *toxiproxy.Proxy
	listen string // HOST:PORT
}

// link makes a way to a server at an address.
func (n *network) link(name, upstream string) (*link, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := toxiproxy.NewProxy(n.server, name, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), upstream)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start the proxy of %s: %w", name, err)
	}
	return &link{proxy: p, listen: p.Listen}, nil
}

func (l *link) close() { l.proxy.Stop() }

// toxic is what toxiproxy calls something bad that it does to a direction.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]any `json:"attributes"`
}

// poison adds toxics and returns what takes them away.
func (l *link) poison(all ...toxic) (heal func() error, err error) {
	var added []string
	heal = func() error {
		for _, name := range added {
			if err := l.proxy.Toxics.RemoveToxic(background, name); err != nil {
				return fmt.Errorf("heal %s: %w", l.proxy.Name, err)
			}
		}
		return nil
	}
	for _, t := range all {
		t.Name = t.Type + "-" + t.Stream
		text, err := json.Marshal(t)
		if err != nil {
			return heal, fmt.Errorf("poison %s: %w", l.proxy.Name, err)
		}
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return heal, fmt.Errorf("poison %s: %w", l.proxy.Name, err)
		}
		added = append(added, t.Name)
	}
	return heal, nil
}

// deaf drops what is sent one way or the other: connections stay open, and nobody is told. That is what a partition is
// like. Answers of Redis that are dropped belong to commands that were carried out.
func (l *link) deaf(asked, answers bool) (func() error, error) {
	var all []toxic
	for stream, yes := range map[string]bool{"upstream": asked, "downstream": answers} {
		if yes {
			all = append(all, toxic{Type: "timeout", Stream: stream, Attributes: map[string]any{"timeout": 0}})
		}
	}
	return l.poison(all...)
}

// slow delays each answer.
func (l *link) slow(by time.Duration) (func() error, error) {
	return l.poison(toxic{Type: "latency", Stream: "downstream", Attributes: map[string]any{
		"latency": by.Milliseconds(), "jitter": by.Milliseconds() / 2,
	}})
}

// torn ends each connection in the middle of an answer, after so many bytes.
func (l *link) torn(after int) (func() error, error) {
	return l.poison(toxic{Type: "limit_data", Stream: "downstream", Attributes: map[string]any{"bytes": after}})
}

// cut ends all connections and refuses new ones.
func (l *link) cut() (func() error, error) {
	l.proxy.Stop()
	return func() error {
		if err := l.proxy.Start(); err != nil {
			return fmt.Errorf("heal %s: %w", l.proxy.Name, err)
		}
		return nil
	}, nil
}

// The ports of servers and proxies lie below those that the kernel gives to connections: a server that is away for seconds
// would else find its port taken by one when it comes back, or a proxy that dials it would be connected to itself.
const (
	portsFrom = 15_000
	portsTo   = 32_000
)

// freePort finds a port that nobody listens on.
func freePort() (int, error) {
	var why error
	for range 100 {
		port := portsFrom + rand.IntN(portsTo-portsFrom)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		why = err
	}
	return 0, fmt.Errorf("find a free port: %w", why)
}

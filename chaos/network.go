package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// network makes the proxies through which everybody reaches Redis.
type network struct{ server *toxiproxy.ApiServer }

func newNetwork() *network {
	toxics.Register("rename", new(rename))
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

// renames replaces texts by others of the same length in what is answered.
func (l *link) renames(names map[string]string) (func() error, error) {
	return l.poison(toxic{Type: "rename", Stream: "downstream", Attributes: map[string]any{"names": names}})
}

// rename is a toxic that does that. A text that comes in two pieces stays as it is: answers of a Sentinel come in one.
type rename struct {
	Names map[string]string `json:"names"`
}

// Pipe passes on what comes.
func (t *rename) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			c.Data = t.rename(c.Data)
			stub.Output <- c
		}
	}
}

// rename replaces all at once: a new text may be an old one of another.
func (t *rename) rename(text []byte) []byte {
	var pairs []string
	for old, now := range t.Names {
		pairs = append(pairs, old, now)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// way is all that one party has to reach Redis by: a link to each server.
type way []*link

// each does the same to all links, and returns what heals them.
func (w way) each(do func(l *link) (func() error, error)) (func() error, error) {
	var heals []func() error
	heal := func() error {
		var errs []error
		for _, h := range heals {
			errs = append(errs, h())
		}
		return errors.Join(errs...)
	}
	for _, l := range w {
		h, err := do(l)
		heals = append(heals, h)
		if err != nil {
			return heal, err
		}
	}
	return heal, nil
}

// deaf drops what is answered: connections stay open, and nobody is told. What was asked was carried out.
func (w way) deaf() (func() error, error) {
	return w.each(func(l *link) (func() error, error) { return l.poison(drops("downstream")) })
}

// apart drops all that is sent, either way. That is what a partition is like.
func (w way) apart() (func() error, error) {
	return w.each(func(l *link) (func() error, error) { return l.poison(drops("upstream"), drops("downstream")) })
}

func drops(stream string) toxic {
	return toxic{Type: "timeout", Stream: stream, Attributes: map[string]any{"timeout": 0}}
}

// slow delays each answer.
func (w way) slow(by time.Duration) (func() error, error) {
	late := toxic{Type: "latency", Stream: "downstream", Attributes: map[string]any{"latency": by.Milliseconds(), "jitter": by.Milliseconds() / 2}}
	return w.each(func(l *link) (func() error, error) { return l.poison(late) })
}

// torn ends each connection in the middle of an answer, after so many bytes.
func (w way) torn(after int) (func() error, error) {
	limit := toxic{Type: "limit_data", Stream: "downstream", Attributes: map[string]any{"bytes": after}}
	return w.each(func(l *link) (func() error, error) { return l.poison(limit) })
}

// cut ends all connections and refuses new ones.
func (w way) cut() (func() error, error) {
	return w.each(func(l *link) (func() error, error) {
		l.proxy.Stop()
		return func() error {
			if err := l.proxy.Start(); err != nil {
				return fmt.Errorf("heal %s: %w", l.proxy.Name, err)
			}
			return nil
		}, nil
	})
}

func (w way) close() {
	for _, l := range w {
		l.close()
	}
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

package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ensure that a cluster serves, also while a slot moves from one node to another and after it.
func TestClusterMovesSlots(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, Password("word"))
	rdb := c.Client(t)
	slot := c.Slot("k")
	to := c.Nodes[0]
	if c.Owner(slot) == to {
		to = c.Nodes[1]
	}
	for _, step := range []func(){func() {}, func() { c.Open(slot, to) }, func() { c.Close(slot, to) }} {
		step()
		if err := rdb.Incr(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
	}
	if n, err := rdb.Get(t.Context(), "k").Int(); n != 3 || err != nil || c.Owner(slot) != to {
		t.Errorf("got %d, %v", n, err)
	}
}

// Ensure that Sentinels, which ask for a password of their own, make a replica the master when the master dies.
func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	w := StartSentinel(t, 1, Password("word"))
	old := w.Current()
	if old != w.Master {
		t.Fatal("another one is the master")
	}
	if err := old.Client(t).Do(t.Context(), "SET", "k", "v").Err(); err != nil {
		t.Fatal(err)
	}
	old.Client(t).Do(t.Context(), "WAIT", 1, 0)
	old.Kill9()
	if now := w.AwaitFailover(old); now.Client(t).Get(t.Context(), "k").Val() != "v" {
		t.Error("the key is gone")
	}
}

// Ensure that a server with TLS serves those with a certificate.
func TestTLSAsksForACertificate(t *testing.T) {
	t.Parallel()
	a := NewAuthority(t)
	s := Start(t, TLS(a, a.Issue("127.0.0.1", time.Now().Add(time.Hour))))
	text, err := os.ReadFile(a.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	own := a.Issue("client", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		certs []tls.Certificate
		ok    bool
	}{{nil, false}, {[]tls.Certificate{pair}, true}} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Address(), TLSConfig: &tls.Config{RootCAs: roots, Certificates: c.certs, MinVersion: tls.VersionTLS12}})
		if err := rdb.Ping(t.Context()).Err(); (err == nil) != c.ok {
			t.Errorf("with %d certificates: %v", len(c.certs), err)
		}
		_ = rdb.Close()
	}
}

package main

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// Ensure that what a Sentinel says of addresses is put right on the way of a party, so that it finds all others by links of
// its own; and that cutting these off cuts off nobody else.
func TestWay(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("the master is at 15001, a replica at 16001\n"))
			_ = c.Close()
		}
	}()
	n := newNetwork()
	mine, err := n.link("mine", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := n.link("theirs", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := way{mine}
	defer w.close()
	defer theirs.close()
	if _, err := w.each(func(l *link) (func() error, error) {
		return l.renames(map[string]string{"15001": "16001", "16001": "17001"})
	}); err != nil {
		t.Fatal(err)
	}
	heal, err := w.cut()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hear(mine); err == nil {
		t.Errorf("heard %q over a way that is cut", got)
	}
	if got, err := hear(theirs); err != nil || got != "the master is at 15001, a replica at 16001\n" {
		t.Errorf("another party heard %q, %v", got, err)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	if got, err := hear(mine); err != nil || got != "the master is at 16001, a replica at 17001\n" {
		t.Errorf("heard %q, %v", got, err)
	}
}

func hear(l *link) (string, error) {
	c, err := net.DialTimeout("tcp", l.listen, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	return bufio.NewReader(c).ReadString('\n')
}

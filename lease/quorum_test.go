package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// quorumTTL is long enough for a slow machine, and short enough to wait for.
const quorumTTL = 3 * time.Second

// council is several lease servers, and two workers that use them.
type council struct {
	t       *testing.T
	servers []*redistest.Server
	one     *Quorum
	other   *Quorum
}

func newCouncil(t *testing.T, n int, connect func(context.Context, *redis.Conn) error) *council {
	t.Helper()
	c := &council{t: t}
	for range n {
		c.servers = append(c.servers, redistest.Start(t))
	}
	worker := func() *Quorum {
		var clients []redis.UniversalClient
		for _, s := range c.servers {
			o := s.Options()
			o.MaxRetries, o.DialerRetries = -1, 1
			o.DialTimeout, o.ReadTimeout, o.WriteTimeout = time.Second, time.Second, time.Second
			o.OnConnect = connect
			client := redis.NewClient(o)
			t.Cleanup(func() { _ = client.Close() })
			clients = append(clients, client)
		}
		return NewQuorum("d:", quorumTTL, clients...)
	}
	c.one, c.other = worker(), worker()
	return c
}

// take takes a lock that must be had. A machine that is too slow for the servers' time is given another try.
func (c *council) take(q *Quorum, token string) *Agreed {
	c.t.Helper()
	var a *Agreed
	until(c.t, "the servers to agree", func() bool {
		var err error
		a, err = q.Take(c.t.Context(), key, token)
		if errors.Is(err, ErrHeld) {
			c.t.Fatal(err)
		}
		return err == nil
	})
	return a
}

// refuses ensures that the other worker does not get the lock.
func (c *council) refuses() {
	c.t.Helper()
	if a, err := c.other.Take(c.t.Context(), key, "theirs"); err == nil {
		a.Release()
		c.t.Fatal("two workers hold the same lock")
	}
}

// extends ensures that a lock is extended, again and again, with a few tries for a slow machine, and that the other worker
// is refused meanwhile.
func (c *council) extends(a *Agreed) {
	c.t.Helper()
	for range 3 {
		var err error
		until(c.t, "the lock to be extended", func() bool {
			if err = a.Extend(c.t.Context()); errors.Is(err, ErrLost) {
				c.t.Fatal(err)
			}
			return err == nil
		})
		c.refuses()
	}
}

// Ensure that a lock on several servers goes on while a minority of them is dead or frozen, whichever of them that is, also
// one after the other, and that a released lock is free.
func TestQuorumOutlivesAMinority(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := newCouncil(t, n, nil)
			a := c.take(c.one, "mine")
			c.extends(a)
			c.servers[0].Kill9()
			c.extends(a)
			if n == 5 {
				c.servers[1].Freeze()
				c.extends(a)
				c.servers[1].Thaw()
			}
			c.servers[0].Restart()
			c.extends(a)
			a.more.Wait() // the server that came back has the lock, too
			c.servers[2].Freeze()
			c.extends(a)
			a.Release()
			b := c.take(c.other, "theirs")
			if _, err := c.one.Take(t.Context(), key, "again"); err == nil {
				t.Error("two workers hold the same lock")
			}
			c.servers[2].Thaw()
			b.Release()
		})
	}
}

// Ensure that without a majority no lock is given and none extended, which is no loss as long as the lease is trusted, and
// that a lock that nobody else took is extended when the majority is back in time, and else never again. Then it can be had.
func TestQuorumIsAPauseWithoutAMajority(t *testing.T) {
	t.Parallel()
	c := newCouncil(t, 3, nil)
	a := c.take(c.one, "mine")
	c.servers[0].Kill9()
	c.servers[1].Freeze()
	if err := a.Extend(t.Context()); !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrLost) {
		t.Errorf("extend without a majority: %v, want ErrNoQuorum", err)
	}
	if _, err := c.other.Take(t.Context(), "another job", "theirs"); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("take without a majority: %v, want ErrNoQuorum", err)
	}
	c.servers[1].Thaw()
	trusted := time.Now().Add(quorumTTL)
	until(t, "the lock to be extended, or its time to pass", func() bool {
		err := a.Extend(t.Context())
		return err == nil || errors.Is(err, ErrLost) || time.Now().After(trusted)
	})
	a.Release()
	c.take(c.other, "theirs").Release()
}

// Ensure that a lock which expired is lost for good, however soon the servers are asked again, and although nobody has taken it.
func TestQuorumTakesNoExpiredLockAgain(t *testing.T) {
	t.Parallel()
	c := newCouncil(t, 3, nil)
	a := c.take(c.one, "mine")
	for _, s := range c.servers {
		rdb := s.Client(t)
		until(t, "the lock to expire", func() bool { return rdb.Exists(t.Context(), "d:"+key).Val() == 0 })
	}
	until(t, "the loss to be told", func() bool {
		err := a.Extend(t.Context())
		if err == nil {
			t.Fatal("a lock that had expired was extended")
		}
		return errors.Is(err, ErrLost)
	})
}

// Ensure that servers which were restarted, and have forgotten everything, give nobody a lock that another worker still
// trusts: they do not count until they have been up for longer than it lasts.
func TestQuorumDoesNotAskTheForgetful(t *testing.T) {
	t.Parallel()
	c := newCouncil(t, 3, Fresh(quorumTTL))
	if _, err := c.one.Take(t.Context(), key, "mine"); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("servers that have just started: %v, want ErrNoQuorum", err)
	}
	a := c.take(c.one, "mine") // which waits until they have been up long enough
	for _, s := range c.servers[:2] {
		s.Client(t).FlushAll(t.Context()) // as if they kept nothing
		s.Restart()
	}
	if _, err := c.other.Take(t.Context(), key, "theirs"); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("two of three have forgotten the lock: %v, want ErrNoQuorum", err)
	}
	a.Release()
	c.take(c.other, "theirs").Release()
}

// Ensure that without servers nothing is asked and everything is agreed to.
func TestNoQuorumAgrees(t *testing.T) {
	var q *Quorum
	a, err := q.Take(t.Context(), key, "mine")
	if err != nil || a.Extend(t.Context()) != nil {
		t.Errorf("no servers: %v", err)
	}
	a.Release()
}

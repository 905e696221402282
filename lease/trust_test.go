package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"pgregory.net/rapid"
)

// reply is what becomes of one renewal: how long it takes there and back, and whether it or its answer is lost.
type reply struct {
	There, Back time.Duration
	LostThere   bool
	LostBack    bool
}

var errNoAnswer = errors.New("no answer")

// modelStore is a store with one lock, on the clock of the bubble it lives in.
type modelStore struct {
	ttl     time.Duration
	expires time.Time
	replies []reply // of the renewals to come; the last one is repeated
}

func (s *modelStore) Get(ctx context.Context) (redis.Conn, error) {
	return &modelConn{ctx: ctx, store: s}, nil
}

// modelConn is a connection that renews the lock. Nothing else is asked of it.
type modelConn struct {
	redis.Conn
	ctx   context.Context
	store *modelStore
}

func (c *modelConn) Close() error { return nil }

func (c *modelConn) Eval(*redis.Script, ...any) (any, error) {
	r := c.store.replies[0]
	if len(c.store.replies) > 1 {
		c.store.replies = c.store.replies[1:]
	}
	if !c.travel(r.There) || r.LostThere {
		return nil, errNoAnswer
	}
	now := time.Now()
	if !now.Before(c.store.expires) {
		return int64(0), nil
	}
	c.store.expires = now.Add(c.store.ttl)
	if !c.travel(r.Back) || r.LostBack {
		return nil, errNoAnswer
	}
	return int64(1), nil
}

// travel lets time pass, and reports whether the caller still waits.
func (c *modelConn) travel(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// Ensure, for every pattern of slow and lost renewals, that the lease's context ends before the store would give the
// lock to somebody else, and no sooner than the last renewal that succeeded allows.
func TestTrustIsShorterThanTheLock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		delay := rapid.Map(rapid.IntRange(0, 1200), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
		lost := rapid.Map(rapid.IntRange(0, 4), func(n int) bool { return n == 0 })
		replies := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) reply {
			return reply{delay.Draw(rt, "there") / 8, delay.Draw(rt, "back") / 8, lost.Draw(rt, "lost there"), lost.Draw(rt, "lost back")}
		}), 0, 30).Draw(rt, "replies")
		replies = append(replies, reply{LostThere: true}) // in the end nothing arrives any more
		asked := delay.Draw(rt, "asked") / 2

		var broken error
		synctest.Test(t, func(t *testing.T) { broken = trustOver(t, asked, replies) })
		if broken != nil {
			rt.Fatal(broken)
		}
	})
}

// trustOver lets a lease live through the replies, and says what was wrong with its end.
func trustOver(t *testing.T, asked time.Duration, replies []reply) error {
	t.Helper()
	const ttl = time.Second
	began := time.Now()
	<-time.After(asked) // the call that has set the lock took so long
	s := &modelStore{ttl: ttl, expires: began.Add(ttl), replies: replies}
	k := &Keeper{locks: redsync.New(s), ttl: ttl}
	ctx, l := k.Keep(t.Context(), key, "mine", began, nil)
	<-ctx.Done()
	end := time.Now()
	l.Release()
	if !end.Before(s.expires) {
		return fmt.Errorf("trust ended %v after the lock", end.Sub(s.expires))
	}
	if d := end.Sub(began); d < ttl-ttl/marginPart {
		return fmt.Errorf("trust ended after %v only", d)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrLost) {
		return fmt.Errorf("cause is %w, want ErrLost", cause)
	}
	return nil
}

package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// patience is how long anything may take before a test gives up on it. It is no measurement: the machine may be busy.
const patience = 30 * time.Second

const key = "job"

// take does what the store's scripts do: it sets the lock, and hands it over to a keeper.
func take(t *testing.T, rdb redis.UniversalClient, ttl time.Duration, beat func(context.Context) error) (context.Context, *Lease) {
	t.Helper()
	began := time.Now()
	if err := rdb.Set(t.Context(), key, "mine", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, l := NewKeeper(rdb, ttl).Keep(t.Context(), key, "mine", began, beat)
	t.Cleanup(l.Release)
	return ctx, l
}

// ended waits until the lease's context ends, and returns why.
func ended(ctx context.Context, t *testing.T) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		t.Fatal("the lease's context does not end")
		return nil
	}
}

// Ensure that the heartbeat keeps a lease for longer than its TTL, and that meanwhile another holder is refused.
func TestHeartbeatKeepsTheLease(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	rdb := redistest.Start(t).Client(t)
	beats := make(chan struct{})
	ctx, l := take(t, rdb, ttl, func(ctx context.Context) error {
		select {
		case beats <- struct{}{}:
		case <-ctx.Done():
		}
		return nil
	})
	rival := NewKeeper(rdb, ttl).locks.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))
	for range 2 * beatsInTTL {
		select {
		case <-beats:
		case <-ctx.Done():
			t.Fatalf("the lease was lost: %v", context.Cause(ctx))
		}
		var taken *redsync.ErrTaken
		if err := rival.TryLockContext(t.Context()); !errors.As(err, &taken) {
			t.Fatalf("another holder's lock: %v, want ErrTaken", err)
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a driver whose store does not answer stops before the store can give the lease to somebody else, also
// with a client that does not keep to deadlines.
func TestTrustEndsBeforeTheStoresTTL(t *testing.T) {
	t.Parallel()
	for name, obeys := range map[string]bool{"deadlines": true, "no deadlines": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 2 * time.Second
			srv := redistest.Start(t)
			o := srv.Options()
			o.ContextTimeoutEnabled = obeys
			o.ReadTimeout = patience
			rdb := redis.NewClient(o)
			defer rdb.Close()
			asker := srv.Client(t)

			ctx, l := take(t, rdb, ttl, nil)
			srv.Freeze()
			cause := ended(ctx, t)
			srv.Thaw()
			left, err := asker.PTTL(t.Context(), key).Result()
			if err != nil || left <= 0 {
				t.Errorf("trust has ended, and the lock has %v left (%v): want some", left, err)
			}
			if !errors.Is(cause, ErrLost) {
				t.Errorf("cause is %v, want ErrLost", cause)
			}
			if err := l.Check(); !errors.Is(err, ErrLost) {
				t.Errorf("Check: %v, want ErrLost", err)
			}
		})
	}
}

// Ensure that the next heartbeat finds out that the lock has another holder or none, long before its time has passed,
// and leaves it to whoever has it.
func TestStolenLeaseIsLostAtOnce(t *testing.T) {
	t.Parallel()
	for name, steal := range map[string]func(context.Context, redis.UniversalClient) error{
		"another holder": func(ctx context.Context, rdb redis.UniversalClient) error {
			return rdb.Set(ctx, key, "theirs", time.Minute).Err()
		},
		"expired": func(ctx context.Context, rdb redis.UniversalClient) error {
			return rdb.Del(ctx, key).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t)
			ctx, l := take(t, rdb, 2*time.Second, func(context.Context) error { return nil })
			if err := steal(t.Context(), rdb); err != nil {
				t.Fatal(err)
			}
			before := rdb.Get(t.Context(), key).Val()
			cause := ended(ctx, t)
			var taken *redsync.ErrTaken
			if !errors.Is(cause, ErrLost) || !errors.As(cause, &taken) {
				t.Errorf("cause is %v, want ErrLost since it is taken, not since its time has passed", cause)
			}
			if err := l.Check(); !errors.Is(err, ErrLost) {
				t.Errorf("Check right after: %v, want ErrLost", err)
			}
			if after := rdb.Get(t.Context(), key).Val(); after != before {
				t.Errorf("the lock was %q and is %q", before, after)
			}
		})
	}
}

// Ensure that a heartbeat which says that the lease is lost ends it at once, and keeps the reason.
func TestBeatEndsTheLease(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	why := errors.New("another fence")
	ctx, l := take(t, rdb, 2*time.Second, func(context.Context) error { return errors.Join(ErrLost, why) })
	if cause := ended(ctx, t); !errors.Is(cause, ErrLost) || !errors.Is(cause, why) {
		t.Errorf("cause is %v, want ErrLost and the reason", cause)
	}
	if err := l.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("Check right after: %v, want ErrLost", err)
	}
}

// Ensure that a heartbeat that fails for another reason is repeated, sooner than the next one is due, and that the lease
// outlives that.
func TestFailedBeatIsRepeated(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	rdb := redistest.Start(t).Client(t)
	calls, enough := 0, make(chan struct{})
	began := time.Now()
	ctx, l := take(t, rdb, ttl, func(context.Context) error {
		calls++
		if calls%2 == 1 { // every other beat fails
			return errors.New("no answer")
		}
		if time.Since(began) > ttl {
			select {
			case enough <- struct{}{}:
			case <-t.Context().Done():
			}
		}
		return nil
	})
	select {
	case <-enough:
	case <-ctx.Done():
		t.Fatalf("the lease was lost: %v", context.Cause(ctx))
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// Ensure that a lease whose heartbeat keeps failing ends in time, though the lock itself is still prolonged: trust needs both.
func TestTrustNeedsTheBeat(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	ctx, _ := take(t, rdb, 600*time.Millisecond, func(context.Context) error { return errors.New("no answer") })
	if cause := ended(ctx, t); !errors.Is(cause, ErrLost) || !strings.Contains(cause.Error(), "its time has passed") {
		t.Errorf("cause is %v, want ErrLost since its time has passed", cause)
	}
}

// Ensure that a lock which was asked for too long ago is not trusted at all.
func TestLateLeaseIsLost(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	k := NewKeeper(rdb, 0)
	if k.TTL() != DefaultTTL {
		t.Errorf("the default is %v, want %v", k.TTL(), DefaultTTL)
	}
	ctx, l := k.Keep(t.Context(), key, "mine", time.Now().Add(-DefaultTTL), nil)
	defer l.Release()
	if err := l.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("Check: %v, want ErrLost", err)
	}
	if cause := ended(ctx, t); !errors.Is(cause, ErrLost) {
		t.Errorf("cause is %v, want ErrLost", cause)
	}
}

// Ensure that the end of the parent is not taken for a lost lease.
func TestParentsCauseStays(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	why := errors.New("the worker stops")
	parent, stop := context.WithCancelCause(t.Context())
	ctx, l := NewKeeper(rdb, time.Minute).Keep(parent, key, "mine", time.Now(), nil)
	defer l.Release()
	stop(why)
	if cause := ended(ctx, t); !errors.Is(cause, why) || errors.Is(cause, ErrLost) {
		t.Errorf("cause is %v, want the parent's", cause)
	}
	if err := l.Check(); err != nil {
		t.Errorf("Check: %v; a driver that is told to stop may still hand its job over", err)
	}
}

// Ensure that Release can be called any number of times, ends the context without a loss, leaves the lock to the commit
// that deletes it, and leaves no goroutine.
func TestReleaseIsIdempotent(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	beating := make(chan struct{})
	var once sync.Once
	ctx, l := take(t, rdb, 600*time.Millisecond, func(ctx context.Context) error {
		once.Do(func() { close(beating) })
		<-ctx.Done() // a renewal is under way
		return ctx.Err()
	})
	<-beating
	var all sync.WaitGroup
	for range 3 {
		all.Go(l.Release)
	}
	all.Wait()
	l.Release()
	goleak.VerifyNone(t, before)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) || errors.Is(cause, ErrLost) {
		t.Errorf("cause is %v, want context.Canceled", cause)
	}
	if err := l.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("Check of a released lease: %v, want ErrLost", err)
	}
	if got := rdb.Get(t.Context(), key).Val(); got != "mine" {
		t.Errorf("the lock is %q, want it untouched", got)
	}
}

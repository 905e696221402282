// Package lease keeps one driver per job.
//
// A lease is a redsync lock on one key, with a fencing token as its value. Whoever holds it works under the context
// that [Keep] returns, and may trust it less long than the store does:
//
//	acquired ──► renewed ──► renewed ──► … no answer …  │ trust ends │ TTL passes: others may take it
//	             every TTL/3                            └── margin ──┘
//
// Trust ends at (start of the last renewal that succeeded) + TTL − margin, by the monotonic clock of this process. At
// that moment, or when the store says that the lock has another holder, the context ends with cause [ErrLost].
//
// A lease alone cannot stop a process that was frozen between its last check and a write. So everything a
// driver writes is also guarded in the store by the fence that came with the lease, and [Lease.Check] is asked right
// before each thing that is done to a machine.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// ErrLost is the cause with which a lease's context ends when it can no longer be trusted.
var ErrLost = errors.New("lease lost")

// Defaults. A heartbeat may fail twice before trust ends.
const (
	DefaultTTL = 10 * time.Second
	beatsInTTL = 3
	marginPart = 10 // margin = TTL / marginPart: more than the drift of two clocks over one TTL, and a round trip
	retryPart  = 20 // a failed beat is repeated after TTL / retryPart
)

// Keeper keeps leases in one Redis.
type Keeper struct {
	locks *redsync.Redsync
	ttl   time.Duration
}

// NewKeeper makes a keeper of leases that last ttl; 0 means [DefaultTTL].
func NewKeeper(rdb redis.UniversalClient, ttl time.Duration) *Keeper {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	return &Keeper{locks: redsync.New(goredis.NewPool(rdb)), ttl: ttl}
}

// TTL is how long a lease lasts in the store without a renewal.
func (k *Keeper) TTL() time.Duration { return k.ttl }

// Lease is one held lease.
type Lease struct {
	keeper   *Keeper
	mutex    *redsync.Mutex
	beat     func(context.Context) error
	deadline atomic.Int64 // nanoseconds after born
	born     time.Time
	cancel   context.CancelCauseFunc
	stop     chan struct{}
	stopped  sync.WaitGroup
	once     sync.Once
}

// Keep takes over a lock that the store has just set for token on key, asked for at began, and renews it until
// Release. beat, which may be nil, runs with each renewal: an error that wraps ErrLost ends the lease, any other is
// treated like a renewal that failed.
func (k *Keeper) Keep(parent context.Context, key, token string, began time.Time, beat func(context.Context) error) (context.Context, *Lease) {
	ctx, cancel := context.WithCancelCause(parent)
	l := &Lease{
		keeper: k, beat: beat, born: began, cancel: cancel, stop: make(chan struct{}),
		mutex: k.locks.NewMutex(key, redsync.WithValue(token), redsync.WithExpiry(k.ttl), redsync.WithTries(1)),
	}
	l.trustFrom(began)
	l.stopped.Go(func() { l.run(ctx) })
	return ctx, l
}

// trustFrom sets when trust ends, after a renewal that began at t.
func (l *Lease) trustFrom(t time.Time) {
	l.deadline.Store(int64(t.Sub(l.born) + l.keeper.ttl - l.keeper.ttl/marginPart))
}

// left is how long the lease can still be trusted.
func (l *Lease) left() time.Duration {
	return time.Duration(l.deadline.Load()) - time.Since(l.born)
}

// Check returns ErrLost if the lease cannot be trusted any more. It reads the clock itself: a process that was frozen may
// come here before the timer that ends the context has run.
func (l *Lease) Check() error {
	if l.left() <= 0 {
		l.lose(errors.New("its time has passed"))
		return ErrLost
	}
	return nil
}

func (l *Lease) lose(why error) { l.cancel(fmt.Errorf("%w: %w", ErrLost, why)) }

// Release stops the renewals. It leaves the lock itself alone: the commit that ends a drive deletes it in the same script.
func (l *Lease) Release() {
	l.once.Do(func() { close(l.stop) })
	l.stopped.Wait()
	l.cancel(nil)
}

func (l *Lease) run(ctx context.Context) {
	next := time.NewTimer(l.keeper.ttl / beatsInTTL)
	defer next.Stop()
	end := time.NewTimer(l.left())
	defer end.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		case <-end.C:
			if l.Check() != nil {
				return
			}
		case <-next.C:
			wait, ok := l.renew(ctx)
			if !ok {
				return
			}
			next.Reset(wait)
		}
		end.Reset(max(l.left(), 0))
	}
}

// renew prolongs the lock and returns when to do so again; false if the lease is lost.
func (l *Lease) renew(ctx context.Context) (time.Duration, bool) {
	began := time.Now()
	ctx, done := context.WithTimeout(ctx, max(l.left(), 0))
	defer done()
	err := l.extend(ctx)
	if err == nil && l.beat != nil {
		err = l.beat(ctx)
	}
	switch {
	case err == nil:
		l.trustFrom(began)
		return l.keeper.ttl / beatsInTTL, true
	case errors.Is(err, ErrLost):
		l.lose(err)
		return 0, false
	default: // no answer proves nothing: try again while there is time
		return l.keeper.ttl / retryPart, l.Check() == nil
	}
}

func (l *Lease) extend(ctx context.Context) error {
	ok, err := l.mutex.ExtendContext(ctx)
	var taken *redsync.ErrTaken
	switch {
	case ok:
		return nil
	case errors.As(err, &taken) || errors.Is(err, redsync.ErrLockAlreadyExpired):
		return fmt.Errorf("%w: %w", ErrLost, err) // redsync says so also when it has just expired
	case err == nil:
		return ErrLost
	default:
		return err
	}
}

// Package lease keeps one driver per job.
//
// A lease is a redsync lock on one key, with a fencing token as its value. Whoever holds it works under the context
// that [Keeper.Keep] returns, and may trust it less long than the store does:
//
//	acquired ──► renewed ──► renewed ──► … no answer …  │ trust ends │ TTL passes: others may take it
//	             every TTL/3                            └── margin ──┘
//
// Trust ends at (start of the last renewal that succeeded) + TTL − margin, by the monotonic clock of this process. At
// that moment, or when the store says that the lock has another holder, the context ends with cause [ErrLost]. A lease
// that was lost stays lost, whatever the store answers later.
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
	born     time.Time
	deadline atomic.Int64 // of trust, in nanoseconds after born
	over     atomic.Bool  // lost or released: no renewal brings it back
	cancel   context.CancelCauseFunc
	beats    sync.WaitGroup
}

// Keep takes over a lock that the store has just set for token on key, asked for at began, and renews it until
// Release. beat, which may be nil, runs with each renewal: an error that wraps ErrLost ends the lease, any other is
// treated like a renewal that failed. beat must not call Release.
func (k *Keeper) Keep(parent context.Context, key, token string, began time.Time, beat func(context.Context) error) (context.Context, *Lease) {
	ctx, cancel := context.WithCancelCause(parent)
	l := &Lease{
		keeper: k, beat: beat, born: began, cancel: cancel,
		mutex: k.locks.NewMutex(key, redsync.WithValue(token), redsync.WithExpiry(k.ttl), redsync.WithTries(1)),
	}
	l.trustFrom(began)
	l.beats.Go(func() { l.renewals(ctx) })
	l.beats.Go(func() { l.mistrust(ctx) })
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

// Check returns ErrLost if the lease cannot be trusted any more, or was released. It reads the clock itself: a process
// that was frozen may come here before the timer that ends the context has run.
func (l *Lease) Check() error {
	if l.left() <= 0 {
		l.lose(errors.New("its time has passed"))
	}
	if l.over.Load() {
		return ErrLost
	}
	return nil
}

func (l *Lease) lose(why error) {
	l.over.Store(true)
	l.cancel(fmt.Errorf("%w: %w", ErrLost, why)) // the first cause stays
}

// Release stops the renewals and waits until none is under way. It leaves the lock itself alone: the commit that ends a
// drive deletes it in the same script. Calling it again does nothing.
func (l *Lease) Release() {
	l.over.Store(true)
	l.cancel(nil)
	l.beats.Wait()
}

// mistrust ends the lease when its time has passed. It is on its own, since a renewal may hang for as long as it likes.
func (l *Lease) mistrust(ctx context.Context) {
	end := time.NewTimer(l.left())
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			if l.Check() != nil {
				return
			}
			end.Reset(l.left()) // it was renewed meanwhile
		}
	}
}

// renewals renews the lease until ctx ends.
func (l *Lease) renewals(ctx context.Context) {
	next := time.NewTimer(l.keeper.ttl / beatsInTTL)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(l.renew(ctx))
		}
	}
}

// renew prolongs the lock and returns when to do so again.
func (l *Lease) renew(ctx context.Context) time.Duration {
	began := time.Now()
	ctx, done := context.WithTimeout(ctx, l.left())
	defer done()
	err := l.extend(ctx)
	if err == nil && l.beat != nil {
		err = l.beat(ctx)
	}
	switch {
	case err == nil:
		l.trustFrom(began)
		return l.keeper.ttl / beatsInTTL
	case errors.Is(err, ErrLost):
		l.lose(err)
	}
	return l.keeper.ttl / retryPart // no answer proves nothing: try again while there is time
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

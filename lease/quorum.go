package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"
)

var (
	// ErrHeld says that another driver holds the lock on most of the lease servers.
	ErrHeld = errors.New("another driver holds the lease")
	// ErrNoQuorum says that most of the lease servers do not answer. It is a pause.
	ErrNoQuorum = errors.New("most of the lease servers do not answer")
)

// Quorum keeps locks on several servers that do not depend on each other (Redlock): most of them must agree. It stands
// beside the lock in the record's own Redis and takes nothing over from it: that one is checked with every write, and this
// one keeps a second driver from beginning where a failover has lost the first.
//
// What is known to go wrong with such locks, and what is done about it here:
//
//   - A server that was restarted has forgotten whom it had promised the lock. It does not count until it has been up for
//     longer than any lock lasts, see [Fresh].
//   - A server that hangs must not use up the lease: each has a part of the TTL, all are asked at once, and the answer stands
//     when most have given it.
//   - A lock that has expired is never taken again by an extension: somebody may have had it in between. A server that was
//     away gets it anew only after the others have agreed once more.
//   - The time that asking took counts: trust begins before the first question, as with any lease.
type Quorum struct {
	locks   *redsync.Redsync
	servers []goredis9.UniversalClient
	prefix  string
	ttl     time.Duration
}

// serverPart: the time that one server has for its answer is TTL / serverPart.
const serverPart = 5

// NewQuorum makes a quorum of an odd number of servers for locks that last ttl. The keys of a deployment begin with prefix: others may
// use the same servers.
func NewQuorum(prefix string, ttl time.Duration, servers ...goredis9.UniversalClient) *Quorum {
	if ttl == 0 {
		ttl = DefaultTTL
	}
	pools := make([]redis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = goredis.NewPool(s)
	}
	return &Quorum{locks: redsync.New(pools...), servers: servers, prefix: prefix, ttl: ttl}
}

// Fresh refuses the connection to a server that was started less than ttl ago: it may have forgotten a lock that is still
// held. It is for OnConnect of a client's options.
func Fresh(ttl time.Duration) func(context.Context, *goredis9.Conn) error {
	return func(ctx context.Context, c *goredis9.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("ask a lease server since when it is up: %w", err)
		}
		_, rest, _ := strings.Cut(info, "uptime_in_seconds:")
		seconds, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
		if err != nil {
			return errors.New("a lease server does not say since when it is up")
		}
		if up := time.Duration(seconds) * time.Second; up <= ttl { // whole seconds, rounded down
			return fmt.Errorf("a lease server has been up for %s only: it does not count before %s, since it may have forgotten a lock", up, ttl+time.Second)
		}
		return nil
	}
}

// Agreed is a lock on most of the servers. Nil is one that nobody asked for: it always agrees.
type Agreed struct {
	quorum *Quorum
	mutex  *redsync.Mutex
	key    string
	token  string
	more   sync.WaitGroup
}

// Take asks the servers for a lock. It returns ErrHeld or ErrNoQuorum if they do not agree. A nil quorum agrees.
func (q *Quorum) Take(ctx context.Context, key, token string) (*Agreed, error) {
	if q == nil {
		return nil, nil
	}
	a := &Agreed{quorum: q, key: q.prefix + key, token: token}
	a.mutex = q.locks.NewMutex(a.key, redsync.WithGenValueFunc(func() (string, error) { return token, nil }),
		redsync.WithExpiry(q.ttl), redsync.WithTries(1), redsync.WithFailFast(true), redsync.WithTimeoutFactor(1.0/serverPart))
	err := a.mutex.TryLockContext(ctx)
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		return a, nil
	case errors.As(err, &taken):
		return nil, ErrHeld
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, fmt.Errorf("%w: %w", ErrNoQuorum, err)
	}
}

// Extend lets the lock last for another TTL. An error that wraps ErrLost says that somebody else may have it; any other that
// most servers did not answer, which may be tried again while the lease is trusted.
func (a *Agreed) Extend(ctx context.Context) error {
	if a == nil {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, a.quorum.ttl/serverPart)
	defer done()
	ok, err := a.mutex.ExtendContext(ctx)
	var taken *redsync.ErrTaken
	switch {
	case ok:
		a.spread()
		return nil
	case errors.As(err, &taken):
		return fmt.Errorf("%w: %w", ErrLost, err)
	default:
		return fmt.Errorf("%w: %w", ErrNoQuorum, err)
	}
}

// spread gives the lock to servers that do not have it: they were away when it was taken, and are needed if one of the others
// goes. The others have just agreed, so nobody else can have it; whoever holds this server's vote keeps it.
func (a *Agreed) spread() {
	for _, s := range a.quorum.servers {
		a.more.Go(func() {
			ctx, done := context.WithTimeout(context.Background(), a.quorum.ttl/serverPart)
			defer done()
			_ = s.SetNX(ctx, a.key, a.token, a.quorum.ttl).Err() // best effort
		})
	}
}

// Release gives the lock back. A server that is not reached forgets it after the TTL.
func (a *Agreed) Release() {
	if a == nil {
		return
	}
	a.more.Wait()
	ctx, done := context.WithTimeout(context.Background(), a.quorum.ttl/serverPart)
	defer done()
	_, _ = a.mutex.UnlockContext(ctx)
}

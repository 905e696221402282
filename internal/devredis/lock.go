package devredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrInUse says that another process runs a server on the directory.
var ErrInUse = errors.New("another worker dev is running on this directory")

const (
	// lockWait is how long Start waits for another holder of the directory: longer than an orphaned server needs to
	// write its file and end, short enough for a person whose other worker still runs.
	lockWait = 3 * time.Second
	lockPoll = 20 * time.Millisecond
)

// lockDir makes this process the only one that runs a server on dir, until the file returned is closed here and in
// every process that inherited it.
func lockDir(ctx context.Context, dir string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "redis.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := awaitLock(ctx, f, wait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// awaitLock tries until it has the lock or the time is over. The system's own waiting call could not be cancelled.
func awaitLock(ctx context.Context, f *os.File, wait time.Duration) error {
	give := time.NewTimer(wait)
	defer give.Stop()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-give.C:
			return ErrInUse
		case <-ctx.Done():
			return fmt.Errorf("wait for the lock %s: %w", f.Name(), context.Cause(ctx))
		case <-tick.C:
		}
	}
}

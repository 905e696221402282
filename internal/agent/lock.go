package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// The commands of fcntl for locks of an open file (Linux 3.15), which package syscall does not name. Like those
// of flock they are held by whoever has inherited the open file, and end with its last holder. Unlike those, it
// can be asked whether one is held without taking it: a look of poll must not make a start believe that
// somebody else is starting.
const (
	ofdGetLock      = 36
	ofdSetLock      = 37
	ofdSetLockBlock = 38
)

// tryLock takes a lock and returns the open file that holds it, or nil if somebody else holds it.
func tryLock(path string) (*os.File, error) {
	f, err := setLock(path, ofdSetLock)
	if errors.Is(err, syscall.EAGAIN) {
		return nil, nil
	}
	return f, err
}

// waitLock takes a lock, however long that takes.
func waitLock(path string) (*os.File, error) { return setLock(path, ofdSetLockBlock) }

func setLock(path string, command int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK}
	for {
		err = syscall.FcntlFlock(f.Fd(), command, &whole)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("take the lock: %w", err)
	}
	return f, nil
}

// lockHeld reports whether anybody holds a lock, without touching it.
func lockHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lock: %w", err)
	}
	defer f.Close()
	whole := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), ofdGetLock, &whole); err != nil {
		return false, fmt.Errorf("look at the lock: %w", err)
	}
	return whole.Type != syscall.F_UNLCK, nil
}

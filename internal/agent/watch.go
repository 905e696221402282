package agent

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// lookEvery is how often a supervisor looks at its files although it is told of changes.
	lookEvery = time.Second
	// lookOften is how often it looks if the kernel has no inotify instance left for it (128 a user, as a rule).
	lookOften = 200 * time.Millisecond
)

// watch tells of new and changed files in folders for as long as the supervisor lives: there is a value in the channel
// after each change, several changes being told once. Of the log it tells only when it was asked to ([watch.once]): every
// process of the user's code that ends closes it, and there may be thousands a second.
type watch struct {
	changed chan struct{}
	fd      int
	file    *os.File
}

// watchFolders begins to watch. Without an error nothing is missed from its return on.
func watchFolders(folders ...string) (*watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &watch{fd: fd, changed: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "inotify")}
	for _, folder := range folders {
		if _, bad := syscall.InotifyAddWatch(fd, folder, syscall.IN_MOVED_TO|syscall.IN_CLOSE_WRITE); bad != nil {
			err = errors.Join(err, os.NewSyscallError("inotify_add_watch", bad))
		}
	}
	if err != nil {
		w.file.Close()
		return nil, err
	}
	go w.read()
	return w, nil
}

// once begins to tell of the next write to a file, and no further ones: a busy writer is looked at from time to time.
func (w *watch) once(file string) error {
	const oneShot = 0x80000000 // IN_ONESHOT
	_, err := syscall.InotifyAddWatch(w.fd, file, syscall.IN_MODIFY|oneShot)
	return os.NewSyscallError("inotify_add_watch", err)
}

func (w *watch) read() {
	events := make([]byte, 4096)
	for {
		n, err := w.file.Read(events)
		if err != nil {
			return
		}
		if !tells(events[:n]) {
			continue
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// tells reports whether there is anything among the kernel's events but that the log was closed. What it was does not
// matter; what is not understood is told.
func tells(events []byte) bool {
	for len(events) > 0 {
		if len(events) < syscall.SizeofInotifyEvent {
			return true
		}
		mask, length := binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		events = events[syscall.SizeofInotifyEvent:]
		if uint64(length) > uint64(len(events)) {
			return true
		}
		name, _, _ := strings.Cut(string(events[:length]), "\x00")
		if name != fileLog || mask&syscall.IN_CLOSE_WRITE == 0 {
			return true
		}
		events = events[length:]
	}
	return false
}

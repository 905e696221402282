package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// streams are the three pipes between a client and its command.
type streams struct {
	remote [stdio]*os.File // the command's ends
	local  [stdio]*os.File // ours
	stdin  io.Reader
	stdout io.Writer
	stderr head

	outputs sync.WaitGroup // copies of the two outputs
	mu      sync.Mutex
	failure error // the first failure of the caller's own reader or writer
}

const (
	stderrKept = 1024 // bytes of it that an error shows
	// drainTime is how long an output may stay open after its command has ended, held by something that the command left
	// running. What the command itself wrote is in the pipe by then and is always read.
	drainTime = 100 * time.Millisecond
	// drainReads of 64 KiB are as much as a pipe can hold: what comes after that is not of the command.
	drainReads = 16
)

// openStreams makes the pipes. A nil reader is an empty one, a nil writer takes nothing.
func openStreams(stdin io.Reader, stdout io.Writer) (*streams, error) {
	s := &streams{stdin: stdin, stdout: stdout, stderr: head{limit: stderrKept}}
	if stdout == nil {
		s.stdout = io.Discard
	}
	for i := range stdio {
		r, w, err := pipe(i != 0)
		if err != nil {
			s.drop()
			return nil, err
		}
		s.remote[i], s.local[i] = w, r
		if i == 0 {
			s.remote[i], s.local[i] = r, w
		}
	}
	return s, nil
}

// pipe makes a pipe of which one end, the reading one or the writing one, is ours: only that end is taken by Go's poller.
// The other has to stay a blocking one, since commands expect that.
func pipe(readingIsOurs bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	ours := fds[1]
	if readingIsOurs {
		ours = fds[0]
	}
	if err := syscall.SetNonblock(ours, true); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pipe: %w", err), syscall.Close(fds[0]), syscall.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// start copies in both directions. If the caller's own reader or writer fails, abort ends the command: a part of an
// input must not pass for the whole.
func (s *streams) start(abort func()) {
	go func() {
		if s.stdin == nil {
			s.fail(s.local[0].Close(), abort)
			return
		}
		_, err := io.Copy(s.local[0], s.stdin)
		if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) { // the command does not want more
			s.fail(err, abort)
		}
		if err == nil {
			_ = s.local[0].Close() // may have been closed meanwhile
		}
	}()
	for i, to := range map[int]io.Writer{1: s.stdout, 2: &s.stderr} {
		s.outputs.Go(func() {
			if err := copyOutput(to, s.local[i]); !errors.Is(err, os.ErrClosed) {
				s.fail(err, abort)
			}
		})
	}
}

func (s *streams) fail(err error, abort func()) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
	abort()
}

// failed is the first failure of the caller's own reader or writer.
func (s *streams) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// copyOutput copies a pipe until its end, or until its deadline and what is in it then.
func copyOutput(to io.Writer, from *os.File) error {
	_, err := io.Copy(to, from)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err := from.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for range drainReads {
		n := 0
		var errRead error
		// One read without waiting, which a deadline would not allow.
		if err := raw.Read(func(fd uintptr) bool { n, errRead = syscall.Read(int(fd), buf); return true }); err != nil {
			return err
		}
		if errRead != nil || n <= 0 {
			return nil //nolint:nilerr // EAGAIN: it is empty
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for the outputs of a command that has ended and closes everything.
func (s *streams) finish() error {
	limit := time.Now().Add(drainTime)
	_ = s.local[1].SetReadDeadline(limit) // fails only if it is at its end already
	_ = s.local[2].SetReadDeadline(limit)
	s.outputs.Wait()
	s.drop()
	return s.failed()
}

// drop closes everything and waits until nothing is written to the caller's writer any more.
func (s *streams) drop() {
	for i := range stdio {
		_ = s.local[i].Close() // ends a copy under way; may be closed, or nil
		_ = s.remote[i].Close()
	}
	s.outputs.Wait()
}

// head keeps the first bytes that are written to it and takes all.
type head struct {
	limit int
	buf   bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.buf.Write(p[:min(len(p), h.limit-h.buf.Len())])
	return len(p), nil
}

func (h *head) String() string { return h.buf.String() }

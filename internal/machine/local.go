package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// LocalShell runs commands on this computer. Its zero value is ready for use.
type LocalShell struct {
	Env []string // of the commands, as in [exec.Cmd]; nil means that of this process
	Dir string   // where they run; "" means where this process does
}

const (
	maxStderr = 1 << 10
	// pipeDelay is how long the output of a command is read after its end, if a process that it has left behind still
	// has it open.
	pipeDelay = 500 * time.Millisecond
)

// Run runs argv and waits for it. If ctx ends before, the command is killed with its process group, and the error
// wraps that of ctx. A command that can not be started gives the code that a shell would: 127 if it is not there,
// else 126. A read of stdin that blocks for ever does not keep Run from returning, only a goroutine from ending.
func (s LocalShell) Run(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer) error {
	if len(argv) == 0 {
		return errors.New("run: no command")
	}
	if ctx.Err() != nil {
		return fmt.Errorf("run: %w", contextError(ctx))
	}
	complaint := &bounded{most: maxStderr}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.Env, s.Dir, stdout, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeDelay
	feed, err := feedTo(cmd, stdin)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return startError(err)
	}
	feed.begin()
	err = cmd.Wait()
	var ended *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return feed.failure() // the command itself ended well, before or after ctx did
	case ctx.Err() != nil:
		return fmt.Errorf("run: %w", contextError(ctx))
	case errors.As(err, &ended):
		return &CommandError{Code: exitCode(ended), Stderr: complaint.text.String()}
	default: // its output could not be written
		return fmt.Errorf("run: %w", err)
	}
}

// Close does nothing.
func (LocalShell) Close() error { return nil }

// feed copies to the standard input of a command. It is not left to package exec, which waits for the last read.
type feed struct {
	from   io.Reader
	to     io.WriteCloser
	failed chan error // of the reader; filled before the command sees the end of its input
}

func feedTo(cmd *exec.Cmd, stdin io.Reader) (*feed, error) {
	if stdin == nil {
		return &feed{}, nil
	}
	to, err := cmd.StdinPipe()
	return &feed{from: stdin, to: to, failed: make(chan error, 1)}, err
}

// begin copies until the reader ends or the command reads no more.
func (f *feed) begin() {
	if f.from == nil {
		return
	}
	go func() {
		defer f.to.Close()
		_, _ = io.Copy(f.to, failing{f}) // the pipe may fail: a command need not read all of its input
	}()
}

// failing notes an error of the reader.
type failing struct{ *feed }

func (r failing) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		select {
		case r.failed <- err:
		default:
		}
	}
	return n, err
}

// failure returns the error of the reader, if it had one so far.
func (f *feed) failure() error {
	select {
	case err := <-f.failed:
		return fmt.Errorf("run: read the standard input: %w", err)
	default:
		return nil
	}
}

// contextError returns the error of a context that has ended, with its cause if it has one.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func startError(err error) error {
	const notExecutable, notFound = 126, 127
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return &CommandError{Code: notFound, Stderr: err.Error()}
	}
	return &CommandError{Code: notExecutable, Stderr: err.Error()}
}

// exitCode translates an exit as shells do.
func exitCode(err *exec.ExitError) int {
	const signalled = 128
	if ws, ok := err.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return signalled + int(ws.Signal())
	}
	return err.ExitCode()
}

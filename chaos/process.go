package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a program that a run has started. It ends with the run, however that ends.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; read it after done

	mu     sync.Mutex
	frozen bool
}

// start starts a program that writes its output to a file.
func start(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", cmd.Path, err)
	}
	defer func() { _ = out.Close() }() // the child has its own
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // a Ctrl-C is for us alone
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal at our death comes when this thread dies
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether it has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.cmd.Path, err)
	}
	return nil
}

// kill ends it at once, as a host does that loses its power.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // it has ended, or ends
	<-p.done
}

// term asks it to end, and kills it if it takes longer than patience. It reports whether it ended by itself.
func (p *process) term(patience time.Duration) bool {
	_ = p.thaw()
	_ = p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return true
	case <-time.After(patience):
		p.kill()
		return false
	}
}

// freeze stops it where it is, thaw lets it go on.
func (p *process) freeze() error { return p.stop(true, syscall.SIGSTOP) }
func (p *process) thaw() error   { return p.stop(false, syscall.SIGCONT) }

func (p *process) stop(frozen bool, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
	return p.signal(sig)
}

// Package redisproc runs one private redis-server as a child process.
//
// The server listens on a unix socket only, appends every write to a file in its directory, and ends when the
// process that started it ends, however that happens (on Linux). It knows nothing of who uses it:
// package devredis keeps one for `worker dev`, package redistest makes one for each test.
package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Names lists the programs that will do, best first. Valkey speaks the same protocol and takes the same settings.
func Names() []string { return []string{"redis-server", "valkey-server"} }

// Find returns the path of a server program, or an error that wraps exec.ErrNotFound.
func Find() (string, error) {
	for _, name := range Names() {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("redis-server: %w", exec.ErrNotFound)
}

// Config says what to run.
type Config struct {
	Binary string // path of redis-server
	Dir    string // where it keeps its append-only file and its log; must exist
	Socket string // path of the unix socket, at most MaxSocket bytes
	// Inherit is held open by the server for as long as it lives. A lock on such a file is given up only when the
	// server, too, has ended.
	Inherit *os.File
	// Extra are settings that win over ours, such as "--maxmemory", "10mb".
	Extra []string
	// Bare are all arguments, instead of ours: a Sentinel takes none of a server's.
	Bare []string
	// Loading is content with a server that still loads its file, and says so.
	Loading bool
}

// MaxSocket is the length in bytes that a socket's path may have everywhere (macOS allows 103, Linux 107).
const MaxSocket = 103

// pollEvery is short because a server answers 20 to 100 ms after its start, and every test waits for one.
const pollEvery = 2 * time.Millisecond

// Process is a running redis-server. Its methods may be called by several goroutines.
type Process struct {
	proc *os.Process
	done chan struct{}
	err  error // how it ended; read it after done
}

// Start runs a server and waits until it answers. It returns early, with the end of the server's log in the error, if
// the server ends instead; if ctx ends first, the server is killed. There is no other time limit, since a long
// append-only file takes its time to load.
func Start(ctx context.Context, c Config) (*Process, error) {
	if len(c.Socket) > MaxSocket {
		return nil, fmt.Errorf("the path of the socket %q is longer than %d bytes", c.Socket, MaxSocket)
	}
	log, err := os.OpenFile(filepath.Join(c.Dir, "redis.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of redis-server: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("open the log of redis-server: %w", err)
	}
	p, err := spawn(c, log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Binary, err)
	}
	if err := p.await(ctx, c); err != nil {
		p.Kill()
		if text := tail(log.Name(), from); text != "" {
			return nil, fmt.Errorf("start %s: %w; its last words: %s", c.Binary, err, text)
		}
		return nil, fmt.Errorf("start %s: %w", c.Binary, err)
	}
	return p, nil
}

// spawn starts the child from a goroutine that keeps its thread until the child has ended: the kernel sends the
// parent-death signal when the *thread* that forked goes away, not the process.
func spawn(c Config, log *os.File) (*Process, error) {
	cmd := exec.Command(c.Binary, arguments(c)...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = environment(os.Environ())
	cmd.SysProcAttr = attributes()
	if c.Inherit != nil {
		cmd.ExtraFiles = []*os.File{c.Inherit}
	}
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.proc = cmd.Process
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// environment is what the server gets of ours. It has no use for our settings, which may hold keys and tokens.
func environment(ours []string) []string {
	return slices.DeleteFunc(ours, func(entry string) bool { return strings.HasPrefix(entry, "OUTLAST_") })
}

// arguments are the server's settings.
func arguments(c Config) []string {
	if c.Bare != nil {
		return c.Bare
	}
	return append([]string{
		"--port", "0", // no TCP: the directory's permissions are the access control
		"--unixsocket", c.Socket, "--unixsocketperm", "600",
		"--dir", c.Dir,
		"--appendonly", "yes", "--appendfsync", "everysec", // a killed server loses nothing unless the disk is slow, a lost host one second
		"--databases", "100", // tests share a server, each in its own
		"--save", "", // the append-only file is enough
		"--maxmemory-policy", "noeviction", // an evicted key would be a lost job
		// The older name of hash-max-listpack-value, which Redis 6 knows too: a record with one field of more
		// than 64 bytes would take three times the memory.
		"--hash-max-ziplist-value", "512",
		"--auto-aof-rewrite-min-size", "512mb", // ticks rewrite the same few fields; compacting earlier is only work
		"--daemonize", "no",
	}, c.Extra...)
}

// await returns nil when the server answers.
func (p *Process) await(ctx context.Context, c Config) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ping(c.Socket, c.Loading) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended at once: %w", p.ended())
		case <-ctx.Done():
			return fmt.Errorf("wait for its first answer: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Done is closed when the server has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID is the server's process number.
func (p *Process) PID() int { return p.proc.Pid }

// Stop asks the server to write out what it has and to end, and waits for it. If ctx ends first the server is
// killed, which loses nothing either: what was answered has been handed to the kernel.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stop redis-server: %w", context.Cause(ctx))
	}
}

// Kill ends the server as a crash would (kill -9) and waits until it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Signal sends a signal. A server that has ended already is not an error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.proc.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal redis-server: %w", err)
	}
	return nil
}

// Err says how the server ended, and is nil while it runs and after a clean end.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *Process) ended() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

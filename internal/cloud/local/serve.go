package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// server runs commands for whoever connects: the "sshd" of a machine. The socket lies in a directory that only the
// user of the worker may enter.
type server struct {
	home  string       // where commands start
	agent program      // carries out those whose first word is "agent"
	log   func(error)  // what no client can be told
	quiet *atomic.Bool // the machine is going down: no command has an answer any more
}

// Exit codes of commands that could not be started, as a shell has them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
	codeSignal        = 128 // plus the signal
)

// serve handles connections until the process ends.
func (s server) serve(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			s.log(fmt.Errorf("accept: %w", err))
			time.Sleep(tick) // out of descriptors, most likely: others will be given back
			continue
		}
		go func() {
			if err := s.handle(conn); err != nil && !errors.Is(err, io.EOF) {
				s.log(err)
			}
		}()
	}
}

// handle runs the command of one connection.
func (s server) handle(conn *net.UnixConn) error {
	defer func() { _ = conn.Close() }() // whatever there was to say was said
	r, files, err := receiveRequest(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		_, _ = conn.Read(make([]byte, 1)) // ends when the client has gone, or with the connection
	}()
	code := s.run(ctx, stringsOf(r.Argv), files)
	if err := closeAll(files); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	if ctx.Err() != nil || s.quiet.Load() {
		return nil // nobody is left to tell, or it is the end of the machine that ended the command
	}
	return json.NewEncoder(conn).Encode(reply{Code: code})
}

// run runs a command to its end and returns its exit code.
func (s server) run(ctx context.Context, argv []string, files [stdio]*os.File) int {
	stdin, stdout, stderr := files[0], files[1], files[2]
	if len(argv) == 0 || argv[0] == "" {
		_, _ = fmt.Fprintln(stderr, "no command") // the code says it too
		return codeNotFound
	}
	if argv[0] == "agent" {
		return s.agent(argv[1:], stdin, stdout, stderr)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // running commands is what a machine is for
	cmd.Dir = s.home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	// A session of its own, all of which ends if the client goes; what leaves the session stays, as with sshd.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if cmd.ProcessState == nil {
		_, _ = fmt.Fprintln(stderr, err) // the code says it too
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return codeNotFound
		}
		return codeNotExecutable
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func stringsOf(argv [][]byte) []string {
	all := make([]string, len(argv))
	for i, a := range argv {
		all[i] = string(a)
	}
	return all
}

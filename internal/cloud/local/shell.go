package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// Dialer reaches local machines. A node's address is the machine's directory.
type Dialer struct{}

var _ machine.Dialer = Dialer{}

// Dial returns a Shell without a look at the machine: each command makes a connection of its own.
func (Dialer) Dial(_ context.Context, node job.Node) (machine.Shell, error) {
	if node.Address == "" {
		return nil, fmt.Errorf("local machine %s has no address yet: %w", node.ID, machine.ErrUnreachable)
	}
	return shell{dir: node.Address}, nil
}

// shell is a [machine.Shell] to the machine in a directory.
type shell struct{ dir string }

// Close does nothing: no connection outlives its command.
func (shell) Close() error { return nil }

// Run runs a command on the machine. When ctx ends, so does the command, unless it has left its session.
func (s shell) Run(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer) error {
	unreachable := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("local machine %s: %w: %w", s.dir, machine.ErrUnreachable, err)
	}
	conn, err := dialIn(ctx, s.dir)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = conn.Close() }() // the reply has been read, or will not be
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	pipes, err := openStreams(stdin, stdout)
	if err != nil {
		return fmt.Errorf("local machine %s: %w", s.dir, err)
	}
	err = errors.Join(sendRequest(conn, request{Argv: bytesOf(argv)}, pipes.remote), closeAll(pipes.remote))
	if err != nil {
		pipes.drop()
		return unreachable(err)
	}
	pipes.start(func() { _ = conn.Close() })
	r, err := receiveReply(conn)
	if err != nil {
		pipes.drop()
		return errors.Join(unreachable(err), pipes.failed())
	}
	if err := pipes.finish(); err != nil {
		return fmt.Errorf("local machine %s: %w", s.dir, err)
	}
	if r.Code != 0 {
		return &machine.CommandError{Code: r.Code, Stderr: pipes.stderr.String()}
	}
	return nil
}

func receiveReply(conn *net.UnixConn) (reply, error) {
	var r reply
	err := json.NewDecoder(conn).Decode(&r)
	if errors.Is(err, io.EOF) {
		err = errors.New("the machine went away")
	}
	return r, err
}

func bytesOf(argv []string) [][]byte {
	all := make([][]byte, len(argv))
	for i, a := range argv {
		all[i] = []byte(a)
	}
	return all
}

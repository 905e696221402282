// Package machine reaches a node: a [Shell] runs one command there, and a [Client] speaks to the agent through it.
//
// Nothing here decides anything. An answer that did not come is [ErrUnreachable], which is never taken as
// proof that a machine is gone (G6): only its provider can say that.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/outlast-dev/outlast/internal/job"
)

// ErrUnreachable says that the node did not answer, or stopped answering in the middle. What was asked may or
// may not have been done.
var ErrUnreachable = errors.New("node unreachable")

// CommandError says that the command ran on the node and ended with a non-zero code.
type CommandError struct {
	Code   int
	Stderr string // its first kilobyte
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("command on the node ended with code %d: %q", e.Code, e.Stderr) // quoted: it is the node's text
}

// Shell runs one command on one node. argv is not seen by any shell on the way. It returns nil if the command ended
// with code 0, a *CommandError if it ended otherwise, and an error that wraps ErrUnreachable if there was no answer.
// A Shell may be used by several goroutines.
type Shell interface {
	Run(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer) error
	Close() error
}

// Dialer opens a Shell to a node of a provider. Dialing may be lazy: an unreachable node may show only at Run.
type Dialer interface {
	Dial(ctx context.Context, node job.Node) (Shell, error)
}

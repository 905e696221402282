package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
)

// Client speaks to the agent on a node through a [Shell]. Each method runs the agent once; all of them may be
// repeated after any error. It may be used by several goroutines.
//
// Errors: one that wraps [ErrUnreachable] means no answer, or half of one, also when the context's deadline
// passed: nothing is known of what was asked. A [*CommandError] is the agent's refusal. Cancelling the context
// gives an error that wraps [context.Canceled] and not ErrUnreachable: it says nothing about the node. Anything
// else is an answer that makes no sense, such as that of another program.
type Client struct {
	shell Shell
	agent []string
}

// NewClient returns a client of the agent that agent starts on the node, an argv prefix such as
// {"/opt/outlast/agent"}. The shell is the client's from now on.
func NewClient(shell Shell, agent []string) *Client {
	return &Client{shell: shell, agent: slices.Clone(agent)}
}

// Close closes the shell. What runs on the node runs on.
func (c *Client) Close() error { return c.shell.Close() }

// Start starts the run of an attempt in dir, an absolute path on the node, or finds it started before.
func (c *Client) Start(ctx context.Context, dir string, req agent.StartRequest) (agent.Status, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return agent.Status{}, errors.New("start: the request can not be encoded") // without err: it may hold a secret
	}
	return c.status(ctx, 0, bytes.NewReader(text), "start", dir)
}

// Poll looks at the run in dir, renews its lease, and returns at most limit bytes of its log from offset on. The
// agent may return fewer than there are.
func (c *Client) Poll(ctx context.Context, dir string, offset, limit int64) (agent.Status, error) {
	st, err := c.status(ctx, limit, nil, "poll", dir, strconv.FormatInt(offset, 10), strconv.FormatInt(limit, 10))
	if err == nil && int64(len(st.Log)) > limit {
		return agent.Status{}, fmt.Errorf("poll: %d bytes of the log, asked for %d", len(st.Log), limit)
	}
	return st, err
}

// Stop asks the run in dir to end, with TERM and after grace with KILL, and returns at once: Poll tells when it is
// over. Before the start it forbids the start.
func (c *Client) Stop(ctx context.Context, dir string, grace time.Duration) (agent.Status, error) {
	return c.status(ctx, 0, nil, "stop", dir, strconv.FormatFloat(grace.Seconds(), 'f', -1, 64))
}

// Unpack makes the run's work directory from a tar.gz with this SHA-256. If the node has it already, little or
// nothing of the bundle is read.
func (c *Client) Unpack(ctx context.Context, dir, sha256 string, bundle io.Reader) error {
	var done agent.Unpacked
	if err := c.call(ctx, &done, maxAnswer, bundle, "unpack", dir, sha256); err != nil {
		return err
	}
	if done.SHA256 != sha256 {
		return fmt.Errorf("unpack: answer for the bundle %q", done.SHA256)
	}
	return nil
}

// ErrMount says that a file or folder cannot be brought to its place on the node: something is there, or it is no place.
var ErrMount = errors.New("a file mount cannot be made")

// Mount brings a tar.gz with this SHA-256, or one file of it, to a path on the node. An error that wraps [ErrMount] holds
// however often it is tried.
func (c *Client) Mount(ctx context.Context, dir, sha256, path, file string, bundle io.Reader) error {
	args := []string{"mount", dir, sha256, path}
	if file != "" {
		args = append(args, file)
	}
	var done agent.Unpacked
	err := c.call(ctx, &done, maxAnswer, bundle, args...)
	var refused *CommandError
	switch {
	case errors.As(err, &refused) && refused.Code == agent.ExitMount:
		return fmt.Errorf("%w: %w", ErrMount, err)
	case err != nil:
		return err
	case done.SHA256 != sha256:
		return fmt.Errorf("mount: answer for the bundle %q", done.SHA256)
	}
	return nil
}

// maxAnswer bounds an answer without its log, and with whatever the node's shell prints before it.
const maxAnswer = 64 << 10

// status runs a command that answers a [agent.Status] with at most log bytes of the log.
func (c *Client) status(ctx context.Context, log int64, stdin io.Reader, args ...string) (agent.Status, error) {
	var st agent.Status
	most := maxAnswer + 2*min(max(log, 0), agent.MaxLog) // Base64 takes four bytes for three
	if err := c.call(ctx, &st, most, stdin, args...); err != nil {
		return agent.Status{}, err
	}
	if st.State == "" || st.LogSize < 0 || st.LogOffset < 0 || st.LogOffset > st.LogSize {
		return agent.Status{}, fmt.Errorf("%s: answer without a sensible status", args[0])
	}
	return st, nil
}

// call runs the agent and decodes its answer.
func (c *Client) call(ctx context.Context, answer any, most int64, stdin io.Reader, args ...string) error {
	out := &bounded{most: most}
	err := c.shell.Run(ctx, slices.Concat(c.agent, args), stdin, out)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable):
		return fmt.Errorf("%s: %w: %w", args[0], ErrUnreachable, err)
	default:
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if out.over {
		return fmt.Errorf("%s: answer is longer than %d bytes", args[0], most)
	}
	line, err := lastLine(out.text.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("%s: answer is not one of the agent: %w", args[0], err)
	}
	return nil
}

// lastLine returns the agent's line. It is the last one: the dotfiles of a login shell may print before it. One
// without its end was cut off.
func lastLine(text []byte) ([]byte, error) {
	rest, ended := bytes.CutSuffix(text, []byte{'\n'})
	if !ended {
		return nil, fmt.Errorf("%w: answer was cut off after %d bytes", ErrUnreachable, len(text))
	}
	return rest[bytes.LastIndexByte(rest, '\n')+1:], nil
}

// bounded keeps what is written to it, up to a number of bytes; the rest is taken and dropped.
type bounded struct {
	text bytes.Buffer
	most int64
	over bool // something was dropped
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := min(int64(len(p)), b.most-int64(b.text.Len()))
	b.text.Write(p[:keep])
	b.over = b.over || keep < int64(len(p))
	return len(p), nil
}

package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/machine/shelltest"
)

// A Shell to a local machine is a Shell.
func TestShellConformance(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	shelltest.Run(t, func(t *testing.T) machine.Shell { return dial(t, n) })
}

// A machine that is not up yet, has ended, or never was, is unreachable: no answer, and so no verdict.
func TestShellUnreachable(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	c := config(root, deployment)
	c.Zones[0].Boot = time.Hour
	slow := create(t, open(t, c), request(1, 1, 1))[0]
	p := open(t, config(root, deployment))
	dead := running(t, p, 2)
	terminate(t, p, dead)
	for name, address := range map[string]string{
		"booting": slow.Address, "ended": dead.Address, "never was": filepath.Join(root, "a", "a-none"), "no address": "",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := local.Dialer{}.Dial(t.Context(), job.Node{ID: "n", Address: address})
			if err == nil {
				err = s.Run(t.Context(), []string{"true"}, nil, nil)
			}
			if !errors.Is(err, machine.ErrUnreachable) {
				t.Errorf("error %v, want one that wraps %v", err, machine.ErrUnreachable)
			}
		})
	}
}

// A machine that goes while a command runs does not answer any more; what it has written until then has arrived.
func TestShellLosesItsMachine(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	out, in := io.Pipe()
	ran, s := make(chan error, 1), dial(t, n)
	go func() {
		ran <- s.Run(t.Context(), []string{"bash", "-c", "echo here; sleep 1000"}, nil, in)
		_ = in.Close()
	}()
	if _, err := io.ReadFull(out, make([]byte, len("here\n"))); err != nil {
		t.Fatal(err)
	}
	if err := p.Preempt(t.Context(), "a", n.ID, 0); err != nil {
		t.Fatalf("preempt: %v", err)
	}
	if err := <-ran; !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("error %v, want one that wraps %v", err, machine.ErrUnreachable)
	}
}

// What a command leaves in the background with its output open does not keep the command from ending.
func TestShellDoesNotWaitForTheBackground(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	if out := sh(t, n, "sleep 1000 & seq 1 10000"); !strings.HasSuffix(out, "\n10000\n") {
		t.Errorf("the output ends with %.20q", out[max(0, len(out)-20):])
	}
}

// slowWriter takes longer for a piece of output than anybody waits for an output to end.
type slowWriter struct {
	bytes.Buffer
	clock <-chan time.Time
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.clock
	return w.Buffer.Write(p)
}

// All that a command has written arrives, however slowly it is taken and whatever the command left behind.
func TestShellDeliversAllToASlowReader(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	clock := time.NewTicker(150 * time.Millisecond)
	defer clock.Stop()
	w := &slowWriter{clock: clock.C}
	const size = 90_000 // more than a pipe holds, and than one read takes
	script := "sleep 1000 & head -c 90000 /dev/zero"
	if err := dial(t, n).Run(t.Context(), []string{"bash", "-c", script}, nil, w); err != nil {
		t.Fatalf("run: %v", err)
	}
	if w.Len() != size {
		t.Errorf("%d bytes arrived of %d", w.Len(), size)
	}
}

// brokenReader fails in the middle.
type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

// An input that breaks off does not pass for a whole one: the command is ended, and the error says why.
func TestShellDoesNotTruncateInput(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	broken := errors.New("broken")
	done := filepath.Join(t.TempDir(), "done")
	in := io.MultiReader(strings.NewReader("half"), brokenReader{broken})
	err := dial(t, n).Run(t.Context(), []string{"bash", "-c", "cat >/dev/null; touch " + done}, in, nil)
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want one that wraps %v", err, broken)
	}
	if _, err := os.Stat(done); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the command took the half for the whole: %v", err)
	}
}

// The agent runs within the machine, and what it starts outlives the command and the Shell.
func TestShellServesTheAgent(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	p := open(t, config(root, deployment))
	n := running(t, p, 1)
	dir := p.AgentDir(job.Node{Address: n.Address})
	marker := filepath.Join(root, "started")
	var out bytes.Buffer
	start := strings.NewReader(`{"token":"tok","run":"echo $$ > ` + marker + `; exec sleep 1000"}`)
	if err := dial(t, n).Run(t.Context(), []string{"agent", "start", dir}, start, &out); err != nil {
		t.Fatalf("agent start: %v", err)
	}
	eventually(t, "the run has started", func() bool { _, err := os.Stat(marker); return err == nil })
	out.Reset()
	if err := dial(t, n).Run(t.Context(), []string{"agent", "poll", dir, "0", "100"}, nil, &out); err != nil {
		t.Fatalf("agent poll: %v", err)
	}
	if !strings.Contains(out.String(), `"state":"running"`) {
		t.Errorf("poll answered %s", out.String())
	}
	terminate(t, p, n)
	ended(t, p, n.ID, cloud.Terminated)
}

// A context that ends takes the command and its children along, with its cause in the error.
func TestShellCancelEndsTheSession(t *testing.T) {
	t.Parallel()
	p := open(t, config(newRoot(t), deployment))
	n := running(t, p, 1)
	cause := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	out, in := io.Pipe()
	ran, arg, s := make(chan error, 1), seconds(), dial(t, n)
	go func() {
		ran <- s.Run(ctx, []string{"bash", "-c", "sleep " + arg + " & echo here; wait"}, nil, in)
	}()
	if _, err := io.ReadFull(out, make([]byte, len("here\n"))); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if err := <-ran; !errors.Is(err, cause) || !errors.Is(err, machine.ErrUnreachable) {
		t.Errorf("error %v, want one that wraps %v and %v", err, cause, machine.ErrUnreachable)
	}
	eventually(t, "its child is gone", func() bool { return len(called(t, arg)) == 0 })
}

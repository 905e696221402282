// Package shelltest holds what every [machine.Shell] must do, as a test suite to run against a new one.
package shelltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/machine"
)

// Run tests shells. newShell returns one to a node that has sh, cat, sleep and sha256sum, and that shares its
// temporary directories with this computer; the suite closes it.
func Run(t *testing.T, newShell func(t *testing.T) machine.Shell) {
	tests := []struct {
		name string
		run  func(t *testing.T, sh machine.Shell)
	}{
		{"Arguments", testArguments},
		{"Stdin", testStdin},
		{"NoStdin", testNoStdin},
		{"StdinNotRead", testStdinNotRead},
		{"StdinFails", testStdinFails},
		{"Output", testOutput},
		{"ExitCodes", testExitCodes},
		{"NotFound", testNotFound},
		{"Stderr", testStderr},
		{"Cancel", testCancel},
		{"CancelledBefore", testCancelledBefore},
		{"Deadline", testDeadline},
		{"Concurrent", testConcurrent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sh := newShell(t)
			defer func() {
				if err := sh.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			tt.run(t, sh)
		})
	}
}

// run runs a command that must succeed, and returns its output.
func run(t *testing.T, sh machine.Shell, stdin io.Reader, argv ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := sh.Run(t.Context(), argv, stdin, &out); err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	return out.String()
}

// Arguments arrive as they are: no shell on the way takes anything in them for its own.
func testArguments(t *testing.T, sh machine.Shell) {
	args := []string{
		"plain", "", "two words", "  spaces  ", "line\nbreak", "\n", "tab\t",
		"'", `"`, `'"'"'`, "`id`", "$(id)", "$HOME", "${x}", `\`, `\n`, `a\`,
		"*", "?", "[a-z]", "~", "a;b", "a&b", "a|b",
		"<in", ">out", "!!", "#no comment", "-n", "--", "=", "{a,b}", "(", ")", "\r", "\x1b[31m",
		"żółć ☃ 🦀", "\xff\xfe no UTF-8", strings.Repeat("long ", 4000),
	}
	out := run(t, sh, nil, append([]string{"sh", "-c", `for a in "$@"; do printf '%s\000' "$a"; done`, "sh"}, args...)...)
	got := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if diff := cmp.Diff(args, got); diff != "" {
		t.Errorf("arguments (-sent +received):\n%s", diff)
	}
}

// A large standard input arrives whole, and ends.
func testStdin(t *testing.T, sh machine.Shell) {
	const size = 8 << 20
	hash := sha256.New()
	source := rand.NewChaCha8([32]byte{1})
	out := run(t, sh, io.TeeReader(io.LimitReader(source, size), hash), "sha256sum")
	if want := hex.EncodeToString(hash.Sum(nil)); !strings.HasPrefix(out, want) {
		t.Errorf("the node has read %q, want %s", out, want)
	}
}

// Without a standard input there is an empty one.
func testNoStdin(t *testing.T, sh machine.Shell) {
	if out := run(t, sh, nil, "cat"); out != "" {
		t.Errorf("the node has read %q", out)
	}
}

// A command need not read its standard input, even if that never ends.
func testStdinNotRead(t *testing.T, sh machine.Shell) {
	if out := run(t, sh, bytes.NewReader(make([]byte, 4<<20)), "echo", "done"); out != "done\n" {
		t.Errorf("output %q", out)
	}
	silent, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if out := run(t, sh, silent, "echo", "done"); out != "done\n" {
		t.Errorf("output %q", out)
	}
}

// An input that can not be read is an error, although the command is content with its beginning.
func testStdinFails(t *testing.T, sh machine.Shell) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("beginning"), iotest.ErrReader(broken))
	if err := sh.Run(t.Context(), []string{"cat"}, in, io.Discard); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A large output arrives whole, and without the standard error.
func testOutput(t *testing.T, sh machine.Shell) {
	const size = 4 << 20
	text := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	if out := run(t, sh, bytes.NewReader(text), "sh", "-c", "echo noise >&2; cat"); out != string(text) {
		t.Errorf("%d bytes came back of %d", len(out), len(text))
	}
}

// The exit code is told exactly, and it is a CommandError: the node has answered.
func testExitCodes(t *testing.T, sh machine.Shell) {
	for script, want := range map[string]int{
		"exit 1": 1, "exit 2": 2, "exit 126": 126, "exit 127": 127, "exit 255": 255,
		"kill -TERM $$": 143, "kill -KILL $$": 137,
	} {
		err := sh.Run(t.Context(), []string{"sh", "-c", script}, nil, io.Discard)
		var ended *machine.CommandError
		if !errors.As(err, &ended) || ended.Code != want || errors.Is(err, machine.ErrUnreachable) {
			t.Errorf("%s: error %v, want code %d", script, err, want)
		}
	}
}

// A command that is not there is the node's answer too.
func testNotFound(t *testing.T, sh machine.Shell) {
	err := sh.Run(t.Context(), []string{"/no/such/command"}, nil, io.Discard)
	var ended *machine.CommandError
	if !errors.As(err, &ended) || ended.Code != 127 {
		t.Errorf("error %v", err)
	}
}

// The beginning of the standard error is kept, and never more than a kilobyte.
func testStderr(t *testing.T, sh machine.Shell) {
	script := "echo first >&2; i=0; while [ $i -lt 5000 ]; do echo more and more >&2; i=$((i+1)); done; exit 3"
	err := sh.Run(t.Context(), []string{"sh", "-c", script}, nil, io.Discard)
	var ended *machine.CommandError
	if !errors.As(err, &ended) || ended.Code != 3 {
		t.Fatalf("error %v", err)
	}
	if !strings.HasPrefix(ended.Stderr, "first\n") || len(ended.Stderr) > 1<<10 {
		t.Errorf("%d bytes: %q", len(ended.Stderr), ended.Stderr)
	}
}

// signalOnce is a writer that tells when something was written.
type signalOnce struct {
	once sync.Once
	done chan struct{}
}

func (s *signalOnce) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.done) })
	return len(p), nil
}

// Cancelling ends the wait at once, with the context's error, and the command with it.
func testCancel(t *testing.T, sh machine.Shell) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	run(t, sh, nil, "mkfifo", pipe)
	up, ended := &signalOnce{done: make(chan struct{})}, make(chan error, 1)
	go func() { // holds the pipe open as long as it lives
		ended <- sh.Run(ctx, []string{"sh", "-c", `exec 3<>"$0"; echo up; while :; do sleep 0.1; echo; done`, pipe}, nil, up)
	}()
	<-up.done
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	gone, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	// Opening the pipe for writing without a reader fails: that is how the node tells that the command is gone.
	wait := `while dd if=/dev/null of="$0" oflag=nonblock conv=notrunc 2>/dev/null; do sleep 0.02; done`
	if err := sh.Run(gone, []string{"sh", "-c", wait, pipe}, nil, io.Discard); err != nil {
		t.Errorf("the command lives on: %v", err)
	}
}

// Nothing is begun for a context that has ended.
func testCancelledBefore(t *testing.T, sh machine.Shell) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sh.Run(ctx, []string{"sleep", "1000"}, nil, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A deadline is kept although the command says nothing and reads nothing.
func testDeadline(t *testing.T, sh machine.Shell) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	silent, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if err := sh.Run(ctx, []string{"sleep", "1000"}, silent, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Fifty commands at once do not get into each other's way.
func testConcurrent(t *testing.T, sh machine.Shell) {
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			var out bytes.Buffer
			in := fmt.Sprintf("input %d", i)
			argv := []string{"sh", "-c", `cat; echo " $1" >&2; exit "$1"`, "sh", fmt.Sprint(i + 1)}
			err := sh.Run(t.Context(), argv, strings.NewReader(in), &out)
			var ended *machine.CommandError
			want := machine.CommandError{Code: i + 1, Stderr: fmt.Sprintf(" %d\n", i+1)}
			if !errors.As(err, &ended) || *ended != want || out.String() != in {
				t.Errorf("command %d: output %q, error %v", i, out.String(), err)
			}
		})
	}
	group.Wait()
}

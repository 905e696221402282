package machine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/machine"
)

// buildAgent builds the agent as a program of its own.
func buildAgent(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-o", binary, "../agent/testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return binary
}

// archive packs one script, and returns its hash.
func archive(t *testing.T, name, content string) (packed []byte, sum string) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}
	_, err := files.Write(nil)
	err = errors.Join(err, files.WriteHeader(header))
	if _, writing := io.WriteString(files, content); writing != nil {
		err = errors.Join(err, writing)
	}
	if err := errors.Join(err, files.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(hash[:])
}

// A client brings a run from its bundle to its end, with the real agent.
func TestClient(t *testing.T) {
	t.Parallel()
	c := machine.NewClient(machine.LocalShell{}, []string{buildAgent(t)})
	defer c.Close()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "it's an $(attempt)")

	if st, err := c.Poll(ctx, dir, 0, 100); err != nil || st.State != agent.Absent {
		t.Fatalf("before: %+v, error %v", st, err)
	}
	packed, sum := archive(t, "job.sh", "#!/bin/sh\necho up $SECRET\nsleep 1000 & wait\n")
	for range 2 {
		if err := c.Unpack(ctx, dir, sum, bytes.NewReader(packed)); err != nil {
			t.Fatal(err)
		}
	}
	req := agent.StartRequest{Token: "t", Run: "exec ./job.sh", Secrets: map[string]string{"SECRET": "geheim"}}
	if st, err := c.Start(ctx, dir, req); err != nil || st.State != agent.Running || st.Already {
		t.Fatalf("start: %+v, error %v", st, err)
	}
	if st, err := c.Start(ctx, dir, req); err != nil || st.State != agent.Running || !st.Already {
		t.Fatalf("second start: %+v, error %v", st, err)
	}
	await(t, c, dir, func(st agent.Status) bool { return string(st.Log) == "up geheim\n" })
	if st, err := c.Stop(ctx, dir, 1500*time.Millisecond); err != nil || !st.Stopped {
		t.Fatalf("stop: %+v, error %v", st, err)
	}
	st := await(t, c, dir, func(st agent.Status) bool { return st.State == agent.Exited })
	if diff := cmp.Diff(&agent.Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}, st.Exit); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}

	_, err := c.Start(ctx, dir, agent.StartRequest{Token: "other", Secrets: map[string]string{"SECRET": "geheim"}})
	var refused *machine.CommandError
	if !errors.As(err, &refused) || !strings.Contains(refused.Stderr, "another attempt") {
		t.Errorf("another token: error %v", err)
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("a secret is in the error %v", err)
	}
	if err := c.Unpack(ctx, dir, strings.Repeat("0", 64), bytes.NewReader(packed)); !errors.As(err, &refused) {
		t.Errorf("another hash: error %v", err)
	}
}

// await polls until a status is as wanted.
func await(t *testing.T, c *machine.Client, dir string, wanted func(agent.Status) bool) agent.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		st, err := c.Poll(ctx, dir, 0, 1000)
		if err != nil {
			t.Fatalf("poll: %v", err)
		}
		if wanted(st) {
			return st
		}
		<-ticker.C
	}
}

// fakeShell gives a prepared answer.
type fakeShell struct {
	out string
	err error
}

func (s fakeShell) Run(_ context.Context, _ []string, _ io.Reader, stdout io.Writer) error {
	if _, err := io.WriteString(stdout, s.out); err != nil {
		return err
	}
	return s.err
}

func (fakeShell) Close() error { return nil }

// An answer that was cut off is no answer; one that makes no sense is an error of its own; and neither is ever
// taken for a status.
func TestClientAnswers(t *testing.T) {
	t.Parallel()
	const (
		good   = `{"state":"running","log_size":3,"log_offset":0,"log":"YWJj"}`
		beyond = `{"state":"running","log_size":1,"log_offset":2}`
		more   = `{"state":"running","log_size":9,"log":"YWJjZA=="}`
	)
	refusal := &machine.CommandError{Code: 1, Stderr: "no"}
	tests := []struct {
		name        string
		shell       fakeShell
		ok          bool
		unreachable bool
		is          error
	}{
		{"good", fakeShell{out: good + "\n"}, true, false, nil},
		{"after the noise of dotfiles", fakeShell{out: "Welcome!\n{\n" + good + "\n"}, true, false, nil},
		{"cut off before its end", fakeShell{out: good}, false, true, nil},
		{"cut off within", fakeShell{out: good[:20]}, false, true, nil},
		{"empty", fakeShell{}, false, true, nil},
		{"refused", fakeShell{err: refusal}, false, false, refusal},
		{"refused after an answer", fakeShell{out: good + "\n", err: refusal}, false, false, refusal},
		{"no connection", fakeShell{err: machine.ErrUnreachable}, false, true, nil},
		{"no time left", fakeShell{err: context.DeadlineExceeded}, false, true, context.DeadlineExceeded},
		{"cancelled", fakeShell{err: context.Canceled}, false, false, context.Canceled},
		{"something else", fakeShell{out: "command not found\n"}, false, false, nil},
		{"no status", fakeShell{out: "{}\n"}, false, false, nil},
		{"an offset beyond the end", fakeShell{out: beyond + "\n"}, false, false, nil},
		{"more of the log than asked for", fakeShell{out: more + "\n"}, false, false, nil},
		{"without an end", fakeShell{out: strings.Repeat("x", 10<<20)}, false, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, err := machine.NewClient(tt.shell, []string{"agent"}).Poll(t.Context(), "/d", 0, 3)
			if (err == nil) != tt.ok || errors.Is(err, machine.ErrUnreachable) != tt.unreachable {
				t.Errorf("status %+v, error %v", st, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
			if (st.State != "") != tt.ok || tt.ok && string(st.Log) != "abc" {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// What a node says about a failure can do no harm on a terminal.
func TestCommandErrorIsQuoted(t *testing.T) {
	t.Parallel()
	err := &machine.CommandError{Code: 1, Stderr: "\x1b]0;evil\a\nsecond line"}
	if strings.ContainsAny(err.Error(), "\x1b\a\n") {
		t.Errorf("%q", err.Error())
	}
}

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
)

// longLine is the length of a line that nobody expects.
const longLine = 10 << 20

// nasty is output with all that a reader of logs may stumble over. It has no line end at its end.
func nasty() []byte {
	var b bytes.Buffer
	b.WriteString("first\n")
	random := rand.NewChaCha8([32]byte{1})
	_, _ = io.CopyN(&b, random, 300<<10) // more than the live tail holds
	b.WriteString("\nnul \x00\x00 windows\r\ncaf\xc3 \xff\xfe \xed\xa0\x80 \xf4\x90\x80\x80\n")
	b.WriteString("\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b[1;1H\x1bPq\x1b\\\x9b2J\x1bc\x1b[31mred\x1b[0m \u202eevil\u202c\b\n")
	b.WriteString(strings.Repeat("0123456789abcdef", longLine/16) + "\n")
	b.WriteString("between\n")
	b.WriteString(strings.Repeat("é☃", longLine/50) + "\x1b[2J\xe2\x98")
	return b.Bytes()
}

// lastOf is what --tail n shows of a text.
func lastOf(text []byte, n int) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	return bytes.Join(lines[len(lines)-n:], nil)
}

// Ensure that whatever the user's code prints, all of it comes through a pipe byte for byte, live and from the archive, whole,
// by its last lines and as a folder; and that a terminal is shown all of it, and nothing that acts on it.
func TestNastyOutput(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	want := nasty()
	if err := os.WriteFile(filepath.Join(f.shared, "blob"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	id := f.launch(`cat "$SHARED/blob"; touch "$SHARED/runs"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`)
	f.trace("runs")
	tails := func(when string, flags ...string) {
		t.Helper()
		for _, n := range []int{1, 2, 3, 4, 6} {
			r := f.enqueue(append([]string{"logs", id, "--tail", strconv.Itoa(n)}, flags...)...)
			same(t, when+": --tail "+strconv.Itoa(n), lastOf(want, n), []byte(r.out))
		}
	}
	var live string
	f.eventually("the output to be there while the job runs", func() bool { live = f.enqueue("logs", id).out; return live == string(want) },
		func() string { same(t, "while it runs", want, []byte(live)); return "" })
	tails("while it runs")
	f.leave("go")
	f.await(id, "SUCCEEDED")
	same(t, "at the end", want, []byte(f.enqueue("logs", id).out))
	same(t, "followed", want, []byte(f.enqueue("logs", id, "-f").out))
	tails("at the end")
	tails("followed", "-f")

	if r := f.enqueue("logs", id, "--sync-down"); r.code != 0 {
		t.Errorf("download: %+v", r)
	}
	same(t, "downloaded", want, f.downloaded())

	f.screen(want, "logs", id)
	f.screen(lastOf(want, 1), "logs", id, "--tail", "1")
	f.screen(lastOf(want, 4), "logs", id, "--tail", "4")
}

// same fails unless two texts are the same, and says where they part.
func same(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if sha256.Sum256(want) == sha256.Sum256(got) {
		return
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	t.Errorf("%s: %d bytes, want %d; they part at byte %d: %.80q, want %.80q", what, len(got), len(want), at, got[at:], want[at:])
}

// downloaded is the only log of the folder that --sync-down has made.
func (f *fleet) downloaded() []byte {
	f.t.Helper()
	var all [][]byte
	if err := filepath.WalkDir(f.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, ".log") || strings.Contains(path, "controller") || !strings.Contains(path, "job-") {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, text)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	if len(all) != 1 {
		f.t.Fatalf("%d logs were downloaded", len(all))
	}
	return all[0]
}

// screen runs the client on a terminal, and looks at what the terminal gets: all that can be read, valid text, and no escape
// sequence but colours and erase-in-line.
func (f *fleet) screen(raw []byte, args ...string) {
	f.t.Helper()
	path, err := enqueueBinary()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = append(f.environ(), "TERM=xterm"), f.home
	terminal, err := pty.Start(cmd)
	if err != nil {
		f.t.Fatal(err)
	}
	shown, err := io.ReadAll(terminal)
	if err != nil && !errors.Is(err, syscall.EIO) { // how a terminal ends
		f.t.Fatal(err)
	}
	_ = terminal.Close()
	if err := cmd.Wait(); err != nil {
		f.t.Errorf("%v: %v", args, err)
	}
	if !utf8.Valid(shown) {
		f.t.Errorf("%v: the terminal gets what is no text", args)
	}
	for rest := shown; ; {
		at := bytes.IndexByte(rest, 0x1b)
		if at < 0 {
			break
		}
		rest = rest[at:]
		end := 2
		for end < len(rest) && rest[end] >= '0' && rest[end] <= ';' {
			end++
		}
		if end >= len(rest) || rest[1] != '[' || rest[end] != 'm' && rest[end] != 'K' {
			f.t.Fatalf("%v: the terminal gets %q", args, rest[:min(len(rest), 20)])
		}
		rest = rest[end:]
	}
	for _, r := range string(shown) { // bells, other controls, and marks that turn around what is read
		if r < ' ' && !strings.ContainsRune("\n\r\t\b\x1b", r) || r >= 0x7f && r < 0xa0 || r == '\u202e' {
			f.t.Fatalf("%v: the terminal gets %U", args, r)
		}
	}
	for _, part := range []string{"first", "\x1b[31mred", strings.Repeat("0123456789abcdef", longLine/16), "between", strings.Repeat("é☃", longLine/50)} {
		if bytes.Contains(raw, []byte(part)) && !bytes.Contains(shown, []byte(part)) {
			sum := sha256.Sum256(shown)
			f.t.Errorf("%v: the terminal does not get %.20q in its %d bytes %s", args, part, len(shown), hex.EncodeToString(sum[:4]))
		}
	}
}

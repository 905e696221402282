package seal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pathVariable makes the test binary act as a worker that loads or makes its identity.
const pathVariable = "SEAL_TEST_IDENTITY"

func TestMain(m *testing.M) {
	if path := os.Getenv(pathVariable); path != "" {
		actAsWorker(path)
		return
	}
	os.Exit(m.Run())
}

// actAsWorker waits for the end of its input, so that many can be let go at once, then prints its recipient.
func actAsWorker(path string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	i, err := LoadOrCreate(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i.Recipient())
}

// Processes that start together on one path end up with one identity.
func TestManyWorkersMakeOneIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home", "identity")
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const workers = 8
	var outs [workers]*bufio.Scanner
	for n := range workers {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), pathVariable+"="+path)
		cmd.Stdin = hold
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Wait() }()
		outs[n] = bufio.NewScanner(out)
	}
	if err := errors.Join(hold.Close(), release.Close()); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, out := range outs {
		out.Scan()
		got[out.Text()]++
	}
	id, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{id.Recipient(): workers}, got); diff != "" {
		t.Error(diff)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v (%v), want the identity only", left, err)
	}
}

func TestIdentityFileIsOnlyForItsOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity")
	if _, err := LoadOrCreate(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode
		ok   bool
	}{{0o600, true}, {0o400, true}, {0o440, true}, {0o660, false}, {0o644, false}, {0o604, false}} {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreate(path); (err == nil) != c.ok {
			t.Errorf("mode %04o: %v, want it accepted: %v", c.mode, err, c.ok)
		}
	}
}

func TestLoadSaysWhatIsWrongWithoutQuotingTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
	path := filepath.Join(dir, "broken")
	if err := os.WriteFile(path, []byte("AGE-SECRET-KEY-1BROKEN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // LoadOrCreate must not replace it either
		_, err := LoadOrCreate(path)
		if err == nil || strings.Contains(err.Error(), "BROKEN") {
			t.Errorf("broken file: %v", err)
		}
	}
}

// With a new key on top of the file, new secrets are sealed for it and old ones still open.
func TestRotation(t *testing.T) {
	t.Parallel()
	before, after := generate(t), generate(t)
	sealed, err := Seal(before.Recipient(), map[string]string{"A": "b"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(path, append(after.text(), before.text()...), 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if both.Recipient() != after.Recipient() {
		t.Error("new secrets would be sealed for the old key")
	}
	if got, err := both.Open(sealed); err != nil || got["A"] != "b" {
		t.Errorf("old secrets: %v, %v", got, err)
	}
}

func TestPrintingAnIdentityShowsNoKey(t *testing.T) {
	t.Parallel()
	id := generate(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, id); strings.Contains(strings.ToUpper(text), "SECRET-KEY") {
			t.Errorf("%s shows the key", verb)
		}
	}
}

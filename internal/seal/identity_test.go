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
	"sync"
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
	if err := os.WriteFile(path, append(after.Text(), before.Text()...), 0o600); err != nil {
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

// The keys of a variable may stand one after the other in any way that a shell or a YAML file leaves, or be a whole file.
func TestParse(t *testing.T) {
	t.Parallel()
	a, b := generate(t), generate(t)
	key := func(i *Identity) string { return i.keys[0].String() }
	for _, text := range []string{
		key(a) + "\n" + key(b) + "\n", key(a) + " " + key(b), key(a) + "," + key(b) + ",", "  " + key(a) + "\r\n\t" + key(b),
		string(a.Text()) + string(b.Text()),
	} {
		got, err := Parse(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff([]string{a.Recipient(), b.Recipient()}, got.Recipients()); diff != "" {
			t.Error(diff)
		}
	}
	for _, text := range []string{"", " ", "# nothing", "AGE-SECRET-KEY-1BROKEN", strings.ToLower(key(a))[:60], a.Recipient(), key(a) + key(b)} {
		if _, err := Parse(text); err == nil || text != "" && len(strings.TrimSpace(text)) > 0 && strings.Contains(err.Error(), text) {
			t.Errorf("%d bytes that are no keys: %v", len(text), err)
		}
	}
}

// Rotations at the same time add a key each and lose none, and no reader ever sees less than it could open before.
func TestRotationsAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity")
	first, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o440); err != nil { // as Kubernetes mounts it
		t.Fatal(err)
	}
	const rotations = 8
	var all sync.WaitGroup
	made := make([]*Identity, rotations)
	for n := range made {
		all.Go(func() {
			i, err := Rotate(path)
			if err != nil {
				t.Error(err)
				return
			}
			made[n] = i
			if now, err := Load(path); err != nil || !now.Opens(first.Recipient()) || !now.Opens(i.Recipient()) {
				t.Errorf("after a rotation: %v, %v", now, err)
			}
		})
	}
	all.Wait()
	end, err := Load(path)
	if err != nil || len(end.Recipients()) != rotations+1 || end.Recipients()[rotations] != first.Recipient() {
		t.Fatalf("%v, %v", end.Recipients(), err)
	}
	for _, i := range made {
		if i != nil && !end.Opens(i.Recipient()) {
			t.Errorf("the key %s is lost", i.Recipient())
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o440 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if _, err := Rotate(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
}

// A keyring opens what was sealed for a key that came into its file after it was read, and keeps what it has while the
// file is away or damaged.
func TestKeyringFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity")
	before, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := NewKeyring(func() (*Identity, error) { return Load(path) })
	if err != nil {
		t.Fatal(err)
	}
	sealFor := func(i *Identity) []byte {
		b, err := Seal(i.Recipient(), map[string]string{"A": "b"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	after, err := Rotate(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []*Identity{after, before} {
		if got, err := ring.Open(sealFor(i)); err != nil || got["A"] != "b" {
			t.Errorf("sealed for %s: %v, %v", i, got, err)
		}
	}
	if changed, err := ring.Reload(); changed || err != nil {
		t.Errorf("nothing has changed since: %v, %v", changed, err)
	}
	if err := os.WriteFile(path, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Open(sealFor(generate(t))); !errors.Is(err, ErrNotOurs) {
		t.Errorf("sealed for somebody else: %v", err)
	}
	if got, err := ring.Open(sealFor(after)); err != nil || got["A"] != "b" {
		t.Errorf("with a damaged file: %v, %v", got, err)
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

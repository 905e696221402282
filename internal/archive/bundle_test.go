package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree makes a directory: "name" is a file with that content, "name/" a directory, "name -> target" a link.
func tree(t *testing.T, entries map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	for name, content := range entries {
		link, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, link)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pack packs a directory for the test.
func pack(t *testing.T, dir string) Bundle {
	t.Helper()
	b, err := Pack(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// unpack lists what is in a bundle, as ls would.
func unpack(t *testing.T, r io.Reader) []string {
	t.Helper()
	zip, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		line := fs.FileMode(h.Mode).String() + " " + h.Name + " " + string(content)
		if h.Linkname != "" {
			line += "-> " + h.Linkname
		}
		all = append(all, strings.TrimSpace(line))
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s tells who made it and when", h.Name)
		}
	}
}

func TestABundleHoldsTheFilesThatARunNeeds(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"b.py": "b", "a/run.sh": "#!/bin/sh", "a/empty/": "", "latest -> a/run.sh": "", "later -> a/not-yet": "",
		".git/config": "token", "sub/.git": "gitdir: x", ".gitignore": "*.pyc",
	})
	if err := os.Chmod(filepath.Join(dir, "a/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := pack(t, dir)
	r, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	want := []string{
		"-rw-r--r-- .gitignore *.pyc",
		"-rwxr-xr-x a/",
		"-rwxr-xr-x a/empty/",
		"-rwxr-xr-x a/run.sh #!/bin/sh",
		"-rw-r--r-- b.py b",
		"-rwxrwxrwx later -> a/not-yet",
		"-rwxrwxrwx latest -> a/run.sh",
		"-rwxr-xr-x sub/",
	}
	if diff := cmp.Diff(want, unpack(t, r)); diff != "" {
		t.Error(diff)
	}
	if b.Files != 3 || b.Unpacked != int64(len("*.pyc#!/bin/shb")) {
		t.Errorf("counted %d files with %d bytes", b.Files, b.Unpacked)
	}
}

// The same content has the same key wherever and whenever it is packed; another content or mode has another one.
func TestTheKeyDependsOnContentAlone(t *testing.T) {
	t.Parallel()
	entries := map[string]string{"x": "1", "d/y": "2", "l -> x": ""}
	first, second := tree(t, entries), tree(t, entries)
	if err := os.Chtimes(filepath.Join(second, "x"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	one, two := pack(t, first), pack(t, second)
	if one.Key != two.Key {
		t.Errorf("the keys differ: %s, %s", one.Key, two.Key)
	}
	if err := os.Chmod(filepath.Join(second, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if changed := pack(t, second); changed.Key == one.Key {
		t.Error("a file that became executable did not change the key")
	}
}

func TestLinksOutOfTheTreeAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, entry, culprit string
		more                 map[string]string
	}{
		{"parent", "a/up -> ../..", "a/up", nil},
		{"absolute", "etc -> /etc/passwd", "etc", nil},
		{"the tree's own parent and back", "out -> ../tree/x", "out", map[string]string{"x": ""}},
		// Written like this it seems to stay inside; s leads to the top, and from there out.
		{"through another link", "a/b/out -> s/../../x", "a/b/out", map[string]string{"a/b/s -> ../../top": "", "top/": ""}},
		{"in a circle", "l -> m", "l", map[string]string{"m -> l": ""}},
	} {
		entries := map[string]string{c.entry: ""}
		for name, content := range c.more {
			entries[name] = content
		}
		b, err := Pack(tree(t, entries), Limits{})
		if err == nil {
			t.Errorf("%s: packed", c.name)
			_ = b.Remove()
			continue
		}
		if !strings.Contains(err.Error(), `"`+c.culprit+`"`) {
			t.Errorf("%s: the error does not name %s: %v", c.name, c.culprit, err)
		}
	}
}

func TestWhatIsNoFileIsRefusedByName(t *testing.T) {
	t.Parallel()
	pipe := tree(t, map[string]string{"x": ""})
	if err := syscall.Mkfifo(filepath.Join(pipe, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := os.MkdirTemp("", "ar") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socket) })
	l, err := net.Listen("unix", filepath.Join(socket, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for dir, want := range map[string]string{pipe: `"pipe" is a named pipe`, socket: `"sock" is a socket`} {
		if _, err := Pack(dir, Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// notRoot takes root's right to read everything from the goroutine of a test, until its end.
func notRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	as := func(user uintptr) { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, user, 0, 0) } // of this thread only
	as(65534)
	t.Cleanup(func() {
		as(0)
		runtime.UnlockOSThread()
	})
}

func TestUnreadableFilesAreRefusedByName(t *testing.T) {
	t.Parallel()
	notRoot(t)
	dir := tree(t, map[string]string{"secret": "x"})
	if err := os.Chmod(filepath.Join(dir, "secret"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(dir, Limits{}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a": "12345", "b": "12345"})
	for _, c := range []struct {
		limits Limits
		ok     bool
	}{
		{Limits{Bytes: 10, Files: 2}, true},
		{Limits{Bytes: 9}, false},
		{Limits{Files: 1}, false},
	} {
		b, err := Pack(dir, c.limits)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%+v: %v", c.limits, err)
		}
		_ = b.Remove()
	}
	pipe := tree(t, map[string]string{"z": "12345"})
	if err := syscall.Mkfifo(filepath.Join(pipe, "a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(pipe, Limits{Bytes: 4}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the sizes must be looked at before anything is packed: %v", err)
	}
	if _, err := Pack(filepath.Join(dir, "none"), Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func TestABundleComesBackAsItWas(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	b := pack(t, tree(t, map[string]string{"x": "1"}))
	for range 2 {
		if err := a.PutBundle(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{b.Key}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
	r, err := a.OpenBundle(t.Context(), b.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-rw-r--r-- x 1"}, unpack(t, bytes.NewReader(text))); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := a.RemoveBundle(t.Context(), b.Key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.OpenBundle(t.Context(), b.Key); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the removal: %v, want ErrNotFound", err)
	}
}

// A bundle that is there is not uploaded again, and one that was damaged in the store is not taken for a good one.
func TestADamagedBundleIsNoticed(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	b := pack(t, tree(t, map[string]string{"x": "1"}))
	if err := a.PutBundle(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, b.Key), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.PutBundle(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	r, err := a.OpenBundle(t.Context(), b.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if text, err := io.ReadAll(r); err == nil || string(text) != "damaged" {
		t.Errorf("read %q, %v: want an error, and proof that it was not stored again", text, err)
	}
}

func TestOnlyKeysOfBundlesAreOpened(t *testing.T) {
	t.Parallel()
	a := inMemory(t)
	for _, key := range []string{"", "logs/1/0/1/0/x", "bundles/../identity", "bundles/" + strings.Repeat("A", 64) + ".tar.gz"} {
		if _, err := a.OpenBundle(t.Context(), key); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", key, err)
		}
		if err := a.RemoveBundle(t.Context(), key); err == nil {
			t.Errorf("%q was removed", key)
		}
	}
}

// Ensure that one file is a bundle by its own name, also behind a link, and that its place makes no difference.
func TestAFileIsABundleOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "beside.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "a.txt"), filepath.Join(elsewhere, "b.txt")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{filepath.Join(dir, "a.txt"), "a.txt"}, {filepath.Join(elsewhere, "b.txt"), "b.txt"},
	} {
		b, err := PackFile(tt.path, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Remove() })
		r, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		got := unpack(t, r)
		_ = r.Close()
		if len(got) != 1 || !strings.Contains(got[0], tt.want) || b.Files != 1 || b.Unpacked != 5 {
			t.Errorf("%s: %q, %d files, %d bytes", tt.path, got, b.Files, b.Unpacked)
		}
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := PackFile(bad, Limits{}); err == nil || !strings.Contains(err.Error(), filepath.Base(bad)) {
			t.Errorf("%s is packed as a file: %v", bad, err)
		}
	}
	if _, err := PackFile(filepath.Join(dir, "a.txt"), Limits{Bytes: 4}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file over the limit: %v", err)
	}
}

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mounted makes a mount of a bundle on a node.
func (n *node) mounted(path, file, sum string, bundle []byte) error {
	m := mount{dir: n.dir, path: path, file: file, sum: sum}
	_, err := place(m, strings.NewReader(string(bundle)), unpackLimits)
	return err
}

// A mount is where it was asked for: in the work directory, at an absolute path, and below the home directory; a folder or
// one file. When the run has ended nothing of it is left outside of the attempt's directory.
func TestMount(t *testing.T) {
	home, out := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	n := newNode(t)
	files, sum := bundle(t, regular("a.txt", "alpha"), regular("sub/b.txt", "beta"))
	for _, m := range []struct{ path, file string }{
		{"data/in", ""}, {"./one.txt", "a.txt"}, {filepath.Join(out, "deep", "folder"), ""}, {filepath.Join(out, "b"), "sub/b.txt"}, {"~/.cfg/app", ""},
	} {
		for range 2 { // the answer to the first may be lost
			if err := n.mounted(m.path, m.file, sum, files); err != nil {
				t.Fatalf("%s: %v", m.path, err)
			}
		}
	}
	st := n.finish(StartRequest{Env: map[string]string{"OUT": out}, Run: `cat data/in/sub/b.txt one.txt "$OUT/deep/folder/a.txt" "$OUT/b" ~/.cfg/app/a.txt`})
	if got := string(st.Log); got != "betaalphaalphabetaalpha" {
		t.Errorf("read %q", got)
	}
	for _, link := range []string{filepath.Join(out, "deep", "folder"), filepath.Join(out, "b"), filepath.Join(home, ".cfg", "app")} {
		if _, err := os.Lstat(link); err == nil {
			t.Errorf("%s is still there", link)
		}
	}
}

// Nothing that is on a node is written over, nothing leads out of where it should be, and the error says so.
func TestMountRefuses(t *testing.T) {
	home, out := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	n := newNode(t)
	files, sum := bundle(t, regular("a.txt", "alpha"))
	there := filepath.Join(out, "there")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, filepath.Join(out, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(n.dir.path("workdir/has"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, n.dir.path("workdir/escape")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, file, want string }{
		{there, "", "not written over"}, {filepath.Join(out, "link"), "", "not written over"}, {"has", "", "not written over"},
		{filepath.Join(there, "below"), "", "not a directory"}, {"escape/new", "", "escapes"},
		{"../up", "", ".. is not allowed"}, {"/tmp/../etc/x", "", ".. is not allowed"}, {"", "", "no path"}, {"a\nb", "", "no path"},
		{"/proc/x", "", "to the system"}, {"/", "", "there already"}, {"~/", "", "there already"}, {".", "", "there already"},
		{n.dir.path("lock"), "", "to the agent"}, {"x", "../../etc/passwd", "no name"}, {"x", "b.txt", `no "b.txt"`},
	} {
		err := n.mounted(tc.path, tc.file, sum, files)
		if err == nil || !errors.Is(err, errMount) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.path, err, tc.want)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	fresh := filepath.Join(out, "new") // not there when escape/new was tried first: it is not what that has left
	if err := os.WriteFile(fresh, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.mounted("escape/new", "", sum, files); !errors.Is(err, errMount) {
		t.Errorf("escape/new again: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("a file behind a link was removed")
	}
	if err := n.mounted("y", "", strings.Repeat("0", 64), files); err == nil || errors.Is(err, errMount) {
		t.Errorf("another bundle: %v", err)
	}
}

// A mount that was cut off is made again, and a link that an attempt has left which is over is no hindrance; one of an
// attempt that lives is.
func TestMountAgain(t *testing.T) {
	out := t.TempDir()
	files, sum := bundle(t, regular("a.txt", "alpha"))
	at := filepath.Join(out, "data")
	n := newNode(t)
	for _, path := range []string{at, "rel"} {
		m := mount{dir: n.dir, path: path, sum: sum}
		if err := n.mounted(path, "", sum, files); err != nil {
			t.Fatal(err)
		}
		if err := n.dir.replace(m.made(), madeRecord{Path: path, SHA256: sum}); err != nil { // as if killed before its end
			t.Fatal(err)
		}
		if err := n.mounted(path, "", sum, files); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	other := newNode(t)
	if err := other.mounted(at, "", sum, files); err == nil {
		t.Error("the mount of another attempt was taken, which is about to start")
	}
	n.start(StartRequest{Run: "cat rel/a.txt; sleep 1000"})
	n.awaitLog("alpha")
	if err := other.mounted(at, "", sum, files); err == nil {
		t.Error("the mount of another attempt was taken, which runs")
	}
	sup := n.supervisor()
	sup.signal(9)
	n.awaitState(Unsupervised)
	n.stop("0")
	n.awaitState(Lost)
	if err := other.mounted(at, "", sum, files); err != nil {
		t.Errorf("the mount of an attempt that is over: %v", err)
	}
}

package agent

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// bundle packs entries as they are.
func bundle(t testing.TB, entries ...tar.Header) (packed []byte, sum string) {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, h := range entries {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		h.Size = int64(len(content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := archive.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(hash[:])
}

// regular is the entry of a file, with its content where [bundle] looks for it.
func regular(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"content": content}}
}

func link(kind byte, name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: kind, Linkname: target}
}

// A bundle becomes the work directory, with modes, times, folders and links, and the run finds it there.
func TestUnpack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	script := regular("bin/hello.sh", "#!/bin/sh\necho hello from $PWD\n")
	script.Mode, script.ModTime = 0o4755, time.Unix(1_600_000_000, 0)
	packed, sum := bundle(t, script, tar.Header{Name: "empty/", Typeflag: tar.TypeDir, Mode: 0o500},
		link(tar.TypeSymlink, "run", "bin/hello.sh"), link(tar.TypeSymlink, "empty/up", "../bin"),
		link(tar.TypeLink, "again", "bin/hello.sh"),
		regular("empty/a", "first"), regular("empty/a", "second"))
	for i := range 2 {
		got, err := unpack(n.dir, sum, bytes.NewReader(packed), unpackLimits)
		if err != nil || got.Already != (i == 1) {
			t.Fatalf("%+v, error %v", got, err)
		}
	}
	st := n.finish(StartRequest{Run: "./run && cmp again empty/up/hello.sh && cat empty/a"})
	if want := "hello from " + n.dir.path("workdir") + "\nsecond"; string(st.Log) != want {
		t.Errorf("log %q, want %q", st.Log, want)
	}
	info, err := os.Stat(n.dir.path("workdir/bin/hello.sh"))
	if err != nil || info.Mode() != 0o755 || !info.ModTime().Equal(script.ModTime) {
		t.Errorf("mode %v, time %v, error %v", info.Mode(), info.ModTime(), err)
	}
	if left, _ := filepath.Glob(n.dir.path("unpack.*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A bundle that reaches out of itself, is not what was meant, or is too large changes nothing.
func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string][]tar.Header{
		"absolute":              {regular("/tmp/evil", "x")},
		"up":                    {regular("../evil", "x")},
		"up and down":           {regular("a/../../evil", "x")},
		"absolute link":         {link(tar.TypeSymlink, "l", "/etc")},
		"link up":               {link(tar.TypeSymlink, "a/l", "../../evil")},
		"link down and up":      {link(tar.TypeSymlink, "l", "a/../../evil")},
		"links in two steps":    {link(tar.TypeSymlink, "a/b/l", "../.."), link(tar.TypeSymlink, "m", "a/b/l/..")},
		"through a link":        {link(tar.TypeSymlink, "l", "a"), regular("l/x", "x")},
		"over a link":           {link(tar.TypeSymlink, "l", "a"), regular("l", "x")},
		"hard link up":          {link(tar.TypeLink, "l", "../../etc/passwd")},
		"hard link to absolute": {link(tar.TypeLink, "l", "/etc/passwd")},
		"hard link to link":     {link(tar.TypeSymlink, "a", "b"), link(tar.TypeLink, "l", "a")},
		"device":                {{Name: "d", Typeflag: tar.TypeBlock}},
		"pipe":                  {{Name: "p", Typeflag: tar.TypeFifo}},
		"too large":             {regular("a", strings.Repeat("x", 600)), regular("b", strings.Repeat("x", 600))},
		"too many":              {regular("1", ""), regular("2", ""), regular("3", ""), regular("4", ""), regular("5", "")},
	}
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dir(filepath.Join(t.TempDir(), "attempt"))
			packed, sum := bundle(t, entries...)
			if got, err := unpack(d, sum, bytes.NewReader(packed), limits{bytes: 1000, entries: 4}); err == nil {
				t.Errorf("it was taken: %+v", got)
			}
			assertNothing(t, d)
		})
	}
}

// assertNothing checks that an attempt's directory holds nothing of a bundle, nor does its parent.
func assertNothing(t *testing.T, d dir) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(string(d)), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() || entry.Name() == dirWork {
			t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A bundle that was cut off anywhere, or is another one, is not taken for the one that was meant.
func TestUnpackChecksHash(t *testing.T) {
	t.Parallel()
	packed, sum := bundle(t, regular("a", strings.Repeat("abc", 100)))
	for length := range packed {
		d := dir(filepath.Join(t.TempDir(), "attempt"))
		if _, err := unpack(d, sum, bytes.NewReader(packed[:length]), unpackLimits); err == nil {
			t.Fatalf("cut off after %d of %d bytes, it was taken", length, len(packed))
		}
		assertNothing(t, d)
	}
	other, _ := bundle(t, regular("a", "other"))
	if _, err := unpack(dir(t.TempDir()), sum, bytes.NewReader(other), unpackLimits); err == nil {
		t.Error("another bundle was taken")
	}
}

// Several may unpack at once: all succeed, and the directory is whole at any time.
func TestUnpackAtOnce(t *testing.T) {
	t.Parallel()
	d := dir(filepath.Join(t.TempDir(), "attempt"))
	packed, sum := bundle(t, regular("a", strings.Repeat("a", 100_000)), regular("b/c", "c"))
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if _, err := unpack(d, sum, bytes.NewReader(packed), unpackLimits); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(d.path("workdir/b/c")); err != nil || string(text) != "c" {
				t.Errorf("%q, error %v", text, err)
			}
		})
	}
	group.Wait()
	if left, _ := filepath.Glob(d.path("unpack.*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Before the start another bundle may take the place of the first one; after it, none may.
func TestUnpackAnother(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	first, firstSum := bundle(t, regular("a", "1"))
	second, secondSum := bundle(t, regular("b", "2"))
	for _, b := range []struct {
		packed []byte
		sum    string
	}{{first, firstSum}, {second, secondSum}} {
		if _, err := unpack(n.dir, b.sum, bytes.NewReader(b.packed), unpackLimits); err != nil {
			t.Fatal(err)
		}
	}
	st := n.finish(StartRequest{Run: "ls"})
	if string(st.Log) != "b\n" {
		t.Errorf("log %q", st.Log)
	}
	if _, err := unpack(n.dir, firstSum, bytes.NewReader(first), unpackLimits); err == nil {
		t.Error("the work directory of a run was exchanged")
	}
}

// No archive, however broken, writes out of its folder, beyond its limits or without an end.
func FuzzExtract(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{regular("a/b", "c"), link(tar.TypeSymlink, "l", "a")},
		{link(tar.TypeSymlink, "a/b/l", "../.."), link(tar.TypeSymlink, "m", "a/b/l")},
		{regular("../evil", "x")},
	} {
		packed, _ := bundle(f, entries...)
		plain, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			f.Fatal(err)
		}
		text, err := io.ReadAll(plain)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		parent := t.TempDir()
		folder := filepath.Join(parent, "folder")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(archive); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		_ = extract(folder, &packed, limits{bytes: 1 << 16, entries: 64})
		assertInside(t, parent, folder)
	})
}

// assertInside checks that a folder is all there is in its parent, and that no link in it leads out.
func assertInside(t *testing.T, parent, folder string) {
	t.Helper()
	if names, err := os.ReadDir(parent); err != nil || len(names) != 1 {
		t.Fatalf("written out of the folder: %v, error %v", names, err)
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if target, bad := filepath.EvalSymlinks(path); bad == nil && target != folder && !strings.HasPrefix(target, folder+"/") {
				t.Errorf("%s leads to %s", path, target)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

package archive

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"pgregory.net/rapid"
)

// open returns an empty archive in a directory.
func open(t *testing.T) (*Archive, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a b#c?d") // characters that mean something in a URL
	a, err := Open(t.Context(), (&url.URL{Scheme: "file", Path: dir}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, dir
}

// inMemory returns an empty archive that is fast enough for many rounds of a property.
func inMemory(t rapid.TB) *Archive {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	return &Archive{bucket: memblob.OpenBucket(nil), name: "mem://", codec: c}
}

func TestOpenMakesAPrivateDirectory(t *testing.T) {
	t.Parallel()
	_, dir := open(t)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode %o, want 700", got)
	}
}

func TestOpenRefusesWhatItDoesNotKnowWithoutShowingCredentials(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"swift://user:hunter2hunter2@host/bucket",
		"swift://bucket?secret_key=hunter2hunter2",
		"://user:hunter2hunter2@host",
		"postgres://user:hunter2hunter2@host:port/x",
		"file://host/path?key=hunter2hunter2",
		"file://./relative?key=hunter2hunter2",
		"hunter2hunter2",
	} {
		a, err := Open(t.Context(), raw)
		if err == nil {
			t.Errorf("%s was opened as %s", raw, a)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// A driver that quotes its URL in an error, as they do, does not give the credentials away.
func TestErrorsOfADriverAreCleaned(t *testing.T) {
	t.Parallel()
	const raw = "s3://bucket?access=hunter2hunter2&region=eu"
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	a := &Archive{name: safeName(u), hide: credentials(raw, u)}
	for _, text := range []string{"open " + raw + ": refused", `Get "https://x/?k=hunter2hunter2"`, u.RawQuery} {
		got := a.failed(errors.New(text), "open").Error()
		if strings.Contains(got, "hunter2") || !strings.Contains(got, "s3://bucket") {
			t.Errorf("got %s", got)
		}
	}
}

// What is interrupted in the middle of a write leaves nothing that looks like an object.
func TestAnInterruptedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	key := LogKey{Job: 1}
	err := a.put(ctx, key.object(segment{from: 0, to: 3}), "application/zstd", func(w *blob.Writer) error {
		_, err := w.Write([]byte("abc"))
		cancel()
		return err
	})
	if err == nil {
		t.Error("the write succeeded")
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// files lists the files under dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

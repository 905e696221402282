package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"

	"gocloud.dev/blob"
)

// Bundle is a packed directory in a temporary file. The caller must call Remove.
type Bundle struct {
	Key      string // where it goes in an archive: "bundles/<sha256>.tar.gz"
	Size     int64  // bytes, compressed
	Files    int    // regular files in it
	Unpacked int64  // bytes in those files
	path     string
}

// Open opens the packed file for reading.
func (b Bundle) Open() (io.ReadCloser, error) { return os.Open(b.path) }

// Remove deletes the temporary file.
func (b Bundle) Remove() error {
	if b.path == "" {
		return nil
	}
	return os.Remove(b.path)
}

// bundleKey is the form of a key. Others are refused: keys come from requests, and must not reach other objects.
var bundleKey = regexp.MustCompile(`^bundles/([0-9a-f]{64})\.tar\.gz$`)

func keyOfBundle(sum []byte) string { return "bundles/" + hex.EncodeToString(sum) + ".tar.gz" }

// PutBundle stores a bundle under its key. It does nothing if the archive has it already.
func (a *Archive) PutBundle(ctx context.Context, b Bundle) error {
	there, err := a.bucket.Exists(ctx, b.Key)
	if err != nil {
		return a.failed(err, "look for %s", b.Key)
	}
	if there {
		return nil
	}
	r, err := b.Open()
	if err != nil {
		return a.failed(err, "read the bundle %s", b.Key)
	}
	defer func() { _ = r.Close() }()
	return a.put(ctx, b.Key, "application/gzip", func(w *blob.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// OpenBundle opens a bundle for reading. Errors wrap [ErrNotFound] if there is none. Reading to the end checks the content
// against the key, and ends with an error instead of io.EOF if it is damaged.
func (a *Archive) OpenBundle(ctx context.Context, key string) (io.ReadCloser, error) {
	match := bundleKey.FindStringSubmatch(key)
	if match == nil {
		return nil, fmt.Errorf("archive %s: %q is not the key of a bundle", a.name, key)
	}
	r, err := a.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, a.failed(err, "read %s", key)
	}
	return &checkedReader{archive: a, key: key, want: match[1], r: r, sum: sha256.New()}, nil
}

// RemoveBundle deletes a bundle. One that is not there is success.
func (a *Archive) RemoveBundle(ctx context.Context, key string) error {
	if !bundleKey.MatchString(key) {
		return fmt.Errorf("archive %s: %q is not the key of a bundle", a.name, key)
	}
	return a.remove(ctx, key)
}

// checkedReader hashes what is read through it.
type checkedReader struct {
	archive   *Archive
	key, want string
	r         io.ReadCloser
	sum       hash.Hash
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, c.archive.failed(err, "read %s", c.key)
	case hex.EncodeToString(c.sum.Sum(nil)) != c.want:
		return n, c.archive.failed(errors.New("it is damaged: its content does not match its key"), "read %s", c.key)
	}
	return n, io.EOF
}

func (c *checkedReader) Close() error { return c.r.Close() }

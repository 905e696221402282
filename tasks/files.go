package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// filesError says that a task's files cannot be brought to any machine, or not to this kind: the archive answers that there
// is no such bundle, or something is where a file should be.
type filesError struct {
	what string
	err  error
}

func (e *filesError) Error() string { return e.what + ": " + e.err.Error() }
func (e *filesError) Unwrap() error { return e.err }

// sendFiles brings a task's work directory and file mounts to the node, each once.
func (d *driver) sendFiles(ctx context.Context, c *machine.Client, dir string, t *job.TaskRequest) error {
	err := d.sendBundle(ctx, "workdir", t.Workdir, func(hash string, bundle io.Reader) error {
		return c.Unpack(ctx, dir, hash, bundle)
	})
	for _, f := range t.Files {
		if err != nil {
			break
		}
		what := fmt.Sprintf("file_mounts: %q", f.Path)
		if f.Bundle == "" {
			return &filesError{what, errors.New("only files of the computer that submits can be mounted")}
		}
		err = d.sendBundle(ctx, what, f.Bundle, func(hash string, bundle io.Reader) error {
			return c.Mount(ctx, dir, hash, f.Path, f.File, bundle)
		})
	}
	return err
}

// sendBundle streams a bundle from the archive to the node, which keeps it by its hash.
func (d *driver) sendBundle(ctx context.Context, what, key string, send func(hash string, bundle io.Reader) error) error {
	if key == "" {
		return nil
	}
	bundle, err := d.w.archive.OpenBundle(ctx, key)
	if err != nil {
		if errors.Is(err, archive.ErrNotFound) {
			return &filesError{what, err}
		}
		return fmt.Errorf("%s: %w", what, err) // the archive may only be away for a while (G10)
	}
	defer bundle.Close()
	err = send(bundleHash(key), bundle)
	if errors.Is(err, machine.ErrMount) {
		return &filesError{what, err}
	}
	return err
}

// bundleHash is the content hash in a bundle's key, bundles/<hash>.tar.gz.
func bundleHash(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	hash, _, _ := strings.Cut(name, ".")
	return hash
}

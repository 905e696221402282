package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
)

// bundle puts the local files of a job into the archive, and their keys into its request. Everything is packed before
// anything is uploaded: what can not be taken along is said first.
func (d *deployment) bundle(ctx context.Context, j *spec.Job) (err error) {
	p := &packer{status: d.app.status, done: map[string]archive.Bundle{}}
	defer d.app.status.set("")
	defer func() { err = errors.Join(err, p.remove()) }()
	for i := range j.Request.Tasks {
		t := &j.Request.Tasks[i]
		if t.Workdir, err = p.folder(j.Workdirs[i], "workdir"); err != nil {
			return err
		}
		for k := range t.Files {
			if local := j.Mounts[i][k]; local != "" {
				if t.Files[k].Bundle, t.Files[k].File, err = p.source(local, "file_mounts."+t.Files[k].Path); err != nil {
					return err
				}
			}
		}
	}
	if len(p.done) == 0 {
		return nil
	}
	files, err := d.archive(ctx)
	if err != nil {
		return err
	}
	for _, b := range p.done {
		p.status.set("uploading %s, %d files", render.Bytes(b.Size), b.Files)
		if err := files.PutBundle(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// packer packs local files into bundles.
type packer struct {
	status *status
	done   map[string]archive.Bundle // by the path of what is in them: tasks often share one
}

// folder packs a folder, and returns the key of the bundle; "" for no folder.
func (p *packer) folder(dir, field string) (key string, err error) {
	if dir == "" {
		return "", nil
	}
	return p.add(dir, field, archive.Pack)
}

// source packs a folder or a file. name is that of the file within the bundle.
func (p *packer) source(path, field string) (key, name string, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%s: %w", field, err)
	case info.IsDir():
		key, err = p.folder(path, field)
		return key, "", err
	case !info.Mode().IsRegular(): // a pipe would be waited for
		return "", "", fmt.Errorf("%s: %s is neither a file nor a folder", field, path)
	}
	key, err = p.add(path, field, archive.PackFile)
	return key, filepath.Base(path), err
}

func (p *packer) add(path, field string, pack func(string, archive.Limits) (archive.Bundle, error)) (string, error) {
	b, done := p.done[path]
	if !done {
		var err error
		p.status.set("packing %s", render.Text(path))
		if b, err = pack(path, archive.Limits{}); err != nil {
			return "", fmt.Errorf("%s: %w", field, err)
		}
		p.done[path] = b
	}
	return b.Key, nil
}

// remove deletes the temporary files.
func (p *packer) remove() error {
	var errs []error
	for _, b := range p.done {
		errs = append(errs, b.Remove())
	}
	return errors.Join(errs...)
}

package web

import (
	"context"
	"errors"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Archive is where logs are kept, and jobs that have left the store.
type Archive interface {
	follow.Archive
	Job(ctx context.Context, id job.ID) (archive.Document, error)
}

// shelf reads jobs from the store, and those that have left it from the archive: a page of a job is the same before and
// after. It implements follow.Store.
type shelf struct {
	*store.Store
	files Archive // nil if it cannot be had
}

// document is a job that the store does not have. Whoever has neither is not found.
func (s shelf) document(ctx context.Context, id job.ID, missing error) (archive.Document, error) {
	if !errors.Is(missing, store.ErrNotFound) || s.files == nil {
		return archive.Document{}, missing
	}
	d, err := s.files.Job(ctx, id)
	if errors.Is(err, archive.ErrNotFound) {
		return d, missing
	}
	return d, err
}

// Load reads a record.
func (s shelf) Load(ctx context.Context, id job.ID) (job.Record, error) {
	r, err := s.Store.Load(ctx, id)
	if err == nil {
		return r, nil
	}
	d, err := s.document(ctx, id, err)
	if err != nil {
		return r, err
	}
	return d.Record(), nil
}

// Past reads attempts that are gone.
func (s shelf) Past(ctx context.Context, id job.ID) ([]job.Attempt, error) {
	list, err := s.Store.Past(ctx, id)
	if err != nil || len(list) > 0 {
		return list, err
	}
	if _, err := s.Store.Load(ctx, id); errors.Is(err, store.ErrNotFound) {
		d, err := s.document(ctx, id, err)
		return d.Past, err
	}
	return list, nil
}

// whole is all that is known about a job.
func (s shelf) whole(ctx context.Context, id job.ID) (all store.Retired, retired job.Time, err error) {
	all, err = s.LoadAll(ctx, id)
	if err == nil {
		return all, 0, nil
	}
	d, err := s.document(ctx, id, err)
	if err != nil {
		return all, 0, err
	}
	return store.Retired{Record: d.Record(), Request: d.Request, Past: d.Past, Events: d.Events}, d.RetiredAt, nil
}

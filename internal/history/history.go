// Package history finds jobs wherever they are: in Redis, or in the archive once they have left it. A reader of it need not
// know which.
//
// On failure: an archive that cannot be asked makes a job unknown that is not in Redis; the error says that it was not
// asked. Errors of the store are as they are.
package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Archive is where jobs are that have left the store.
type Archive interface {
	Job(ctx context.Context, id job.ID) (archive.Document, error)
	Entries(ctx context.Context, below job.ID, limit int) ([]archive.Entry, error)
	Document(ctx context.Context, e archive.Entry) (archive.Document, error)
}

// Jobs reads jobs. Its methods are those of the store, and answer for jobs in the archive as well.
type Jobs struct {
	*store.Store
	// Open opens the archive. It is called only when a job is not in the store, perhaps more than once.
	Open func(context.Context) (Archive, error)
}

// Load reads a job's record.
func (j Jobs) Load(ctx context.Context, id job.ID) (job.Record, error) {
	r, err := j.Store.Load(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	d, err := j.Document(ctx, id)
	if err != nil {
		return job.Record{}, err
	}
	return d.Record(), nil
}

// Document reads a job that is in the archive. [store.ErrNotFound] says that there is no such job.
func (j Jobs) Document(ctx context.Context, id job.ID) (archive.Document, error) {
	files, err := j.Open(ctx)
	if err != nil {
		return archive.Document{}, fmt.Errorf("job %d: %w in Redis, and the archive cannot be asked: %w", id, store.ErrNotFound, err)
	}
	d, err := files.Job(ctx, id)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return d, fmt.Errorf("job %d: %w", id, store.ErrNotFound)
	case err != nil:
		return d, fmt.Errorf("job %d: %w", id, err)
	default:
		return d, nil
	}
}

// Whole reads all that is known about a job, and when it moved to the archive, if it did.
func (j Jobs) Whole(ctx context.Context, id job.ID) (all store.Retired, retired job.Time, err error) {
	all, err = j.LoadAll(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return all, 0, err
	}
	d, err := j.Document(ctx, id)
	if err != nil {
		return store.Retired{}, 0, err
	}
	return store.Retired{Record: d.Record(), Request: d.Request, Past: d.Past, Events: d.Events}, d.RetiredAt, nil
}

// LoadMany reads jobs by id. Unknown ones are missing from the answer; damaged ones are named apart.
func (j Jobs) LoadMany(ctx context.Context, ids []job.ID) (known map[job.ID]job.Record, damaged map[job.ID]error, err error) {
	known, damaged, err = j.Store.LoadMany(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if _, ok := known[id]; ok || damaged[id] != nil {
			continue
		}
		switch d, err := j.Document(ctx, id); {
		case err == nil:
			known[id] = d.Record()
		case !errors.Is(err, store.ErrNotFound):
			damaged[id] = err
		}
	}
	return known, damaged, nil
}

// Request reads what a user asked for.
func (j Jobs) Request(ctx context.Context, id job.ID) (job.Request, error) {
	r, err := j.Store.Request(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	d, err := j.Document(ctx, id)
	return d.Request, err
}

// Events reads a job's history, oldest first.
func (j Jobs) Events(ctx context.Context, id job.ID) ([]job.Event, error) {
	list, err := j.Store.Events(ctx, id)
	if err != nil || len(list) > 0 {
		return list, err
	}
	d, err := j.gone(ctx, id)
	if err != nil || d == nil {
		return list, err
	}
	return d.Events, nil
}

// Past reads a job's attempts that are gone, oldest first.
func (j Jobs) Past(ctx context.Context, id job.ID) ([]job.Attempt, error) {
	list, err := j.Store.Past(ctx, id)
	if err != nil || len(list) > 0 {
		return list, err
	}
	d, err := j.gone(ctx, id)
	if err != nil || d == nil {
		return list, err
	}
	return d.Past, nil
}

// gone is the document of a job that is not in the store; nil if it is, or nowhere.
func (j Jobs) gone(ctx context.Context, id job.ID) (*archive.Document, error) {
	if _, err := j.Store.Load(ctx, id); !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	d, err := j.Document(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &d, err
}

// Resume lets a job that failed or was cancelled go again; one that is in the archive cannot.
func (j Jobs) Resume(ctx context.Context, id job.ID, by string) (store.Woken, error) {
	w, err := j.Store.Resume(ctx, id, by)
	if !errors.Is(err, store.ErrNotFound) {
		return w, err
	}
	d, err := j.Document(ctx, id)
	if err != nil {
		return w, err
	}
	return w, &job.NotResumableError{ID: id, Why: "it moved to the archive on " + d.RetiredAt.Std().UTC().Format("2006-01-02") + "; submit it again with launch"}
}

const (
	// findBatch is how many documents are read at a time, findList how many are listed.
	findBatch = 50
	findList  = 1000
	// findExamine bounds the documents that are read for one page unless the query does, findListed those that are passed.
	findExamine = 500
	findListed  = 50_000
	findWide    = 8
)

// FindArchived reads one page of the jobs that are in the archive. Which of them fit, its index tells; a document that the
// index does not know is read for that. As each of those is an object, a page may be cut short, and goes on at its Next.
func (j Jobs) FindArchived(ctx context.Context, q store.Query) (store.Page, error) {
	files, err := j.Open(ctx)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	examine, listed := q.Examine, 0
	if examine == 0 {
		examine = findExamine
	}
	for below := q.Before; ; {
		all, err := files.Entries(ctx, below, findList)
		if err != nil || len(all) == 0 {
			return page, err
		}
		candidates := slices.DeleteFunc(slices.Clone(all), func(e archive.Entry) bool {
			if e.Brief == nil {
				return false
			}
			r := e.Brief.Record()
			return !q.Matches(&r)
		})
		for part := range slices.Chunk(candidates, findBatch) {
			part = part[:min(len(part), examine)]
			records, err := j.readArchived(ctx, files, part, &page)
			if err != nil {
				return page, err
			}
			for i, r := range records {
				if r == nil || !q.Matches(r) {
					continue
				}
				if page.Jobs = append(page.Jobs, *r); q.Limit > 0 && len(page.Jobs) == q.Limit {
					page.Next = part[i].ID
					return page, nil
				}
			}
			if examine -= len(part); examine <= 0 {
				page.Next = part[len(part)-1].ID
				return page, nil
			}
		}
		below = all[len(all)-1].ID
		if listed += len(all); listed >= findListed {
			page.Next = below
			return page, nil
		}
	}
}

// readArchived reads documents. Those of jobs that are in the store as well, where they are newer, and those that cannot be
// read, are nil.
func (j Jobs) readArchived(ctx context.Context, files Archive, list []archive.Entry, page *store.Page) ([]*job.Record, error) {
	ids := make([]job.ID, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	here, damaged, err := j.Store.LoadMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	records, failed := make([]*job.Record, len(list)), make([]error, len(list))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(findWide)
	for i, e := range list {
		if _, ok := here[e.ID]; ok || damaged[e.ID] != nil {
			continue
		}
		g.Go(func() error {
			d, err := files.Document(gctx, e)
			switch {
			case err == nil:
				r := d.Record()
				records[i] = &r
			case gctx.Err() != nil:
				return gctx.Err()
			case !errors.Is(err, archive.ErrNotFound): // else it was removed meanwhile
				failed[i] = err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, err := range failed {
		if err != nil {
			page.Damaged = append(page.Damaged, err)
		}
	}
	return records, nil
}

package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/job"
)

// Beside the documents lies an index: of each folder of them, what lists filter by, in one object. It only saves reading: what
// it says of a document is true for ever, since no document is ever changed, and one that it does not know is read itself. So
// two that write it at once, or one that is slow, do no harm.

// indexPrefix holds an object for each folder of documents.
const indexPrefix = "jobs-index/"

// Entry is a document in the archive.
type Entry struct {
	ID    job.ID
	Seq   int64
	Brief *Brief // what the index says of it; nil if it does not know it
}

// Brief is what lists filter by.
type Brief struct {
	ID          job.ID     `json:"id"`
	Seq         int64      `json:"seq,omitempty"`
	Status      job.Status `json:"status"`
	Name        string     `json:"name"`
	User        string     `json:"user,omitempty"`
	SubmittedAt job.Time   `json:"at"`
}

// BriefOf is what the index says of a document.
func BriefOf(d *Document) Brief {
	r := d.Record()
	return Brief{ID: d.Head.ID, Seq: d.Seq, Status: r.Status(), Name: d.Head.Name, User: d.Head.User, SubmittedAt: d.Head.SubmittedAt}
}

// Record is as much of the job's record as the index knows.
func (b *Brief) Record() job.Record {
	return job.Record{
		Head:  job.Head{ID: b.ID, Name: b.Name, User: b.User, SubmittedAt: b.SubmittedAt},
		Tasks: []job.Task{{Status: b.Status}},
	}
}

// Entries lists documents, one a job, newest first: at most limit of jobs below an id, which zero leaves open. No document is
// read.
func (a *Archive) Entries(ctx context.Context, below job.ID, limit int) ([]Entry, error) {
	if below <= 0 {
		below = math.MaxInt64
	}
	var list []Entry
	err := a.each(ctx, &blob.ListOptions{Prefix: jobsPrefix, Delimiter: "/"}, func(folder *blob.ListObject) (bool, error) {
		if folder.Key < jobFolder(int64(below-1)/perFolder) {
			return true, nil // only newer ones
		}
		known, err := a.briefs(ctx, folder.Key)
		if err != nil {
			return false, err
		}
		err = a.each(ctx, &blob.ListOptions{Prefix: folder.Key}, func(o *blob.ListObject) (bool, error) {
			if id, seq, ok := parseJob(o.Key); ok && id < below && (len(list) == 0 || list[len(list)-1].ID != id) {
				e := Entry{ID: id, Seq: seq}
				if b, ok := known[o.Key]; ok {
					e.Brief = &b
				}
				list = append(list, e)
			}
			return len(list) < limit, nil
		})
		return len(list) < limit, err
	})
	return list, err
}

// Document reads the document of an entry.
func (a *Archive) Document(ctx context.Context, e Entry) (Document, error) {
	return a.document(ctx, e.ID, jobObject(e.ID, e.Seq))
}

func indexObject(folder string) string {
	return indexPrefix + strings.TrimSuffix(strings.TrimPrefix(folder, jobsPrefix), "/") + jobsSuffix
}

// briefs reads the index of a folder, by the names of the documents. One that is not there, or damaged, knows nothing.
func (a *Archive) briefs(ctx context.Context, folder string) (map[string]Brief, error) {
	known := map[string]Brief{}
	packed, err := a.bucket.ReadAll(ctx, indexObject(folder))
	if err != nil {
		return known, ctx.Err()
	}
	text, err := a.codec.dec.DecodeAll(packed, nil)
	if err != nil {
		return known, nil //nolint:nilerr // the documents tell the same
	}
	for line := range strings.Lines(string(text)) {
		var b Brief
		if json.Unmarshal([]byte(line), &b) == nil {
			known[jobObject(b.ID, b.Seq)] = b
		}
	}
	return known, nil
}

// indexWide is how many folders are indexed at a time.
const indexWide = 8

// Index adds documents to the index.
func (a *Archive) Index(ctx context.Context, briefs []Brief) error {
	byFolder := map[string][]Brief{}
	for _, b := range briefs {
		folder := jobFolder(int64(b.ID) / perFolder)
		byFolder[folder] = append(byFolder[folder], b)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(indexWide)
	for folder, add := range byFolder {
		g.Go(func() error { return a.indexFolder(ctx, folder, add) })
	}
	return g.Wait()
}

func (a *Archive) indexFolder(ctx context.Context, folder string, add []Brief) error {
	known, err := a.briefs(ctx, folder)
	if err != nil {
		return err
	}
	for _, b := range add {
		known[jobObject(b.ID, b.Seq)] = b
	}
	var text []byte
	for _, b := range known {
		line, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("encode the index: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	return a.put(ctx, indexObject(folder), "application/zstd", func(w *blob.Writer) error {
		_, err := w.Write(a.codec.enc.EncodeAll(text, nil))
		return err
	})
}

// RemoveIndex deletes the index of a folder of which no document is left, that of a job.
func (a *Archive) RemoveIndex(ctx context.Context, id job.ID) error {
	return a.remove(ctx, indexObject(jobFolder(int64(id)/perFolder)))
}

package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/outlast-dev/outlast/internal/job"
)

// documentVersion is that of what this package writes. Older ones must be read for ever.
const documentVersion = 1

// Document is all that is known about a job that has left the store. It holds no secret.
type Document struct {
	Version   int           `json:"version"`
	RetiredAt job.Time      `json:"retired_at"`
	Seq       int64         `json:"seq,omitempty"` // number of the last commit to the record: it is higher after every end
	Head      job.Head      `json:"head"`
	Cur       int           `json:"cur,omitempty"`
	Statuses  []job.Status  `json:"statuses"` // of the tasks
	Tasks     []job.Task    `json:"tasks"`
	Live      []job.Attempt `json:"live,omitempty"` // whose machines were never proven gone
	Cancel    *job.Cancel   `json:"cancel,omitempty"`
	Request   job.Request   `json:"request"`
	Past      []job.Attempt `json:"past,omitempty"`
	Events    []job.Event   `json:"events"`
}

// DocumentOf puts together what is known about a job.
func DocumentOf(r *job.Record, req job.Request, past []job.Attempt, events []job.Event, now job.Time) Document {
	d := Document{
		Version: documentVersion, RetiredAt: now, Seq: r.Seq, Head: r.Head, Cur: r.Cur, Tasks: r.Tasks, Live: r.Live, Cancel: r.Cancel,
		Request: req, Past: past, Events: events,
	}
	for _, t := range r.Tasks {
		d.Statuses = append(d.Statuses, t.Status)
	}
	return d
}

// Record is the job's record as it was in the end.
func (d *Document) Record() job.Record {
	r := job.Record{Head: d.Head, Seq: d.Seq, Step: job.StepDone, Cur: d.Cur, Tasks: d.Tasks, Live: d.Live, Cancel: d.Cancel}
	for i := range r.Tasks {
		r.Tasks[i].Status = d.Statuses[i]
	}
	return r
}

// EndedAt is when the last task of the job ended.
func (d *Document) EndedAt() job.Time {
	var at job.Time
	for _, t := range d.Tasks {
		at = max(at, t.EndedAt)
	}
	return at
}

// Documents lie in folders of a thousand, and all names count down: so a list of names, which every bucket sorts from A
// to Z, begins with the newest job. The second number of a name is that of the record's last commit. So nobody who is slow
// writes over what was written after a later end of the job: the first name of a job is the last end of it. Names without that
// number are older than those with one.
const (
	jobsPrefix = "jobs/"
	jobsSuffix = ".json.zst"
	perFolder  = 1000
)

func jobFolder(n int64) string { return fmt.Sprintf("%s%019d/", jobsPrefix, math.MaxInt64-n) }

// jobName begins the names of all documents of a job.
func jobName(id job.ID) string {
	return fmt.Sprintf("%s%019d", jobFolder(int64(id)/perFolder), math.MaxInt64-int64(id))
}

func jobObject(id job.ID, seq int64) string {
	if seq == 0 {
		return jobName(id) + jobsSuffix
	}
	return fmt.Sprintf("%s-%019d%s", jobName(id), math.MaxInt64-seq, jobsSuffix)
}

// parseJob reads a name as [jobObject] makes it. Others are not ours.
func parseJob(name string) (id job.ID, seq int64, ok bool) {
	base := strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], jobsSuffix)
	first, second, numbered := strings.Cut(base, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	id = job.ID(math.MaxInt64 - n)
	if numbered && err == nil {
		n, err = strconv.ParseInt(second, 10, 64)
		seq = math.MaxInt64 - n
	}
	return id, seq, err == nil && jobObject(id, seq) == name
}

// PutJob writes a job's document, and returns when it was read back unharmed. One of an earlier end stays beside it.
func (a *Archive) PutJob(ctx context.Context, d Document) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode job %d: %w", d.Head.ID, err)
	}
	name := jobObject(d.Head.ID, d.Seq)
	packed := a.codec.enc.EncodeAll(text, nil)
	err = a.put(ctx, name, "application/zstd", func(w *blob.Writer) error {
		_, err := w.Write(packed)
		return err
	})
	if err != nil {
		return err
	}
	back, err := a.bucket.ReadAll(ctx, name)
	if err == nil && !bytes.Equal(back, packed) {
		err = errors.New("what was written is not what is read")
	}
	if err != nil {
		return a.failed(err, "read %s", name)
	}
	return nil
}

// documents are the names of a job's documents, that of its last end first.
func (a *Archive) documents(ctx context.Context, id job.ID) ([]string, error) {
	var names []string
	err := a.each(ctx, &blob.ListOptions{Prefix: jobName(id)}, func(o *blob.ListObject) (bool, error) {
		if _, _, ok := parseJob(o.Key); ok {
			names = append(names, o.Key)
		}
		return true, nil
	})
	return names, err
}

// Job reads a job's document, that of its last end. A job that has none gives [ErrNotFound].
func (a *Archive) Job(ctx context.Context, id job.ID) (Document, error) {
	names, err := a.documents(ctx, id)
	if err != nil {
		return Document{}, err
	}
	return a.document(ctx, id, append(names, jobObject(id, 0))[0])
}

// document reads a document.
func (a *Archive) document(ctx context.Context, id job.ID, name string) (Document, error) {
	var d Document
	packed, err := a.bucket.ReadAll(ctx, name)
	if err != nil {
		return d, a.failed(err, "read %s", name)
	}
	text, err := a.codec.dec.DecodeAll(packed, nil)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("it is damaged: %w", err)
	case d.Version > documentVersion:
		err = fmt.Errorf("it has version %d, this program reads up to %d: use a newer version of outlast", d.Version, documentVersion)
	case d.Head.ID != id || len(d.Tasks) == 0 || len(d.Statuses) != len(d.Tasks) || len(d.Head.Tasks) != len(d.Tasks) || d.Cur < 0 || d.Cur >= len(d.Tasks):
		err = errors.New("it is damaged: it is not whole")
	}
	if err != nil {
		return d, a.failed(err, "read %s", name)
	}
	return d, nil
}

// RemoveJob deletes a job's documents, those of earlier ends first.
func (a *Archive) RemoveJob(ctx context.Context, id job.ID) error {
	names, err := a.documents(ctx, id)
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if err := a.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Jobs lists jobs that have a document, newest first: at most limit of those below an id, which zero leaves open. No
// document is read.
func (a *Archive) Jobs(ctx context.Context, below job.ID, limit int) ([]job.ID, error) {
	list, err := a.Entries(ctx, below, limit)
	ids := make([]job.ID, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids, err
}

// OldestJobs calls f for the folders of documents, the oldest first, each with its jobs, newest first, until it returns false.
func (a *Archive) OldestJobs(ctx context.Context, f func([]job.ID) (bool, error)) error {
	var folders []string
	err := a.each(ctx, &blob.ListOptions{Prefix: jobsPrefix, Delimiter: "/"}, func(folder *blob.ListObject) (bool, error) {
		folders = append(folders, folder.Key)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		var ids []job.ID
		err := a.each(ctx, &blob.ListOptions{Prefix: folder}, func(o *blob.ListObject) (bool, error) {
			if id, _, ok := parseJob(o.Key); ok && (len(ids) == 0 || ids[len(ids)-1] != id) {
				ids = append(ids, id)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		if more, err := f(ids); err != nil || !more {
			return err
		}
	}
	return nil
}

// each calls f for every object or folder of a list, until it returns false.
func (a *Archive) each(ctx context.Context, of *blob.ListOptions, f func(*blob.ListObject) (bool, error)) error {
	for it := a.bucket.List(of); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) || gcerrors.Code(err) == gcerrors.NotFound { // a folder that was emptied meanwhile
			return nil
		}
		if err != nil {
			return a.failed(err, "list %s", of.Prefix)
		}
		more, err := f(o)
		if err != nil || !more {
			return err
		}
	}
}

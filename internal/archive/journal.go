package archive

import (
	"context"
	"errors"

	"gocloud.dev/blob"

	"github.com/outlast-dev/outlast/internal/job"
)

func journalOf(id job.ID) string { return prefixOfJob(id) + "journal.zst" }

// PutJournal stores what workers have logged about a job, in place of what was stored before.
func (a *Archive) PutJournal(ctx context.Context, id job.ID, lines []byte) error {
	packed := a.codec.enc.EncodeAll(lines, nil)
	return a.put(ctx, journalOf(id), "application/zstd", func(w *blob.Writer) error {
		_, err := w.Write(packed)
		return err
	})
}

// Journal reads what workers have logged about a job; nil if there is nothing.
func (a *Archive) Journal(ctx context.Context, id job.ID) ([]byte, error) {
	name := journalOf(id)
	packed, err := a.bucket.ReadAll(ctx, name)
	if err != nil {
		if err = a.failed(err, "read %s", name); errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	lines, err := a.codec.dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, a.failed(err, "read %s", name)
	}
	return lines, nil
}

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ReadLog opens a log for reading from a position on. Where bytes are missing, the text has a line that says how many. A
// position at or after the end reads nothing. Errors of the store come from Read, not from here.
//
// It reads what is there when it comes to it: it does not wait for more, and the caller who follows a log opens it
// again where [Archive.LogSize] said that it ends.
func (a *Archive) ReadLog(ctx context.Context, key LogKey, from int64) (io.ReadCloser, error) {
	if from < 0 {
		return nil, fmt.Errorf("archive %s: read the log of %s from %d: out of bounds", a.name, key, from)
	}
	segments, err := a.segments(ctx, key)
	if err != nil {
		return nil, err
	}
	return &logReader{archive: a, ctx: ctx, key: key, pieces: stitch(segments, from), last: '\n'}, nil
}

// missing is the line that stands for a piece that is not there. It begins a line of its own.
func missing(p piece) string {
	return fmt.Sprintf("[outlast: %d bytes are missing here]\n", p.to-p.from)
}

// logReader reads the pieces of a log one after the other.
type logReader struct {
	archive *Archive
	ctx     context.Context //nolint:containedctx // of ReadLog: io.Reader leaves no other way to hand it on
	key     LogKey
	pieces  []piece // still to be read
	rest    []byte  // of the current one
	last    byte    // that was read
}

func (r *logReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if len(r.pieces) == 0 {
			return 0, io.EOF
		}
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// advance loads the next piece.
func (r *logReader) advance() error {
	next := r.pieces[0]
	if next.missing {
		r.rest = []byte(missing(next))
		if r.last != '\n' {
			r.rest = append([]byte("\n"), r.rest...)
		}
	} else {
		data, err := r.archive.piece(r.ctx, r.key, next)
		if errors.Is(err, ErrNotFound) {
			return r.replan(next, err)
		}
		if err != nil {
			return err
		}
		r.rest = data
	}
	r.pieces = r.pieces[1:]
	r.last = r.rest[len(r.rest)-1]
	return nil
}

// replan looks again after a segment was gone, since PutLog replaces a segment by one that holds more.
func (r *logReader) replan(lost piece, err error) error {
	segments, listErr := r.archive.segments(r.ctx, r.key)
	if listErr != nil {
		return listErr
	}
	if slices.Contains(segments, lost.segment) {
		return err // listed, yet not there
	}
	r.pieces = stitch(segments, lost.from)
	return nil
}

// piece loads the bytes of a piece out of its segment.
func (a *Archive) piece(ctx context.Context, key LogKey, p piece) ([]byte, error) {
	data, err := a.load(ctx, key, p.segment)
	if err != nil {
		return nil, err
	}
	return data[p.from-p.segment.from : p.to-p.segment.from], nil
}

// Close ends reading.
func (r *logReader) Close() error {
	r.pieces, r.rest = nil, nil
	return nil
}

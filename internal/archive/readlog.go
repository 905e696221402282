package archive

import (
	"context"
	"fmt"
	"io"
	"iter"
)

// ReadLog opens a log for reading from a position on. Where bytes are not there, the text has a line that says how many. A
// position at or after the end reads nothing. Errors of the store come from Read, not from here. For more than the text
// see [Archive.Chunks].
func (a *Archive) ReadLog(ctx context.Context, key LogKey, from int64) (io.ReadCloser, error) {
	if from < 0 {
		return nil, fmt.Errorf("archive %s: read the log of %s from %d: out of bounds", a.name, key, from)
	}
	next, stop := iter.Pull2(a.Chunks(ctx, key, from))
	return &logReader{next: next, stop: stop}, nil
}

// logReader reads the text of a log's chunks one after the other.
type logReader struct {
	next func() (Chunk, error, bool)
	stop func()
	rest []byte // of the current one
	last byte   // that was read; 0 before the first one
}

func (r *logReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		c, err, ok := r.next()
		if !ok {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = Text([]Chunk{c}, r.last)
		r.last = r.rest[len(r.rest)-1]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close ends reading.
func (r *logReader) Close() error {
	r.stop()
	return nil
}

package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/store"
)

// Archive is where logs are kept for good.
type Archive interface {
	ReadLog(ctx context.Context, key archive.LogKey, from int64) (io.ReadCloser, error)
	LogSize(ctx context.Context, key archive.LogKey) (archive.LogInfo, error)
	Tail(ctx context.Context, key archive.LogKey, lines int) ([]byte, error)
}

const (
	pieceSize = 64 << 10 // of the live tail in one read
	// patience is how long a hole between archive and tail may last before it is told and skipped: the archive falls behind by
	// seconds, unless it is out of order.
	patience = 10 * time.Second
	// archiveEvery is how often the archive is asked about a running attempt without a tail: listing a bucket costs.
	archiveEvery = 2 * time.Second
)

// Log is a place in the output of one attempt.
type Log struct {
	Store   Tails
	Archive Archive // nil if it cannot be had
	Key     archive.LogKey

	offset    int64     // of the next byte to show
	last      byte      // that was shown
	asked     time.Time // when the archive was asked last
	holeSince time.Time // since when bytes are missing
}

// Live shows what a running attempt has written since the last call, and returns how many bytes.
func (l *Log) Live(ctx context.Context, w io.Writer) (int64, error) {
	from := l.offset
	for {
		piece, err := l.Store.TailRead(ctx, l.Key.Job, l.Key.Task, l.Key.Attempt, l.offset, pieceSize)
		switch {
		case err != nil:
			return l.offset - from, err
		case piece.End < 0 && time.Since(l.asked) < archiveEvery:
			return l.offset - from, nil
		case piece.End < 0:
			l.asked = time.Now()
			return l.offset - from, l.bridge(ctx, w, -1)
		case piece.Offset > l.offset:
			before := l.offset
			if err := l.bridge(ctx, w, piece.Offset); err != nil || l.offset == before {
				return l.offset - from, err
			}
			continue
		case len(piece.Data) == 0:
			return l.offset - from, nil
		}
		l.holeSince = time.Time{}
		if err := l.show(w, piece.Data); err != nil {
			return l.offset - from, err
		}
	}
}

// bridge shows what the archive has from the offset up to an offset, or to its end if that is negative. A hole that
// lasts is told and skipped.
func (l *Log) bridge(ctx context.Context, w io.Writer, to int64) error {
	have, err := l.archived(ctx)
	if err != nil {
		return err
	}
	end := have.Size
	if to >= 0 {
		end = min(end, to)
	}
	if end > l.offset && have.Missing == 0 {
		l.holeSince = time.Time{}
		return l.copyArchived(ctx, w, end)
	}
	switch {
	case to < 0:
		return nil
	case l.holeSince.IsZero():
		l.holeSince = time.Now()
		return nil
	case time.Since(l.holeSince) < patience:
		return nil
	}
	l.holeSince = time.Time{}
	return l.skip(w, to)
}

// copyArchived shows the archive's bytes from the offset up to end, all of which are there.
func (l *Log) copyArchived(ctx context.Context, w io.Writer, end int64) error {
	r, err := l.Archive.ReadLog(ctx, l.Key, l.offset)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	_, err = io.Copy(&shower{l, w}, io.LimitReader(r, end-l.offset))
	return err
}

// Rest shows the rest of an attempt that is over.
func (l *Log) Rest(ctx context.Context, w io.Writer) error {
	lost := l.restOfArchive(ctx, w)
	for {
		piece, err := l.Store.TailRead(ctx, l.Key.Job, l.Key.Task, l.Key.Attempt, l.offset, pieceSize)
		if err != nil {
			return errors.Join(lost, err)
		}
		if len(piece.Data) == 0 {
			return lost
		}
		if err := l.skip(w, piece.Offset); err != nil {
			return err
		}
		if err := l.show(w, piece.Data); err != nil {
			return err
		}
	}
}

// restOfArchive shows the archive from the offset to its end. Its reader puts a line where bytes are missing, so that
// what was read says nothing about the offset.
func (l *Log) restOfArchive(ctx context.Context, w io.Writer) error {
	have, err := l.archived(ctx)
	if err != nil || have.Size <= l.offset {
		return err
	}
	if have.Missing == 0 {
		return l.copyArchived(ctx, w, have.Size)
	}
	r, err := l.Archive.ReadLog(ctx, l.Key, l.offset)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	_, err = io.Copy(&shower{l, w}, r)
	l.offset = have.Size
	return err
}

// Last shows the last lines of what there is, and goes on from its end.
func (l *Log) Last(ctx context.Context, w io.Writer, lines int) error {
	text, end, err := l.lastArchived(ctx, lines)
	if err != nil {
		return err
	}
	for l.offset = end; ; {
		piece, err := l.Store.TailRead(ctx, l.Key.Job, l.Key.Task, l.Key.Attempt, l.offset, store.TailSize)
		if err != nil {
			return err
		}
		if len(piece.Data) == 0 {
			break
		}
		if piece.Offset > l.offset {
			text = append(text, missing(piece.Offset-l.offset, lastByte(text))...)
		}
		text = lastLines(append(text, piece.Data...), lines)
		l.offset = piece.Offset + int64(len(piece.Data))
	}
	l.last = lastByte(text)
	_, err = w.Write(text)
	return err
}

// lastArchived returns the last lines in the archive, and the offset of their end.
func (l *Log) lastArchived(ctx context.Context, lines int) ([]byte, int64, error) {
	for {
		have, err := l.archived(ctx)
		if err != nil || have.Size == 0 {
			return nil, 0, err
		}
		text, err := l.Archive.Tail(ctx, l.Key, lines)
		if err != nil {
			return nil, 0, err
		}
		after, err := l.archived(ctx)
		if err != nil || after.Size == have.Size { // nothing came in between, so the text ends there
			return text, have.Size, err
		}
	}
}

// Begin makes the byte at an offset the next one to show.
func (l *Log) Begin(offset int64) { l.offset, l.last = offset, 0 }

// Offset is how far the output was shown, in bytes.
func (l *Log) Offset() int64 { return l.offset }

func (l *Log) archived(ctx context.Context) (archive.LogInfo, error) {
	if l.Archive == nil {
		return archive.LogInfo{}, nil
	}
	return l.Archive.LogSize(ctx, l.Key)
}

func (l *Log) show(w io.Writer, data []byte) error {
	n, err := w.Write(data)
	if n > 0 {
		l.offset += int64(n)
		l.last = data[n-1]
	}
	return err
}

// skip tells that the bytes up to an offset are missing, if there are any.
func (l *Log) skip(w io.Writer, to int64) error {
	if to <= l.offset {
		return nil
	}
	_, err := io.WriteString(w, missing(to-l.offset, l.last))
	l.offset, l.last = to, '\n'
	return err
}

// missing is the line that stands for bytes that are not there; the archive writes the same.
func missing(n int64, last byte) string {
	line := fmt.Sprintf("[outlast: %d bytes are missing here]\n", n)
	if last != '\n' && last != 0 {
		return "\n" + line
	}
	return line
}

func lastByte(text []byte) byte {
	if len(text) == 0 {
		return 0
	}
	return text[len(text)-1]
}

// lastLines returns the last n lines of text. The last one counts even if it has no end yet.
func lastLines(text []byte, n int) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(text[:at], '\n')
		if i < 0 {
			return text
		}
		if n == 1 {
			return text[i+1:]
		}
		at = i
	}
	return nil
}

// shower counts what is written through it as shown.
type shower struct {
	log *Log
	w   io.Writer
}

func (s *shower) Write(p []byte) (int, error) {
	before := s.log.offset
	err := s.log.show(s.w, p)
	return int(s.log.offset - before), err
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Archive is where logs are kept for good.
type Archive interface {
	Chunks(ctx context.Context, key archive.LogKey, from int64) iter.Seq2[archive.Chunk, error]
	Last(ctx context.Context, key archive.LogKey, lines int) ([]archive.Chunk, error)
	Notice(ctx context.Context, id job.ID) (archive.Notice, error)
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
	asked     time.Time // when the archive was asked last
	holeSince time.Time // since when bytes are missing
}

// Live shows what a running attempt has written since the last call, and returns how many bytes.
func (l *Log) Live(ctx context.Context, out Out) (int64, error) {
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
			return l.offset - from, l.bridge(ctx, out, -1)
		case piece.Offset > l.offset:
			before := l.offset
			if err := l.bridge(ctx, out, piece.Offset); err != nil || l.offset == before {
				return l.offset - from, err
			}
			continue
		case len(piece.Data) == 0:
			return l.offset - from, nil
		}
		l.holeSince = time.Time{}
		if err := l.show(out, chunkOf(piece)); err != nil {
			return l.offset - from, err
		}
	}
}

// bridge shows what the archive has from the offset up to an offset, or to its end if that is negative. A hole that
// lasts is told and skipped, also where it lasts since the archive does not answer.
func (l *Log) bridge(ctx context.Context, out Out, to int64) error {
	before := l.offset
	var lost error
	for c, err := range l.archived(ctx) {
		if err != nil {
			lost = err
			break
		}
		if c.Data == nil && !c.Dropped || to >= 0 && c.From >= to { // what is missing may still come
			break
		}
		if to >= 0 && c.To > to {
			c = upTo(c, to)
		}
		if err := l.show(out, c); err != nil {
			return err
		}
	}
	switch {
	case l.offset > before:
		l.holeSince = time.Time{}
		return lost
	case to < 0:
		return lost
	case l.holeSince.IsZero():
		l.holeSince = time.Now()
		return lost
	case time.Since(l.holeSince) < patience:
		return lost
	}
	l.holeSince = time.Time{}
	if err := out.Note(fmt.Sprintf("[outlast: %d bytes are passed over here, to keep up with the output]\n", to-l.offset)); err != nil {
		return err
	}
	l.offset = to
	return lost
}

// Rest shows the rest of an attempt that is over.
func (l *Log) Rest(ctx context.Context, out Out) error {
	var lost error
	for c, err := range l.archived(ctx) {
		if err != nil {
			lost = err
			break
		}
		if err := l.show(out, c); err != nil {
			return err
		}
	}
	for {
		piece, err := l.Store.TailRead(ctx, l.Key.Job, l.Key.Task, l.Key.Attempt, l.offset, pieceSize)
		if err != nil {
			return errors.Join(lost, err)
		}
		if len(piece.Data) == 0 {
			return lost
		}
		if err := l.skip(out, piece.Offset); err != nil {
			return err
		}
		if err := l.show(out, chunkOf(piece)); err != nil {
			return err
		}
	}
}

// Last shows the last lines of what there is, and goes on from its end. If the archive does not answer, these are the tail's.
func (l *Log) Last(ctx context.Context, out Out, lines int) error {
	var last []archive.Chunk
	var lost error
	if l.Archive != nil {
		last, lost = l.Archive.Last(ctx, l.Key, lines)
	}
	if len(last) > 0 {
		l.offset = last[len(last)-1].To
	}
	for {
		piece, err := l.Store.TailRead(ctx, l.Key.Job, l.Key.Task, l.Key.Attempt, l.offset, store.TailSize)
		if err != nil {
			return errors.Join(lost, err)
		}
		if len(piece.Data) == 0 {
			break
		}
		if piece.Offset > l.offset && len(last) > 0 {
			last = append(last, archive.Chunk{From: l.offset, To: piece.Offset})
		}
		last = archive.LastLines(append(last, chunkOf(piece)), lines)
		l.offset = piece.Offset + int64(len(piece.Data))
	}
	for _, c := range last {
		l.offset = c.From
		if err := l.show(out, c); err != nil {
			return err
		}
	}
	return lost
}

// Begin makes the byte at an offset the next one to show.
func (l *Log) Begin(offset int64) { l.offset = offset }

// Offset is how far the output was shown, in bytes.
func (l *Log) Offset() int64 { return l.offset }

// archived reads what the archive has from the offset on.
func (l *Log) archived(ctx context.Context) iter.Seq2[archive.Chunk, error] {
	if l.Archive == nil {
		return func(func(archive.Chunk, error) bool) {}
	}
	return l.Archive.Chunks(ctx, l.Key, l.offset)
}

// show shows a chunk and goes on behind it.
func (l *Log) show(out Out, c archive.Chunk) error {
	var err error
	if c.Data == nil {
		err = out.Note(c.Note())
	} else {
		err = out.Bytes(c.From, c.Data, c.Marks)
	}
	if err == nil {
		l.offset = c.To
	}
	return err
}

// skip tells that the bytes up to an offset are missing, if there are any.
func (l *Log) skip(out Out, to int64) error {
	if to <= l.offset {
		return nil
	}
	return l.show(out, archive.Chunk{From: l.offset, To: to})
}

// chunkOf is a piece of a live tail like one of the archive.
func chunkOf(p store.Piece) archive.Chunk {
	return archive.Chunk{From: p.Offset, To: p.Offset + int64(len(p.Data)), Data: p.Data, Marks: p.Marks}
}

// upTo is the part of a chunk before an offset.
func upTo(c archive.Chunk, to int64) archive.Chunk {
	if c.Data != nil {
		c.Data = c.Data[:to-c.From]
	}
	c.To = to
	return c
}

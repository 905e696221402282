package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
)

// Chunk is a part of a log: the bytes From up to To, or the word that they are not there.
type Chunk struct {
	From, To int64
	Data     []byte     // nil if they are not there
	Marks    []job.Mark // of the data, and perhaps of what lies around it
	Dropped  bool       // they are not there because the log was too long
}

// Note is the line that stands for bytes that are not there; "" if they are.
func (c Chunk) Note() string {
	switch {
	case c.Data != nil:
		return ""
	case c.Dropped:
		return fmt.Sprintf("[outlast: %d bytes were dropped here, the log is longer than its limit]\n", c.To-c.From)
	default:
		return fmt.Sprintf("[outlast: %d bytes are missing here]\n", c.To-c.From)
	}
}

// cut is the part of a chunk from a position on.
func (c Chunk) cut(from int64) Chunk {
	if c.Data != nil {
		c.Data = c.Data[from-c.From:]
	}
	c.From = from
	return c
}

// Chunks reads a log from a position on, part by part. Errors end it.
//
// It reads what is there when it comes to it: it does not wait for more, and the caller who follows a log begins
// again where [Archive.LogSize] said that it ends.
func (a *Archive) Chunks(ctx context.Context, key LogKey, from int64) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if from < 0 {
			yield(Chunk{}, fmt.Errorf("archive %s: read the log of %s from %d: out of bounds", a.name, key, from))
			return
		}
		segments, err := a.segments(ctx, key)
		pieces := stitch(segments, from)
		for err == nil && len(pieces) > 0 {
			var c Chunk
			c, err = a.chunk(ctx, key, pieces[0])
			switch {
			case err == nil:
				if !yield(c, nil) {
					return
				}
				pieces = pieces[1:]
			case errors.Is(err, ErrNotFound):
				pieces, err = a.replan(ctx, key, pieces[0], err)
			}
		}
		if err != nil {
			yield(Chunk{}, err)
		}
	}
}

// chunk loads a piece.
func (a *Archive) chunk(ctx context.Context, key LogKey, p piece) (Chunk, error) {
	c := Chunk{From: p.from, To: p.to, Dropped: p.is == isDropped}
	if p.is != isThere {
		return c, nil
	}
	data, marks, err := a.load(ctx, key, p.segment)
	if err != nil {
		return Chunk{}, err
	}
	c.Data, c.Marks = data[p.from-p.segment.from:p.to-p.segment.from], marks
	return c, nil
}

// replan looks again after a segment was gone, since PutLog replaces a segment by one that holds more, and DropLog by one
// that holds nothing.
func (a *Archive) replan(ctx context.Context, key LogKey, lost piece, err error) ([]piece, error) {
	segments, listErr := a.segments(ctx, key)
	if listErr != nil {
		return nil, listErr
	}
	if slices.Contains(segments, lost.segment) {
		return nil, err // listed, yet not there
	}
	return stitch(segments, lost.from), nil
}

// LastLines cuts chunks that follow each other down to their last n lines. A line without an end counts, and so does the
// note for what is not there, which stands on a line of its own.
func LastLines(chunks []Chunk, n int) []Chunk {
	if n <= 0 {
		return nil
	}
	open := false // something of the line that is counted next was seen
	for i := len(chunks) - 1; i >= 0; i-- {
		c := chunks[i]
		if c.Data == nil {
			if open {
				if n--; n == 0 {
					return chunks[i+1:]
				}
			}
			if n--; n == 0 {
				return chunks[i:]
			}
			open = false
			continue
		}
		for end := len(c.Data); end > 0; open = true {
			at := bytes.LastIndexByte(c.Data[:end], '\n')
			if open || at < end-1 {
				if at < 0 {
					break // the line goes on in the chunk before
				}
				if n--; n == 0 {
					if at+1 == len(c.Data) {
						return chunks[i+1:]
					}
					return append([]Chunk{c.cut(c.From + int64(at) + 1)}, chunks[i+1:]...)
				}
			}
			end = at
		}
		open = open || len(c.Data) > 0
	}
	return chunks
}

// Text is what chunks that follow each other look like, after a text that ended with a byte; 0 if there was none.
func Text(chunks []Chunk, last byte) []byte {
	var b bytes.Buffer
	open := last != '\n' && last != 0 // a line was begun
	for _, c := range chunks {
		if c.Data == nil && open {
			b.WriteByte('\n')
		}
		b.Write(c.Data)
		b.WriteString(c.Note())
		if b.Len() > 0 {
			open = b.Bytes()[b.Len()-1] != '\n'
		}
	}
	return b.Bytes()
}

package archive

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// tailTries is how often Tail looks again after a segment was replaced under its hands. That happens to the last
// segment only, and not often.
const tailTries = 3

// Tail returns the last n lines of a log, exactly as they stand at the end of what [Archive.ReadLog] reads.
func (a *Archive) Tail(ctx context.Context, key LogKey, n int) ([]byte, error) {
	chunks, err := a.Last(ctx, key, n)
	return Text(chunks, 0), err
}

// Last returns the last n lines of a log. It loads no more segments than hold them. The last line counts even if it has no
// end yet.
func (a *Archive) Last(ctx context.Context, key LogKey, n int) ([]Chunk, error) {
	if n <= 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		chunks, err := a.last(ctx, key, n)
		if errors.Is(err, ErrNotFound) && try < tailTries {
			continue
		}
		return chunks, err
	}
}

func (a *Archive) last(ctx context.Context, key LogKey, n int) ([]Chunk, error) {
	segments, err := a.segments(ctx, key)
	if err != nil {
		return nil, err
	}
	pieces := stitch(segments, 0)
	var chunks []Chunk // from the end
	ends := 0          // of lines among them
	for i := len(pieces) - 1; i >= 0 && ends <= n; i-- {
		c, err := a.chunk(ctx, key, pieces[i])
		if err != nil {
			return nil, err
		}
		chunks = append(chunks, c)
		ends += bytes.Count(c.Data, []byte("\n"))
		if c.Data == nil {
			ends++
		}
	}
	slices.Reverse(chunks)
	return LastLines(chunks, n), nil
}

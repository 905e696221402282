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

// Tail returns the last n lines of a log, exactly as they stand at the end of what [Archive.ReadLog] reads. It loads no
// more segments than hold them. The last line counts even if it has no end yet.
func (a *Archive) Tail(ctx context.Context, key LogKey, n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		text, err := a.tail(ctx, key, n)
		if errors.Is(err, ErrNotFound) && try < tailTries {
			continue
		}
		return text, err
	}
}

func (a *Archive) tail(ctx context.Context, key LogKey, n int) ([]byte, error) {
	segments, err := a.segments(ctx, key)
	if err != nil {
		return nil, err
	}
	pieces := stitch(segments, 0)
	var blocks [][]byte // from the end
	ends := 0           // of lines, in blocks
	for i := len(pieces) - 1; i >= 0 && ends <= n; i-- {
		block, err := a.block(ctx, key, pieces[i:], i == 0)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
		ends += bytes.Count(block, []byte("\n"))
	}
	slices.Reverse(blocks)
	return lastLines(bytes.Join(blocks, nil), n), nil
}

// block is the text of the first piece together with the line for a missing one after it, since that line depends on
// how the text before it ends. A missing piece has a text of its own only at the start of the log.
func (a *Archive) block(ctx context.Context, key LogKey, pieces []piece, start bool) ([]byte, error) {
	if pieces[0].missing {
		if start {
			return []byte(missing(pieces[0])), nil
		}
		return nil, nil
	}
	text, err := a.piece(ctx, key, pieces[0])
	if err != nil || len(pieces) == 1 || !pieces[1].missing {
		return text, err
	}
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(text, missing(pieces[1])...), nil
}

// lastLines cuts text down to its last n lines.
func lastLines(text []byte, n int) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range n {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

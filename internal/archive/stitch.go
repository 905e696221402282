package archive

import (
	"cmp"
	"slices"
)

// segment is an object that holds the bytes from..to of a log.
type segment struct {
	from, to int64
}

// piece is a part of a log as it is read: the bytes from..to, out of a segment or missing.
type piece struct {
	from, to int64
	segment  segment
	missing  bool
}

// stitch says how to read a log from a position to its end: pieces that follow each other without overlap, from as
// few segments as possible. The segments need not be sorted. Bytes that no segment has make a missing piece.
func stitch(segments []segment, from int64) []piece {
	sorted := slices.SortedFunc(slices.Values(segments), func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	var pieces []piece
	for at := from; ; {
		var best segment // reaches furthest of those that hold the byte at
		for len(sorted) > 0 && sorted[0].from <= at {
			if sorted[0].to > best.to {
				best = sorted[0]
			}
			sorted = sorted[1:]
		}
		switch {
		case best.to > at:
			pieces = append(pieces, piece{from: at, to: best.to, segment: best})
			at = best.to
		case len(sorted) == 0:
			return pieces
		default:
			pieces = append(pieces, piece{from: at, to: sorted[0].from, missing: true})
			at = sorted[0].from
		}
	}
}

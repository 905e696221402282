package archive

import (
	"cmp"
	"slices"
)

// segment is an object that holds the bytes from..to of a log, or says that they were dropped.
type segment struct {
	from, to int64
	dropped  bool
}

// piece is a part of a log as it is read: the bytes from..to, out of a segment or not there.
type piece struct {
	from, to int64
	segment  segment // if they are there
	is       presence
}

// presence says whether bytes are there, and if not, why.
type presence int

const (
	isThere presence = iota
	isMissing
	isDropped
)

// stitch says how to read a log from a position to its end: pieces that follow each other without overlap, from as
// few segments as possible. The segments need not be sorted. Bytes that no segment has make a piece that is dropped or
// missing.
func stitch(segments []segment, from int64) []piece {
	data, dropped := sorted(segments)
	end := from
	for _, s := range dropped {
		end = max(end, s.to)
	}
	var pieces []piece
	for at := from; ; {
		var best segment // reaches furthest of those that hold the byte at
		for len(data) > 0 && data[0].from <= at {
			if data[0].to > best.to {
				best = data[0]
			}
			data = data[1:]
		}
		switch {
		case best.to > at:
			pieces = append(pieces, piece{from: at, to: best.to, segment: best})
			at = best.to
		case len(data) == 0:
			return append(pieces, absent(dropped, at, end)...)
		default:
			pieces = append(pieces, absent(dropped, at, data[0].from)...)
			at = data[0].from
		}
	}
}

// sorted separates the segments that hold data from those that tell of what was dropped. Both are sorted by where they
// begin, and the longer one first.
func sorted(segments []segment) (data, dropped []segment) {
	all := slices.SortedFunc(slices.Values(segments), func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	for _, s := range all {
		if s.dropped {
			dropped = append(dropped, s)
		} else {
			data = append(data, s)
		}
	}
	return data, dropped
}

// absent divides the bytes from..to, which no segment has, into what was dropped and what is missing.
func absent(dropped []segment, from, to int64) []piece {
	var pieces []piece
	add := func(end int64, is presence) {
		end = min(end, to)
		switch last := len(pieces) - 1; {
		case end <= from:
			return
		case last >= 0 && pieces[last].is == is:
			pieces[last].to = end
		default:
			pieces = append(pieces, piece{from: from, to: end, is: is})
		}
		from = end
	}
	for _, s := range dropped {
		add(s.from, isMissing)
		add(s.to, isDropped)
	}
	add(to, isMissing)
	return pieces
}

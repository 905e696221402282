package archive

import "testing"

// Ensure that however segments lie, what is read of them follows each other from the position to the end without a gap or
// an overlap, and takes bytes only where a segment has them.
func FuzzStitch(f *testing.F) {
	f.Add([]byte{0, 5, 0, 3, 8, 0, 10, 12, 1}, int64(2))
	f.Add([]byte{0, 200, 1, 10, 20, 0, 190, 255, 0}, int64(0))
	f.Fuzz(func(t *testing.T, spans []byte, from int64) {
		if from < 0 {
			return
		}
		from %= 300
		var segments []segment
		end := from
		for ; len(spans) >= 3; spans = spans[3:] {
			s := segment{from: int64(min(spans[0], spans[1])), to: int64(max(spans[0], spans[1])), dropped: spans[2]%2 == 1}
			if s.from < s.to {
				segments = append(segments, s)
				end = max(end, s.to)
			}
		}
		at := from
		for _, p := range stitch(segments, from) {
			if p.from != at || p.to <= p.from {
				t.Fatalf("a piece %d..%d after %d", p.from, p.to, at)
			}
			if p.is == isThere && (p.segment.dropped || p.segment.from > p.from || p.segment.to < p.to) {
				t.Fatalf("the piece %d..%d is not in %+v", p.from, p.to, p.segment)
			}
			at = p.to
		}
		if at != end {
			t.Fatalf("it ends at %d, not at %d", at, end)
		}
	})
}

// Ensure that no segment that somebody else has written makes the reader fall over.
func FuzzMarks(f *testing.F) {
	f.Add([]byte("\x5e\x2a\x4d\x18\x10\x00\x00\x000123456789abcdef"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if got := unpackMarks(packed); len(got)*16 > len(packed) {
			t.Errorf("%d marks of %d bytes", len(got), len(packed))
		}
	})
}

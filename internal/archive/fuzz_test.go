package archive

import (
	"bytes"
	"strings"
	"testing"
)

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

// Ensure that the last lines of a log are those of the whole text, byte for byte, wherever its pieces begin, whatever is in
// them, and wherever pieces are missing.
func FuzzLastLines(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree"), []byte{2, 5}, 2)
	f.Add([]byte("one\n\n\x00\xff\xfe\x1b[2J\r\n\ntwo\n"), []byte{0, 1, 130, 3, 200}, 3)
	f.Add([]byte("no end"), []byte{1, 1, 1, 1}, 1)
	f.Add([]byte("\n\n\n"), []byte{129, 129}, 9)
	f.Fuzz(func(t *testing.T, text, cuts []byte, n int) {
		n = max(0, n) % 20
		var chunks []Chunk
		for at := int64(0); at < int64(len(text)); {
			c := Chunk{From: at, To: int64(len(text)), Data: text[at:]}
			if len(cuts) > 0 {
				c.To, c.Data = min(c.To, at+1+int64(cuts[0]&127)), nil
				if cuts[0] < 128 {
					c.Data = text[at:c.To]
				}
				cuts = cuts[1:]
			}
			chunks, at = append(chunks, c), c.To
		}
		lines := strings.SplitAfter(string(Text(chunks, 0)), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		want := strings.Join(lines[max(0, len(lines)-n):], "")
		last := LastLines(append([]Chunk(nil), chunks...), n)
		if got := Text(last, 0); !bytes.Equal(got, []byte(want)) {
			t.Fatalf("the last %d lines are %q, want %q", n, got, want)
		}
		for i := 1; i < len(last); i++ {
			if last[i].From != last[i-1].To {
				t.Fatalf("piece %d begins at %d, the one before ends at %d", i, last[i].From, last[i-1].To)
			}
		}
	})
}

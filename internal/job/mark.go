package job

import (
	"encoding/binary"
	"time"
)

// MarkKind says what a mark tells.
type MarkKind uint8

// The kinds of marks.
const (
	MarkTime  MarkKind = iota // the bytes before Offset had been written at Value, Unix ms by our clock
	MarkSetup                 // setup begins with the byte at Offset, at Value
	MarkRun                   // run begins with the byte at Offset, at Value
	MarkSkew                  // from Offset on the node's clock is Value ms ahead of ours
)

// Mark is a place in the log of an attempt, and what is known of it. Marks are kept beside the bytes, which stay exactly
// what the user's code has written.
type Mark struct {
	Offset int64
	Kind   MarkKind
	Value  int64
}

// Time is the time that a mark tells.
func (m Mark) Time() time.Time { return time.UnixMilli(m.Value) }

// MarkSize is the length of an encoded mark.
const MarkSize = 16

// AppendMarks encodes marks: the offset and the value with the kind in its lowest bits, eight bytes each.
func AppendMarks(b []byte, marks ...Mark) []byte {
	for _, m := range marks {
		b = binary.BigEndian.AppendUint64(b, uint64(m.Offset))
		b = binary.BigEndian.AppendUint64(b, uint64(m.Value)<<2|uint64(m.Kind))
	}
	return b
}

// ParseMarks decodes marks. What is left over at the end is not a mark.
func ParseMarks(b []byte) []Mark {
	var marks []Mark
	for ; len(b) >= MarkSize; b = b[MarkSize:] {
		value := binary.BigEndian.Uint64(b[8:])
		marks = append(marks, Mark{
			Offset: int64(binary.BigEndian.Uint64(b)), Kind: MarkKind(value & 3), Value: int64(value) >> 2,
		})
	}
	return marks
}

// MarksOf selects the marks of the bytes from..to: the times of when they were written, with the first one from to on, the
// stages and clocks that begin with one of them. The marks are sorted by offset.
func MarksOf(marks []Mark, from, to int64) []Mark {
	var of []Mark
	timed := false
	for _, m := range marks {
		switch {
		case m.Kind == MarkTime && m.Offset > from && !timed:
			timed = m.Offset >= to
			of = append(of, m)
		case m.Kind != MarkTime && m.Offset >= from && m.Offset < to:
			of = append(of, m)
		}
	}
	return of
}

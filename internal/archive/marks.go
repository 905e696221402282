package archive

import (
	"encoding/binary"

	"github.com/outlast-dev/outlast/internal/job"
)

// skippable begins a frame that every decoder of zstd passes over (RFC 8878, 3.1.2).
const skippable = 0x184D2A5E

// packMarks is a skippable frame with marks, nothing for none.
func packMarks(marks []job.Mark) []byte {
	if len(marks) == 0 {
		return nil
	}
	b := binary.LittleEndian.AppendUint32(nil, skippable)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(marks)*job.MarkSize))
	return job.AppendMarks(b, marks...)
}

// unpackMarks reads the marks at the front of a segment.
func unpackMarks(packed []byte) []job.Mark {
	const head = 8
	if len(packed) < head || binary.LittleEndian.Uint32(packed) != skippable {
		return nil
	}
	size := int64(binary.LittleEndian.Uint32(packed[4:]))
	if size > int64(len(packed)-head) {
		return nil
	}
	return job.ParseMarks(packed[head : head+size])
}

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// gap is what of a log was dropped to keep it within its limit: bytes From up to To, of its middle. The head tells how
// a run began, the tail how it ended.
//
// The file keeps its length: the kernel is asked to give back the room of the gap, so that whoever writes is not
// disturbed and every byte stays at its offset. Where a file system cannot do that the file is cut off at From, and from
// then on Shift bytes lie before a byte of the log that do not lie before it in the file.
type gap struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Shift int64 `json:"shift,omitempty"`
	// Cutting is the length of the file while it is being cut off; 0 otherwise. What can be read then makes no sense.
	Cutting int64 `json:"cutting,omitempty"`
}

const (
	gapAlign = 4 << 10 // a gap begins and ends where a page does: parts of pages are not given back
	gapRoom  = 512     // bytes of a gap record
)

// size is the length of the log, given that of its file.
func (g gap) size(file int64) int64 { return file + g.Shift }

// skip moves an offset of the log out of the gap.
func (g gap) skip(offset int64) int64 {
	if offset >= g.From && offset < g.To {
		return g.To
	}
	return offset
}

// inFile is where a byte of the log outside the gap is in the file.
func (g gap) inFile(offset int64) int64 {
	if offset < g.To {
		return offset
	}
	return offset - g.Shift
}

// span says how many bytes can be read from an offset outside the gap, up to the gap or the end.
func (g gap) span(offset, size int64) int64 {
	if offset < g.From {
		return min(g.From, size) - offset
	}
	return size - offset
}

// headOf is the part of the limit that the beginning of a log gets.
func headOf(limit int64) int64 { return limit / 4 / gapAlign * gapAlign }

// grown is the gap that a log of that size needs to stay within the limit. It grows in steps of an eighth of the limit.
func (g gap) grown(size, limit int64) (gap, bool) {
	if limit <= 0 || size-(g.To-g.From) <= limit {
		return g, false
	}
	head := headOf(limit)
	tail := limit - head - limit/8
	next := gap{From: head, To: (size - tail) / gapAlign * gapAlign, Shift: g.Shift}
	return next, next.To > max(g.To, next.From)
}

// gap reads the record of what was dropped. One that is just being written is read again.
func (d dir) gap() gap {
	const tries = 100
	for range tries {
		text, err := readBounded(d.path(fileGap), 2*gapRoom)
		if err != nil || len(text) != 2*gapRoom {
			return gap{}
		}
		if one, two := text[:gapRoom], text[gapRoom:]; bytes.Equal(one, two) {
			var g gap
			if json.Unmarshal(one, &g) != nil || g.From < 0 || g.To < g.From || g.Shift < 0 || g.Shift > g.To {
				return gap{}
			}
			return g
		}
	}
	return gap{}
}

// setGap writes the record in its place, twice: no room is needed for it, and half of it is told from the whole.
func (d dir) setGap(g gap) error {
	text, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode the gap of the log: %w", err)
	}
	text = append(text, bytes.Repeat([]byte{' '}, gapRoom-len(text))...)
	f, err := os.OpenFile(d.path(fileGap), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the gap of the log: %w", err)
	}
	_, err = f.WriteAt(append(text, text...), 0)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write the gap of the log: %w", err)
	}
	return nil
}

// punch gives back the room of a part of a file, which then reads as zeros.
func punch(f *os.File, from, to int64) error {
	const keepSize, punchHole = 1, 2 // FALLOC_FL_*
	return syscall.Fallocate(int(f.Fd()), punchHole|keepSize, from, to-from)
}

// cannotPunch reports whether a file system does not know how to do that.
func cannotPunch(err error) bool {
	return errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL)
}

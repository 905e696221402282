package agent

import (
	"encoding/binary"
	"os"
	"sort"
	"time"
)

// Mark is a place in the log. Without a Stage it says that all bytes before Offset had been written At that time, with
// one, that the stage begins with the byte at Offset.
type Mark struct {
	Offset int64  `json:"o"`
	At     int64  `json:"t"` // Unix ms by the node's clock
	Stage  string `json:"s,omitempty"`
}

const (
	markSize = 16             // bytes of a mark in its file: the offset, and the time with the stage in its lowest bits
	maxMarks = 1000           // in one answer
	mostRead = maxMarks + 100 // looked at for one answer
)

// markStages are the stages as the file numbers them.
var markStages = []string{"", stageSetup, stageRun}

func (m Mark) encode() []byte {
	stage := 0
	for i, name := range markStages {
		if name == m.Stage {
			stage = i
		}
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markSize), uint64(m.Offset))
	return binary.BigEndian.AppendUint64(b, uint64(m.At)<<2|uint64(stage))
}

func decodeMark(b []byte) Mark {
	at := binary.BigEndian.Uint64(b[8:])
	m := Mark{Offset: int64(binary.BigEndian.Uint64(b)), At: int64(at >> 2)}
	if n := int(at & 3); n < len(markStages) {
		m.Stage = markStages[n]
	}
	return m
}

// markEvery is the time between two marks of a log that has so many: the file of a run that prints for a year stays small.
func markEvery(marks int64) time.Duration {
	switch {
	case marks < 10_000: // almost three hours
		return time.Second
	case marks < 20_000: // a day
		return 10 * time.Second
	case marks < 30_000: // a week
		return time.Minute
	default:
		return 10 * time.Minute
	}
}

// marker writes the marks of one run. It is the supervisor's; what it cannot write is left out.
type marker struct {
	file   *os.File // nil if it cannot be had
	count  int64
	offset int64 // that was marked last
	at     time.Time
}

func newMarker(d dir) *marker {
	f, err := os.OpenFile(d.path(fileMarks), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return &marker{}
	}
	return &marker{file: f}
}

// stage marks where a stage begins.
func (m *marker) stage(name string, offset int64, now time.Time) {
	if m.offset < offset {
		m.put(Mark{Offset: offset, At: now.UnixMilli()})
	}
	m.put(Mark{Offset: offset, At: now.UnixMilli(), Stage: name})
}

// grew marks the size of the log, if it is time to. It returns when to call again, the zero time for not before the log
// grows.
func (m *marker) grew(size int64, now time.Time) time.Time {
	if size <= m.offset {
		return time.Time{}
	}
	if next := m.at.Add(markEvery(m.count)); now.Before(next) {
		return next
	}
	m.at = now
	m.put(Mark{Offset: size, At: now.UnixMilli()})
	return time.Time{}
}

// last marks the end of the log.
func (m *marker) last(size int64, now time.Time) {
	if size > m.offset {
		m.put(Mark{Offset: size, At: now.UnixMilli()})
	}
}

func (m *marker) put(mark Mark) {
	m.offset = max(m.offset, mark.Offset)
	if m.file == nil {
		return
	}
	if _, err := m.file.WriteAt(mark.encode(), m.count*markSize); err == nil {
		m.count++
	}
}

// marks reads the marks for the bytes from..to of the log, at most limit of them: the times of when these were written, and
// the stages that begin with one of them. The last time is for the byte before to: that of a later mark, or now. Where there
// are more it returns the offset of the last one, else to. The user's code may have written anything into the file: from
// where it makes no sense it counts as ended.
func (d dir) marks(from, to int64, limit int, now time.Time) ([]Mark, int64) {
	if from >= to {
		return nil, to
	}
	f, err := os.Open(d.path(fileMarks))
	if err != nil {
		return nil, to
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, to
	}
	n := int(info.Size() / markSize)
	read := func(i int) Mark {
		var b [markSize]byte
		_, _ = f.ReadAt(b[:], int64(i)*markSize) // zeros where it cannot be read
		return decodeMark(b[:])
	}
	var found []Mark
	first := sort.Search(n, func(i int) bool { return read(i).Offset >= from })
	for i, before := first, from; i < min(n, first+mostRead); i++ {
		mark := read(i)
		if mark.Offset < before {
			break
		}
		before = mark.Offset
		switch {
		case mark.Offset > to || mark.Offset == to && mark.Stage != "":
			return timed(found, to, mark.At), to
		case mark.Offset == from && mark.Stage == "": // of the bytes before
			continue
		case len(found) >= limit && found[len(found)-1].Offset > from && mark.Offset > found[len(found)-1].Offset:
			return found, found[len(found)-1].Offset
		}
		found = append(found, mark)
	}
	return timed(found, to, now.UnixMilli()), to
}

// timed adds the time by which the byte before an offset was written, unless the marks end with it.
func timed(marks []Mark, offset, at int64) []Mark {
	for _, m := range marks {
		if m.Stage == "" && m.Offset == offset {
			return marks
		}
	}
	return append(marks, Mark{Offset: offset, At: at})
}

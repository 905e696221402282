package tasks

import (
	"context"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/planted"
	"github.com/outlast-dev/outlast/internal/seal"
)

// logReader reads the log of an attempt on its node, as it may be seen elsewhere: without secrets (G12), and with times by
// our clock.
type logReader struct {
	poll   func(offset, limit int64) (agent.Status, error)
	masker func(context.Context) (*seal.Masker, error)
	mask   *seal.Masker // as far as it is known; nil before
	now    func() job.Time
	final  bool // nothing comes after what there is: nothing is held back
}

// logPiece is a part of a log.
type logPiece struct {
	offset int64
	data   []byte
	marks  []job.Mark
	size   int64      // of the whole log on the node
	gap    *agent.Gap // what the node has dropped of it
}

func (p logPiece) end() int64 { return p.offset + int64(len(p.data)) }

// maskError says that the secrets of a log are not known, so that it cannot be moved.
type maskError struct{ err error }

func (e *maskError) Error() string {
	return "the output stays on its machine, its secrets cannot be hidden: " + e.err.Error()
}
func (e *maskError) Unwrap() error { return e.err }

// ask polls for the log from an offset on, with what must be seen before it. An answer ends where something was dropped: if
// that is before the offset, what comes before the gap says nothing of what comes behind it.
func (r *logReader) ask(offset, limit int64) (agent.Status, error) {
	before := min(offset, int64(r.mask.Context()))
	s, err := r.poll(offset-before, min(limit+before, agent.MaxLog))
	if err == nil && before > 0 && s.LogOffset+int64(len(s.Log)) <= offset && offset < s.LogSize {
		s, err = r.poll(offset, limit)
	}
	return s, err
}

// read reads the log from an offset on.
func (r *logReader) read(ctx context.Context, offset, limit int64) (logPiece, error) {
	s, err := r.ask(offset, limit)
	if err != nil {
		return logPiece{}, err
	}
	return r.take(ctx, s, offset, limit)
}

// take makes a piece of an answer to ask. It may have to ask once more: only when there is a log it is found out what is to
// be hidden in it.
func (r *logReader) take(ctx context.Context, s agent.Status, offset, limit int64) (logPiece, error) {
	if len(s.Log) == 0 || planted.On(planted.G11) && s.State == agent.Exited {
		return logPiece{offset: max(s.LogOffset, offset), size: s.LogSize, gap: s.LogGap}, nil
	}
	known := r.mask.Context()
	var err error
	if r.mask, err = r.masker(ctx); err != nil {
		if isStoreError(err) {
			return logPiece{}, err
		}
		return logPiece{}, &maskError{err}
	}
	if r.mask.Context() > known && offset > 0 {
		if s, err = r.ask(offset, limit); err != nil {
			return logPiece{}, err
		}
	}
	return r.piece(s, offset), nil
}

// piece hides what is to be hidden, and cuts off what was only asked for to see that.
func (r *logReader) piece(s agent.Status, offset int64) logPiece {
	end := s.LogOffset + int64(len(s.Log))
	torn := s.LogOffset > max(offset-int64(r.mask.Context()), 0)
	last := end >= s.LogSize && (r.final || s.State == agent.Exited || s.State == agent.Lost)
	if s.LogGap != nil && end == s.LogGap.From { // what came next was dropped
		last = true
	}
	end = s.LogOffset + int64(r.mask.Mask(s.Log, torn, last))
	p := logPiece{offset: max(offset, s.LogOffset), size: s.LogSize, gap: s.LogGap}
	if end > p.offset {
		p.data = s.Log[p.offset-s.LogOffset : end-s.LogOffset]
		p.marks = r.marks(s, p)
	}
	return p
}

// marks are those of a piece, by our clock, with the difference of the clocks at its beginning.
func (r *logReader) marks(s agent.Status, p logPiece) []job.Mark {
	if s.Clock == 0 { // an agent that does not know of marks
		return nil
	}
	skew := s.Clock - int64(r.now())
	marks := []job.Mark{{Offset: p.offset, Kind: job.MarkSkew, Value: skew}}
	for _, m := range s.LogMarks {
		kind := map[string]job.MarkKind{"": job.MarkTime, "setup": job.MarkSetup, "run": job.MarkRun}[m.Stage]
		marks = append(marks, job.Mark{Offset: m.Offset, Kind: kind, Value: m.At - skew})
	}
	return timedTo(job.MarksOf(marks, p.offset, p.end()), p.end())
}

// timedTo makes the last time that of the byte before an offset: what is held back gets another one when it comes.
func timedTo(marks []job.Mark, end int64) []job.Mark {
	for i, m := range marks {
		if m.Kind == job.MarkTime && m.Offset > end {
			marks[i].Offset = end
		}
	}
	return marks
}

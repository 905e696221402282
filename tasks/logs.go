package tasks

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
)

// A log travels node → live tail in Redis → archive. The tail is bounded and is for whoever follows; the archive
// has all of it that the node keeps. The archive is written in pieces, as the job runs: when enough has gathered, when the
// run has ended, and at least twice a minute.
//
// A run that prints faster than a look may move has its newest output in the tail all the same; the archive goes on from
// where it is, straight from the node, and catches up when the run is quiet, at the latest at the end.
const (
	// DefaultLogLimit is how much of an attempt's log its node keeps, and so the archive.
	DefaultLogLimit = 256 << 20

	pollBytes   = 64 << 10           // of the log in an answer of the agent, for the tail: it cuts nothing that is not archived
	moreBytes   = 256 << 10          // in one that goes straight to the archive
	lookBytes   = 1 << 20            // of the log in one look: more is left for the next one
	lagBytes    = 8 << 20            // that the tail may be behind; then it goes on with the newest
	keepBytes   = store.TailSize / 4 // gathered in the tail before a piece goes to the archive
	keepEvery   = 30 * time.Second   // a piece goes to the archive also if it is small
	keepLimit   = 3 * time.Second    // for one write to the archive during a look, which has other things to do
	saveLimit   = 30 * time.Second   // for one at the end of an attempt: an archive that hangs is left to the next try
	unreachable = 2 * time.Second    // how long the end of an attempt waits for a machine that may be gone
)

// logTrip is the log of one attempt on its way.
type logTrip struct {
	w     *Worker
	id    job.ID
	head  *job.Head
	a     *job.Attempt
	probe *job.Probe // Tail and Kept are moved on here
	every time.Duration
	node  logReader

	patience time.Duration // for one write to the archive
	kept     int           // bytes archived on this trip
	gap      *agent.Gap    // what the node has dropped, as heard last
	refused  bool          // by the archive, on this trip
}

func (d *driver) logOf(a *job.Attempt, p *job.Probe) *logTrip {
	l := &logTrip{w: d.w, id: d.job.ID, head: &d.job.Head, a: a, probe: p, every: time.Duration(d.job.Look.Every) * time.Millisecond, patience: keepLimit}
	l.node = logReader{now: d.now, masker: func(ctx context.Context) (*seal.Masker, error) { return d.masker(ctx, a.Task) }}
	l.node.mask, _ = d.w.masks.peek(taskKey{d.job.ID, a.Task})
	return l
}

// from sets the node to read from.
func (l *logTrip) from(ctx context.Context, c *machine.Client, dir string) {
	l.node.poll = func(offset, limit int64) (agent.Status, error) { return c.Poll(ctx, dir, offset, limit) }
}

func (l *logTrip) key() archive.LogKey {
	return archive.LogOf(l.head, l.a.Task, l.a.Number)
}

// read reads the log on the node.
func (l *logTrip) read(ctx context.Context, offset, limit int64) (logPiece, error) {
	p, err := l.node.read(ctx, offset, limit)
	if err == nil && p.gap != nil {
		l.gap = p.gap
	}
	return p, err
}

// follow moves what the agent has sent, and what it still has, into the tail, and from there into the archive when it is
// time. An archive that does not take it is tried again at the next look.
func (l *logTrip) follow(ctx context.Context, s agent.Status) error {
	l.gap = s.LogGap
	p, err := l.node.take(ctx, s, l.probe.Tail, pollBytes)
	if err == nil && p.size-p.end() > lagBytes {
		p, err = l.newest(ctx, p.size)
	}
	for moved := 0; err == nil && len(p.data) > 0; {
		if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, p.offset, p.data, p.marks...); err != nil {
			return err
		}
		l.probe.Tail = p.end()
		if err := l.keep(ctx, keepBytes); err != nil {
			return err
		}
		if moved += len(p.data); moved >= lookBytes || l.probe.Tail >= p.size {
			break
		}
		p, err = l.read(ctx, l.probe.Tail, pollBytes)
	}
	if err == nil && (l.probe.State == job.RunExited || l.timeToKeep() || l.behind()) {
		err = l.keep(ctx, 1)
	}
	if err == nil && l.kept > 0 {
		err = l.drop(ctx)
	}
	return l.lookError(err)
}

// lookError is what of an error concerns a look: a node that stops answering over its log is asked again by the next one.
func (l *logTrip) lookError(err error) error {
	var hidden *maskError
	switch {
	case isStoreError(err):
		return err
	case errors.As(err, &hidden):
		l.w.log.Warn().Err(err).Int64("job", int64(l.id)).Msg("a log cannot be moved")
	}
	return nil
}

// newest reads the end of a log that the tail has fallen behind, from the beginning of a line if there is one.
func (l *logTrip) newest(ctx context.Context, size int64) (logPiece, error) {
	p, err := l.read(ctx, size-store.TailSize/2, pollBytes)
	if i := bytes.IndexByte(p.data, '\n') + 1; i > 0 && i < len(p.data) {
		p.offset, p.data = p.offset+int64(i), p.data[i:]
		p.marks = job.MarksOf(p.marks, p.offset, p.end())
	}
	return p, err
}

// timeToKeep reports whether this is the first look in a new half minute: whoever looks, that needs no memory.
func (l *logTrip) timeToKeep() bool {
	at, step := int64(l.probe.At), keepEvery.Milliseconds()
	return at/step != (at-l.every.Milliseconds())/step
}

// behind reports whether there are bytes that neither the archive has nor the tail can still have, as after a burst: whoever
// reads the log would find a hole, so the archive catches up at every look, also of a run that is quiet now.
func (l *logTrip) behind() bool { return l.probe.Tail-l.probe.Kept > store.TailSize }

// keep moves the log from Kept on to the archive, if at least that many bytes have gathered: from the tail, or from the
// node if the tail has moved on, as it does while the archive is away. What a look may move is bounded.
func (l *logTrip) keep(ctx context.Context, atLeast int64) error {
	for l.probe.Tail-l.probe.Kept >= max(atLeast, 1) && l.kept < 2*lookBytes && !l.refused {
		tail, err := l.w.store.TailRead(ctx, l.id, l.a.Task, l.a.Number, l.probe.Kept, store.TailSize)
		if err != nil {
			return err
		}
		p := logPiece{offset: tail.Offset, data: tail.Data, marks: tail.Marks}
		if len(p.data) == 0 || p.offset > l.probe.Kept {
			if p, err = l.read(ctx, l.probe.Kept, moreBytes); err != nil || len(p.data) == 0 {
				return err // the next look tries again
			}
		}
		if err := l.put(ctx, p); err != nil {
			l.refuse(err)
		}
	}
	return nil
}

// refuse notes that the archive did not do what was asked: one try a look, since an archive that hangs must not hold up what
// the look is for.
func (l *logTrip) refuse(err error) {
	l.refused = true
	l.w.log.Warn().Err(err).Int64("job", int64(l.id)).Msg("cannot archive a piece of log now")
}

// put writes a piece of the log, from Kept on or after a gap, to the archive.
func (l *logTrip) put(ctx context.Context, p logPiece) error {
	ctx, done := context.WithTimeout(ctx, l.patience)
	defer done()
	if err := l.w.archive.PutLog(ctx, l.key(), p.offset, p.data, job.MarksOf(p.marks, p.offset, p.end())...); err != nil {
		return err
	}
	l.probe.Kept = p.end()
	l.kept += len(p.data)
	return nil
}

// drop drops from the archive what the node has dropped: so it stays within the same limit, and says what is gone. What the
// archive does not have yet is left to a later look.
func (l *logTrip) drop(ctx context.Context) error {
	if l.gap == nil || l.refused || l.probe.Kept < l.gap.To {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, l.patience)
	defer done()
	if err := l.w.archive.DropLog(ctx, l.key(), l.gap.From, l.gap.To); err != nil {
		l.refuse(err)
	}
	return nil
}

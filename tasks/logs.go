package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/store"
)

// A log travels node → live tail in Redis → archive. The tail is bounded and is for whoever follows; the archive
// has all of it. The archive is written in pieces, as the job runs: when enough has gathered, when the run has ended,
// and at least twice a minute.
const (
	pollBytes   = 64 << 10           // of the log in one answer of the agent
	lookBytes   = 1 << 20            // of the log in one look: more is left for the next one
	keepBytes   = store.TailSize / 4 // gathered in the tail before a piece goes to the archive
	keepEvery   = 30 * time.Second   // a piece goes to the archive also if it is small
	saveBytes   = int64(1) << 30     // of the log at the end of an attempt; more is cut off, and said
	keepLimit   = 3 * time.Second    // for one write to the archive during a look, which has other things to do
	saveLimit   = time.Minute        // for one at the end of an attempt
	unreachable = 2 * time.Second    // how long the end of an attempt waits for a machine that may be gone
)

// logTrip is the log of one attempt on its way.
type logTrip struct {
	w     *Worker
	id    job.ID
	a     *job.Attempt
	probe *job.Probe // Tail and Kept are moved on here
	every time.Duration

	patience time.Duration // for one write to the archive
	kept     int           // bytes archived on this trip
	refused  bool          // by the archive, on this trip
}

func (d *driver) logOf(a *job.Attempt, p *job.Probe) *logTrip {
	return &logTrip{w: d.w, id: d.job.ID, a: a, probe: p, every: time.Duration(d.job.Look.Every) * time.Millisecond, patience: keepLimit}
}

func (l *logTrip) key() archive.LogKey {
	return archive.LogKey{Job: l.id, Task: l.a.Task, Attempt: l.a.Number}
}

// source reads the log on the node from an offset.
type source func(offset int64) (agent.Status, error)

// follow moves what the agent has sent, and what it still has, into the tail, and from there into the archive when it is
// time. An archive that does not take it is tried again at the next look.
func (l *logTrip) follow(ctx context.Context, s agent.Status, more source) error {
	for moved := 0; len(s.Log) > 0; {
		if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, s.LogOffset, s.Log); err != nil {
			return err
		}
		l.probe.Tail = s.LogOffset + int64(len(s.Log))
		if err := l.keep(ctx, keepBytes, more); err != nil {
			return err
		}
		if moved += len(s.Log); moved >= lookBytes || l.probe.Tail >= s.LogSize {
			break
		}
		next, err := more(l.probe.Tail)
		if err != nil {
			return nil //nolint:nilerr // the next look goes on from here
		}
		s = next
	}
	if l.probe.State == job.RunExited || l.timeToKeep() {
		return l.keep(ctx, 1, more)
	}
	return nil
}

// timeToKeep reports whether this is the first look in a new half minute: whoever looks, that needs no memory.
func (l *logTrip) timeToKeep() bool {
	at, step := int64(l.probe.At), keepEvery.Milliseconds()
	return at/step != (at-l.every.Milliseconds())/step
}

// keep moves the log from Kept on to the archive, if at least that many bytes have gathered: from the tail, or from the
// node if the tail has moved on, as it does while the archive is away. What a look may move is bounded.
func (l *logTrip) keep(ctx context.Context, atLeast int64, more source) error {
	for l.probe.Tail-l.probe.Kept >= max(atLeast, 1) && l.kept < 2*lookBytes && !l.refused {
		piece, err := l.w.store.TailRead(ctx, l.id, l.a.Task, l.a.Number, l.probe.Kept, store.TailSize)
		if err != nil {
			return err
		}
		if len(piece.Data) == 0 || piece.Offset > l.probe.Kept {
			s, err := more(l.probe.Kept)
			if err != nil || s.LogOffset != l.probe.Kept || len(s.Log) == 0 {
				return nil //nolint:nilerr // the next look tries again
			}
			piece = store.Piece{Offset: s.LogOffset, Data: s.Log}
		}
		if err := l.put(ctx, piece.Offset, piece.Data); err != nil {
			l.refused = true // one try a look: an archive that hangs must not hold up what the look is for
			l.w.log.Warn().Err(err).Int64("job", int64(l.id)).Msg("cannot archive a piece of log now")
			return nil
		}
	}
	return nil
}

// put writes a piece of the log, from Kept on or after a gap, to the archive.
func (l *logTrip) put(ctx context.Context, offset int64, data []byte) error {
	ctx, done := context.WithTimeout(ctx, l.patience)
	defer done()
	if err := l.w.archive.PutLog(ctx, l.key(), offset, data); err != nil {
		return err
	}
	l.probe.Kept = offset + int64(len(data))
	l.kept += len(data)
	return nil
}

// save brings the rest of an attempt's log into the archive before its machine goes: from the node while it answers, and
// what is left in the tail when it does not.
func (d *driver) save(ctx context.Context, site *Site, a *job.Attempt) (*job.Outcome, error) {
	out := &job.Outcome{Attempt: a.Number, At: d.now()}
	p := &job.Probe{Attempt: a.Number, At: out.At, Tail: d.job.Look.Tail, Kept: d.job.Look.Kept}
	log := d.logOf(a, p)
	log.patience = saveLimit
	log.resume(ctx)
	err := d.answers(ctx, site, a, p.Kept)
	if err == nil {
		err = d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
			return log.drain(ctx, out, func(offset int64) (agent.Status, error) {
				return c.Poll(ctx, site.Dir(node), offset, agent.MaxLog)
			})
		})
	} else {
		d.log.Debug().Err(err).Msg("the machine does not answer: its log ends with what was read before")
	}
	switch {
	case err == nil || out.Fault != nil:
		return out, nil
	case ctx.Err() != nil: // the log is long: it goes on from where it is, and not for ever, as with any fault
		out.Fault = &job.Fault{Class: job.Transient, Text: fmt.Sprintf("the log was archived up to byte %d when the time was up", p.Kept)}
		return out, nil //nolint:nilerr // it is what came of it
	case isStoreError(err):
		return nil, err
	default:
		return out, log.keepRest(ctx, out)
	}
}

// answers reports whether the machine of an attempt can be asked for its log. One that is known to have been there when
// the code ended is given more time than one that may be gone.
func (d *driver) answers(ctx context.Context, site *Site, a *job.Attempt, offset int64) error {
	limit := unreachable
	if a.Exit != nil {
		limit = probeLimit
	}
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	return d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
		_, err := c.Poll(ctx, site.Dir(node), offset, 0)
		return err
	})
}

// resume takes over what a save that was cut off has archived.
func (l *logTrip) resume(ctx context.Context) {
	if info, err := l.w.archive.LogSize(ctx, l.key()); err == nil && info.Missing == 0 {
		l.probe.Kept = max(l.probe.Kept, info.Size)
	}
}

// drain moves everything from Kept on straight from the node to the archive, and the end of it to the tail too.
func (l *logTrip) drain(ctx context.Context, out *job.Outcome, poll source) error {
	var buf []byte
	most := l.probe.Kept + saveBytes
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		if err := l.put(ctx, l.probe.Kept, buf); err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
			return err
		}
		buf = nil
		return nil
	}
	for {
		s, err := poll(l.probe.Kept + int64(len(buf)))
		if err != nil {
			return errors.Join(err, flush())
		}
		if len(s.Log) > 0 && s.LogOffset+int64(len(s.Log)) > l.probe.Tail {
			if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, s.LogOffset, s.Log); err != nil {
				return err
			}
			l.probe.Tail = s.LogOffset + int64(len(s.Log))
		}
		buf = append(buf, s.Log...)
		if len(s.Log) == 0 || l.probe.Kept+int64(len(buf)) >= min(s.LogSize, most) {
			return flush()
		}
		if len(buf) >= lookBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// keepRest moves what the tail still has to the archive.
func (l *logTrip) keepRest(ctx context.Context, out *job.Outcome) error {
	for {
		piece, err := l.w.store.TailRead(ctx, l.id, l.a.Task, l.a.Number, l.probe.Kept, store.TailSize)
		if err != nil {
			return err
		}
		if len(piece.Data) == 0 {
			return nil
		}
		if err := l.put(ctx, piece.Offset, piece.Data); err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
			return nil //nolint:nilerr // it is what came of it
		}
	}
}

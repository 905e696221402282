package tasks

import (
	"context"
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
	unreachable = 2 * time.Second    // how long the end of an attempt waits for a machine that may be gone
)

// logTrip is the log of one attempt on its way.
type logTrip struct {
	w     *Worker
	id    job.ID
	a     *job.Attempt
	probe *job.Probe // Tail and Kept are moved on here
	every time.Duration
}

func (d *driver) logOf(a *job.Attempt, p *job.Probe) *logTrip {
	return &logTrip{w: d.w, id: d.job.ID, a: a, probe: p, every: time.Duration(d.job.Look.Every) * time.Millisecond}
}

func (l *logTrip) key() archive.LogKey {
	return archive.LogKey{Job: l.id, Task: l.a.Task, Attempt: l.a.Number}
}

// follow moves what the agent has sent, and what it still has, into the tail, and from there into the archive when it is
// time. An archive that does not take it is tried again at the next look.
func (l *logTrip) follow(ctx context.Context, s agent.Status, more func(offset int64) (agent.Status, error)) error {
	for moved := 0; len(s.Log) > 0; {
		if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, s.LogOffset, s.Log); err != nil {
			return err
		}
		l.probe.Tail = s.LogOffset + int64(len(s.Log))
		if err := l.keep(ctx, keepBytes); err != nil {
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
		return l.keep(ctx, 1)
	}
	return nil
}

// timeToKeep reports whether this is the first look in a new half minute: whoever looks, that needs no memory.
func (l *logTrip) timeToKeep() bool {
	at, step := int64(l.probe.At), keepEvery.Milliseconds()
	return at/step != (at-l.every.Milliseconds())/step
}

// keep moves the tail from Kept on to the archive, if at least that many bytes have gathered.
func (l *logTrip) keep(ctx context.Context, atLeast int64) error {
	for l.probe.Tail-l.probe.Kept >= atLeast && l.probe.Tail > l.probe.Kept {
		piece, err := l.w.store.TailRead(ctx, l.id, l.a.Task, l.a.Number, l.probe.Kept, store.TailSize)
		if err != nil {
			return err
		}
		if len(piece.Data) == 0 {
			return nil // the tail has gone: what is missing is read from the node at the end
		}
		if piece.Offset > l.probe.Kept {
			return nil // the tail has moved on past it: likewise
		}
		if err := l.w.archive.PutLog(ctx, l.key(), piece.Offset, piece.Data); err != nil {
			l.w.log.Warn().Err(err).Int64("job", int64(l.id)).Msg("cannot archive a piece of log now")
			return nil
		}
		l.probe.Kept = piece.Offset + int64(len(piece.Data))
	}
	return nil
}

// save brings the rest of an attempt's log into the archive before its machine goes: from the node while it answers, and
// what is left in the tail when it does not.
func (d *driver) save(ctx context.Context, site *Site, a *job.Attempt) (*job.Outcome, error) {
	out := &job.Outcome{Attempt: a.Number, At: d.now()}
	p := &job.Probe{Attempt: a.Number, At: out.At, Tail: d.job.Look.Tail, Kept: d.job.Look.Kept}
	log := d.logOf(a, p)
	dial, done := context.WithTimeout(ctx, unreachable)
	var alive bool
	err := d.onNode(dial, site, a, func(c *machine.Client, node job.Node) error {
		_, err := c.Poll(dial, site.Dir(node), p.Kept, 0)
		alive = err == nil
		return err
	})
	done()
	if !alive {
		d.log.Debug().Err(err).Msg("the machine does not answer: its log ends with what was read before")
		return out, log.keepRest(ctx, out)
	}
	err = d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
		return log.drain(ctx, out, func(offset int64) (agent.Status, error) {
			return c.Poll(ctx, site.Dir(node), offset, pollBytes)
		})
	})
	if isStoreError(err) {
		return nil, err
	}
	if err != nil && out.Fault == nil {
		return out, log.keepRest(ctx, out)
	}
	return out, nil
}

// drain moves everything from Kept on straight from the node to the archive, and the end of it to the tail too.
func (l *logTrip) drain(ctx context.Context, out *job.Outcome, poll func(offset int64) (agent.Status, error)) error {
	var buf []byte
	from := l.probe.Kept
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		if err := l.w.archive.PutLog(ctx, l.key(), from, buf); err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
			return err
		}
		from += int64(len(buf))
		l.probe.Kept, buf = from, nil
		return nil
	}
	for {
		s, err := poll(from + int64(len(buf)))
		if err != nil {
			return err
		}
		if len(s.Log) > 0 && s.LogOffset+int64(len(s.Log)) > l.probe.Tail {
			if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, s.LogOffset, s.Log); err != nil {
				return err
			}
			l.probe.Tail = s.LogOffset + int64(len(s.Log))
		}
		buf = append(buf, s.Log...)
		if len(s.Log) == 0 || from+int64(len(buf)) >= min(s.LogSize, saveBytes) {
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
		if err := l.w.archive.PutLog(ctx, l.key(), piece.Offset, piece.Data); err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
			return nil //nolint:nilerr // it is what came of it
		}
		l.probe.Kept = piece.Offset + int64(len(piece.Data))
	}
}

package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/store"
)

// save brings the rest of an attempt's log into the archive before its machine goes: from the node while it answers, and
// what is left in the tail when it does not.
func (d *driver) save(ctx context.Context, site *Site, a *job.Attempt) (*job.Outcome, error) {
	out := &job.Outcome{Attempt: a.Number, At: d.now()}
	p := &job.Probe{Attempt: a.Number, At: out.At, Tail: d.job.Look.Tail, Kept: d.job.Look.Kept}
	log := d.logOf(a, p)
	log.patience, log.node.final = saveLimit, true
	log.resume(ctx)
	err := d.answers(ctx, site, a, p.Kept)
	if err == nil {
		err = d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
			log.from(ctx, c, site.Dir(node))
			return log.drain(ctx, out)
		})
	} else {
		d.log.Debug().Err(err).Msg("the machine does not answer: its log ends with what was read before")
	}
	var hidden *maskError
	switch {
	case err == nil || out.Fault != nil:
		return out, nil
	case ctx.Err() != nil: // the log is long: it goes on from where it is, and not for ever, as with any fault
		out.Fault = &job.Fault{Class: job.Transient, Text: fmt.Sprintf("the log was archived up to byte %d when the time was up", p.Kept)}
		return out, nil //nolint:nilerr // it is what came of it
	case isStoreError(err):
		return nil, err
	case errors.As(err, &hidden): // another worker may know them
		out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
		return out, nil
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
	ctx, done := context.WithTimeout(ctx, l.patience)
	defer done()
	if info, err := l.w.archive.LogSize(ctx, l.key()); err == nil && info.Missing == 0 {
		l.probe.Kept = max(l.probe.Kept, info.Size)
	}
}

// drain moves everything from Kept on straight from the node to the archive, and the end of it to the tail too.
func (l *logTrip) drain(ctx context.Context, out *job.Outcome) error {
	buf := logPiece{offset: l.probe.Kept}
	flush := func() error {
		err := l.putSome(ctx, buf)
		if err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
		}
		buf = logPiece{offset: buf.end()}
		return err
	}
	for {
		p, err := l.read(ctx, buf.end(), agent.MaxLog)
		if err != nil {
			return errors.Join(err, flush())
		}
		if p.offset > buf.end() || len(buf.data) >= lookBytes {
			if err := flush(); err != nil {
				return err
			}
			buf.offset = p.offset
		}
		if len(p.data) > 0 && p.end() > l.probe.Tail && p.size-p.end() < agent.MaxLog {
			if err := l.w.store.TailAppend(ctx, l.id, l.a.Task, l.a.Number, p.offset, p.data, p.marks...); err != nil {
				return err
			}
			l.probe.Tail = p.end()
		}
		buf.data, buf.marks = append(buf.data, p.data...), append(buf.marks, p.marks...)
		over := int64(l.kept+len(buf.data)) > l.w.logLimit+lagBytes // the node should have kept less: it is told as dropped
		if len(p.data) > 0 && buf.end() < p.size && !over {
			continue
		}
		if over {
			l.gap = &agent.Gap{From: buf.end(), To: p.size}
		}
		if err := flush(); err != nil {
			return err
		}
		return l.dropAll(ctx, out)
	}
}

// putSome puts a piece into the archive if there is anything in it.
func (l *logTrip) putSome(ctx context.Context, p logPiece) error {
	if len(p.data) == 0 {
		return nil
	}
	return l.put(ctx, p)
}

// dropAll drops from the archive what the node has dropped, at the end of an attempt.
func (l *logTrip) dropAll(ctx context.Context, out *job.Outcome) error {
	if l.gap == nil || l.gap.To <= l.gap.From {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, l.patience)
	defer done()
	err := l.w.archive.DropLog(ctx, l.key(), l.gap.From, l.gap.To)
	if err != nil {
		out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
	}
	return err
}

// keepRest moves what the tail still has to the archive.
func (l *logTrip) keepRest(ctx context.Context, out *job.Outcome) error {
	for {
		tail, err := l.w.store.TailRead(ctx, l.id, l.a.Task, l.a.Number, l.probe.Kept, store.TailSize)
		if err != nil {
			return err
		}
		if len(tail.Data) == 0 {
			return nil
		}
		if err := l.put(ctx, logPiece{offset: tail.Offset, data: tail.Data, marks: tail.Marks}); err != nil {
			out.Fault = &job.Fault{Class: job.Transient, Text: err.Error()}
			return nil //nolint:nilerr // it is what came of it
		}
	}
}

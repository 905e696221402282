package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	// maxStreams bounds the streams that are open at a time: each looks at its job five times a second.
	maxStreams = 64
	// pulseEvery is how often a stream without news says that it is there, so that one whose visitor has gone is noticed.
	pulseEvery = 15 * time.Second
	// closingEvery is how often a job whose output has ended is looked at until it is done.
	closingEvery = time.Second
)

// stream is the life of an answer that goes on: until the visitor goes, or the server ends.
func (s *Server) stream(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	unhook := context.AfterFunc(s.closing, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// live streams what happens to a job as server-sent events:
//
//	log       a piece of output, as a JSON string; its id is the position behind it
//	attempt   the output of another attempt begins, as a JSON string that says which
//	change    the job has changed: what a page shows of it is out of date
//	end       nothing will come any more
//
// A browser that comes back says with Last-Event-ID where it was.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	rec, err := s.all.Load(r.Context(), id)
	if err != nil {
		return err
	}
	sel, err := selectLog(r, &rec)
	if err != nil {
		return err
	}
	from, err := parsePosition(cmp.Or(r.Header.Get("Last-Event-ID"), r.FormValue("from")))
	if err != nil {
		return err
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		return &mistake{http.StatusServiceUnavailable, "Too many pages are following jobs on this worker."}
	}
	ctx, done := s.stream(r)
	defer done()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	out := &paced{w: w, c: http.NewResponseController(w)}
	defer out.extend()
	e := &events{out: out, cancel: done, known: outline(&rec)}
	e.send("", "", "retry: 2000\n\n")
	s.feed(ctx, e, id, follow.Selection{Job: id, Task: sel.Task, Attempt: sel.Attempt, Follow: true, From: from})
	return nil
}

// feed sends events until the job is done.
func (s *Server) feed(ctx context.Context, e *events, id job.ID, sel follow.Selection) {
	text := newPlain()
	f := &follow.Follower{
		Store: s.all, Archive: s.cfg.Archive, Beat: s.beat(id),
		Out:    staged(writerFunc(func(p []byte) { e.piece += text.add(p) })),
		At:     e.flush,
		Begin:  func(a job.Attempt) { e.event("attempt", "", account.BeginLine(a)) },
		Seen:   func(_ context.Context, rec job.Record) { e.seen(&rec) },
		Broken: func(err error) { _ = s.unreadable(err) },
	}
	rec, err := f.Run(ctx, sel)
	if errors.Is(err, follow.ErrNoPosition) {
		e.event("end", "", "")
		return
	}
	look := time.NewTicker(closingEvery)
	defer look.Stop()
	for rec.Step != job.StepDone {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now, err := s.all.Load(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound): // it has left for the archive
			rec.Step = job.StepDone
		case err == nil:
			rec = now
		}
		e.seen(&rec)
	}
	if ctx.Err() == nil {
		e.event("end", "", "")
	}
}

// beat says that somebody follows the job: workers copy its output more often then.
func (s *Server) beat(id job.ID) func(context.Context) {
	return func(ctx context.Context) {
		if s.cfg.Actions == nil {
			return
		}
		if err := s.cfg.Actions.Follow(ctx, id); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug().Err(err).Msg("output comes a little later")
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// events writes a stream. A visitor who does not read ends it.
type events struct {
	out    *paced
	cancel context.CancelFunc
	piece  string // output that was not sent yet: its id is known when the next piece comes
	known  string // outline of the record that the visitor knows
	spoke  time.Time
}

// flush sends the piece that ends at a position.
func (e *events) flush(at follow.Position) {
	if e.piece != "" {
		e.event("log", positionText(at), e.piece)
		e.piece = ""
	}
}

// seen tells of a change, or that there is none.
func (e *events) seen(rec *job.Record) {
	switch now := outline(rec); {
	case now != e.known:
		e.known = now
		e.event("change", "", string(rec.Status()))
	case time.Since(e.spoke) >= pulseEvery:
		e.send("", "", ":\n\n")
	}
}

// outline is what makes a page of a job out of date when it changes. Most commits of a quiet job leave it as it is.
func outline(rec *job.Record) string {
	var b strings.Builder
	fmt.Fprint(&b, rec.Step, rec.Cur, rec.Wait.For, rec.Cancel != nil, rec.Preempt != nil)
	for _, t := range rec.Tasks {
		fmt.Fprint(&b, " ", t.Status, t.Attempts, t.Recoveries, t.Cause.Code)
	}
	for _, a := range rec.Live {
		fmt.Fprint(&b, " ", a.Number, a.Phase, a.Exit != nil, a.Notice != nil)
	}
	return b.String()
}

func (e *events) event(kind, id, text string) {
	data, err := json.Marshal(text)
	if err != nil {
		return // a string can always be written
	}
	e.send(kind, id, "data: "+string(data)+"\n\n")
}

func (e *events) send(kind, id, rest string) {
	var b strings.Builder
	if kind != "" {
		b.WriteString("event: " + kind + "\n")
	}
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString(rest)
	e.spoke = time.Now()
	if _, err := e.out.Write([]byte(b.String())); err != nil {
		e.cancel()
		return
	}
	if err := e.out.c.Flush(); err != nil {
		e.cancel()
	}
}

// positionText writes a position as the id of an event.
func positionText(p follow.Position) string {
	return fmt.Sprintf("%d.%d.%d", p.Task, p.Attempt, p.Offset)
}

// parsePosition reads one; no text is none.
func parsePosition(text string) (follow.Position, error) {
	if text == "" {
		return follow.Position{}, nil
	}
	parts := strings.Split(text, ".")
	var n [3]int64
	for i := range n {
		var err error
		if len(parts) == len(n) {
			n[i], err = strconv.ParseInt(parts[i], 10, 48)
		}
		if err != nil || len(parts) != len(n) {
			return follow.Position{}, badRequest("a position is task.attempt.offset")
		}
	}
	return follow.Position{Task: int(n[0]), Attempt: int(n[1]), Offset: n[2]}, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// patience is how long a job waits before it is told what for: short waits are part of every launch.
const patience = 3 * time.Second

// narrator tells what happens to a job that somebody follows. It tells each event of the job's history once, also those
// that came and went between two looks, and what the job waits for when that takes long.
type narrator struct {
	d      *deployment
	id     job.ID
	say    func(format string, args ...any)
	status *status // tells what it waits for as long as it does; may be nil
	quiet  bool    // tell nothing of what happens on the way

	seen    string    // what of the record was told
	last    job.Event // of the history that was told
	begun   bool      // the history was read
	waits   job.Code  // what the job waits for
	since   time.Time // when that was seen first
	told    bool      // and whether it was told
	trouble string    // that was told last
	toldAt  time.Time // and when
}

// look tells what is new about a job.
func (n *narrator) look(ctx context.Context, r job.Record) {
	if n.quiet {
		return
	}
	if now := outline(&r); now != n.seen {
		n.seen = now
		n.tellEvents(ctx, len(r.Tasks) > 1)
	}
	n.status.set("%s", account.Stage(&r))
	if line := n.waiting(&r, time.Now()); line != "" && n.status == nil {
		n.say("%s", line)
	}
}

// outline is what of a record changes only when its history grows: reading that at every look would cost too much.
func outline(r *job.Record) string {
	var b strings.Builder
	for i := range r.Tasks {
		fmt.Fprint(&b, r.Tasks[i].Status, r.Tasks[i].Attempts, " ")
	}
	for i := range r.Live {
		fmt.Fprint(&b, r.Live[i].Phase, r.Live[i].Notice != nil, " ")
	}
	fmt.Fprint(&b, r.Wait.For.Code, r.Fault.N)
	return b.String()
}

// tellEvents tells the events after the last one told. The history is bounded: if that one is gone from it, all are new.
// What happened before the following began is not told.
func (n *narrator) tellEvents(ctx context.Context, chain bool) {
	events, err := n.d.jobs.Events(ctx, n.id)
	if err != nil {
		n.seen = "" // and look again
		n.complain(err)
		return
	}
	fresh := after(events, n.last)
	if len(events) > 0 {
		n.last = events[len(events)-1]
	}
	if !n.begun {
		n.begun = true
		fresh = fresh[max(len(fresh)-1, 0):] // how it stands
	}
	for _, e := range fresh {
		if line := account.EventLine(e, chain); worthTelling(e, chain) {
			n.say("job %d %s", n.id, line)
		}
	}
}

// after is the part of a history that comes after an event.
func after(events []job.Event, last job.Event) []job.Event {
	for i, e := range slices.Backward(events) {
		if e == last {
			return events[i+1:]
		}
	}
	return events
}

// worthTelling leaves out what people do not miss: the submission, which they made, the end, which is told anyhow unless
// it is that of one task of a chain, and the machines' own lives as long as they are as expected.
func worthTelling(e job.Event, chain bool) bool {
	switch e.Kind {
	case "status":
		s := job.Status(e.To)
		return s != job.Pending && (chain || !s.Terminal())
	case "attempt":
		return e.To == string(job.PhaseIntent)
	default:
		return true
	}
}

// waiting is the line for a wait that takes long, once for each; else "".
func (n *narrator) waiting(r *job.Record, now time.Time) string {
	code := r.Wait.For.Code
	if code != n.waits {
		n.waits, n.since, n.told = code, now, false
	}
	if code == "" || r.Ended() || n.told || now.Sub(n.since) < patience {
		return ""
	}
	n.told = true
	return fmt.Sprintf("job %d %s", n.id, account.Awaits(r.Wait.For))
}

// repeatAfter is when trouble that lasts is told again.
const repeatAfter = time.Minute

// complain tells of trouble on the way, which is tried again.
func (n *narrator) complain(err error) {
	if err == nil || errors.Is(err, context.Canceled) || err.Error() == n.trouble && time.Since(n.toldAt) < repeatAfter {
		return
	}
	n.trouble, n.toldAt = err.Error(), time.Now()
	n.say("%s; trying again", render.Text(err.Error()))
}

// end tells how the job stands.
func (n *narrator) end(s job.Status, r *job.Record) {
	line := fmt.Sprintf("job %d %s", n.id, s)
	cause := account.Of(r, 0).Cause
	if cause != nil && s != job.Succeeded {
		line += ": " + account.Explain(*cause)
	}
	if wait := r.Wait.For; !s.Terminal() && !wait.IsZero() {
		line += ", " + account.Awaits(wait)
	}
	n.say("%s", line)
}

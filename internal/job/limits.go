package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The two limits that a user may set on a task. Both are times, so both are kept by the due time of the record: it
// never lies beyond the limit, and nobody has to poll for it.
//
//	max_wait      without a running machine in one go   PENDING, STARTING, RECOVERING   ─► FAILED_NO_RESOURCE
//	max_duration  of the user's code, all attempts      RUNNING                         ─► FAILED

// Deadline is when the limit that is in force now is reached; zero if none is. A limit is in force only while the task has
// not ended: an ending that was seen in time stands.
func (r *Record) Deadline() Time {
	if r.Step == StepCleanup || r.Step == StepDone {
		return 0
	}
	t, head := r.task(), r.Head.Tasks[r.Cur]
	switch t.Status {
	case Running:
		if head.MaxDuration > 0 && !t.LastRecoveredAt.IsZero() {
			return t.LastRecoveredAt.Add(head.MaxDuration - t.spent())
		}
	case Pending, Starting, Recovering:
		if head.MaxWait > 0 && !head.Idle {
			return r.soughtAt().Add(head.MaxWait)
		}
	}
	return 0
}

// soughtAt is since when the current task wants a machine.
func (r *Record) soughtAt() Time { return max(r.task().SoughtAt, r.SubmittedAt) }

// spent is the run time of earlier attempts that counts against max_duration.
func (t *Task) spent() time.Duration { return time.Duration(t.RunMS-t.SpentMS) * time.Millisecond }

// atDeadline makes a wait end at the limit at the latest.
func (d *decision) atDeadline(do Do) Do {
	limit := d.Deadline()
	if do.Kind != DoWait || limit <= d.now || do.Until <= limit {
		return do
	}
	do.Until, d.Due = limit, min(d.Due, limit)
	return do
}

// waitedOut reports whether the task has been without a machine for as long as it may. One whose code was just started
// is not: that is what it waited for.
func (d *decision) waitedOut() bool {
	limit := d.Deadline()
	if limit.IsZero() || d.now < limit || d.task().Status == Running {
		return false
	}
	p := d.seen.Start
	return p == nil || p.Fault != nil || p.State != RunAlive && p.State != RunExited
}

// stopWaiting ends the search for a machine.
func (d *decision) stopWaiting() Do {
	limit := d.Head.Tasks[d.Cur].MaxWait
	return d.end(FailedNoResource, Cause{
		Code: CodeMaxWait, Text: fmt.Sprintf("no machine ran the task within its max_wait of %s", limit), Evidence: d.tried(),
	})
}

// overran reports whether the user's code has run for as long as it may.
func (d *decision) overran() bool {
	limit := d.Deadline()
	return !limit.IsZero() && d.now >= limit && d.task().Status == Running
}

// stopRunning ends a task whose code has run for too long. The clean-up stops the code, as after a cancel.
func (d *decision) stopRunning(evidence string) Do {
	limit := d.Head.Tasks[d.Cur].MaxDuration
	return d.end(Failed, Cause{
		Code: CodeMaxDuration, Text: fmt.Sprintf("the user's code has run for its max_duration of %s", limit), Evidence: evidence,
	})
}

// tried tells what a search has come to: what it waits for, and what offers said.
func (d *decision) tried() string {
	var parts []string
	if w := d.Wait.For; !w.IsZero() {
		parts = append(parts, "last: "+w.Text)
		if w.Evidence != "" {
			parts = append(parts, w.Evidence)
		}
	}
	penalties := d.task().Search.Penalties
	var keys []string
	for key := range penalties {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), 3)] {
		parts = append(parts, placeOfKey(key)+": "+penalties[key].Fault.Text)
	}
	if len(keys) > 3 {
		parts = append(parts, fmt.Sprintf("and %d more offers", len(keys)-3))
	}
	if len(parts) == 0 {
		return "nothing was tried yet"
	}
	return strings.Join(parts, "; ")
}

package agent

import "time"

// lookBusy is how often the log is looked at while it grows: a fast writer fills a gigabyte in a second.
const lookBusy = 50 * time.Millisecond

// logKeeper looks after the log for the supervisor: it keeps it short and marks when what was written. A log that does not
// grow costs nothing, its next write is told.
type logKeeper struct {
	limit logCap
	marks *marker
	arm   func() bool // asks to be told of the next write; nil or false if that cannot be had

	size  int64     // at the last look
	busy  bool      // it has grown since the look before
	armed bool      // the next write is told
	mark  time.Time // when a mark is due, the zero time for none
}

// look does what is due. Errors are left to the next look: on a disk that is full or broken a run is worth more than its
// log.
func (k *logKeeper) look(now time.Time) {
	size, err := k.limit.apply()
	if err != nil {
		return
	}
	k.busy = size != k.size
	if k.busy {
		k.armed = false
	} else if !k.armed && k.arm != nil && k.arm() {
		k.armed, k.busy = true, true // one more look: it may have grown before it was watched
	}
	k.size = size
	k.mark = k.marks.grew(size, now)
}

// nextLook is when to look again, at most after rest.
func (k *logKeeper) nextLook(now time.Time, rest time.Duration) time.Duration {
	if k.busy {
		rest = min(rest, lookBusy)
	}
	if !k.mark.IsZero() {
		rest = min(rest, max(0, k.mark.Sub(now)))
	}
	return rest
}

// stage tells that a stage begins.
func (k *logKeeper) stage(name string, now time.Time) {
	k.look(now)
	k.marks.stage(name, k.size, now)
}

// end looks for the last time.
func (k *logKeeper) end(now time.Time) {
	k.look(now)
	k.marks.last(k.size, now)
}

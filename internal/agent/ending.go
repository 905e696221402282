package agent

import (
	"syscall"
	"time"
)

const (
	// leftoverGrace is what processes get between TERM and KILL that a run has left behind when it ended by itself.
	leftoverGrace = 2 * time.Second
	// defaultGrace is used for a stop record that can not be read.
	defaultGrace = 10 * time.Second
	// The pause between two rounds of KILL grows between these: at first new forks are to be caught fast, but a process
	// that hangs in the kernel may stay for hours.
	killPauseMin = 5 * time.Millisecond
	killPauseMax = time.Second
)

// ending is what is known of how a run is to end.
type ending struct {
	stopAt    time.Time // a stop was asked for: KILL for what runs then
	noticeAt  time.Time // the machine goes then, and what runs works on that
	mainEnded time.Time // the last main process has ended; what it left is to go
}

// stop asks for the end at a time. The earliest wish holds.
func (e *ending) stop(at time.Time) {
	if e.stopAt.IsZero() || at.Before(e.stopAt) {
		e.stopAt = at
	}
}

// killAt says when KILL is sent, the zero time for not yet.
//
// A shell dies of TERM at once, while the program that it had waited for is still writing its checkpoint. So after
// a stop or a notice, what is left gets all of the time that was promised, and not the short one.
func (e ending) killAt() time.Time {
	switch {
	case !e.stopAt.IsZero():
		return e.stopAt
	case e.mainEnded.IsZero():
		return time.Time{}
	default:
		at := e.mainEnded.Add(leftoverGrace)
		if e.noticeAt.After(at) {
			at = e.noticeAt
		}
		return at
	}
}

// killing reports whether it is time for KILL.
func (e ending) killing(now time.Time) bool {
	at := e.killAt()
	return !at.IsZero() && !now.Before(at)
}

// checkStop looks for a stop. A later one may shorten the grace.
func (s *supervisor) checkStop(now time.Time) {
	if grace, asked := s.dir.stopAsked(); asked {
		s.ending.stop(now.Add(grace))
	}
}

// stopAsked reports whether a stop was asked for, and with which grace.
func (d dir) stopAsked() (grace time.Duration, asked bool) {
	if !d.has(fileStop) {
		return 0, false
	}
	rec := load[stopRecord](d, fileStop)
	if rec == nil {
		return defaultGrace, true
	}
	return time.Duration(rec.GraceMillis) * time.Millisecond, true
}

// enforce sends the signals that are due: TERM once to all that runs when the run is told to end, TERM to what is
// left when the main process has ended by itself, KILL when the time is over.
//
// Nobody gets a second TERM, which many programs take for impatience, and what was started after the TERM, such as
// the last upload from a trap, gets none: after a stop all have had it, after a notice the main process group has.
func (s *supervisor) enforce(now time.Time) {
	switch {
	case s.ending.killing(now):
		s.signalAll(syscall.SIGKILL, everyone)
		s.killPause = min(max(2*s.killPause, killPauseMin), killPauseMax)
	case !s.ending.stopAt.IsZero():
		if !s.told {
			s.told = true
			s.signalAll(syscall.SIGTERM, everyone)
		}
	case !s.ending.mainEnded.IsZero() && !s.told:
		s.told = true
		s.signalAll(syscall.SIGTERM, func(p process) bool { return !s.toldOfNotice(p) })
	}
}

func everyone(process) bool { return true }

// signalAll signals the processes of the run that match, parents first. If they can not be listed now, the KILL
// will find them.
func (s *supervisor) signalAll(sig syscall.Signal, match func(process) bool) {
	left, err := crew(s.pid, s.mark)
	if err != nil {
		return
	}
	for _, p := range left {
		if match(p) {
			p.signal(sig)
		}
	}
}

// nextLook says how long the loop may rest if nothing happens.
func (s *supervisor) nextLook(now time.Time) time.Duration {
	at := s.ending.killAt()
	switch {
	case s.killPause > 0:
		return s.killPause
	case at.IsZero():
		return s.every
	default:
		return max(0, min(s.every, at.Sub(now)))
	}
}

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// lease measures how long nobody has polled. It notes when the file's time changes, and never compares it with
// a clock: a node whose clock is set right after the boot must not end its run for that.
type lease struct {
	touched time.Time // of the file, as seen last
	since   time.Time // when that was first seen; with the monotonic clock
}

// newLease begins with the moment at which somebody asked for the start.
func newLease(now time.Time) lease { return lease{since: now} }

// silence returns for how long nobody has polled, given the file's time now.
func (l *lease) silence(touched, now time.Time) time.Duration {
	if !touched.Equal(l.touched) {
		l.touched, l.since = touched, now
	}
	return now.Sub(l.since)
}

// touched returns when the attempt was last polled by the file's clock, the zero time if never.
func (d dir) touched() time.Time {
	info, err := os.Stat(d.path(fileLease))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// leaseGrace is what a run gets between TERM and KILL when nobody polls any more.
const leaseGrace = 10 * time.Second

// checkLease stops a run that nobody has asked for in a long time.
func (s *supervisor) checkLease(now time.Time) {
	limit := time.Duration(s.req.LeaseSeconds) * time.Second
	if limit <= 0 || !s.ending.stopAt.IsZero() {
		return
	}
	if s.lease.silence(s.dir.touched(), now) > limit {
		s.why = fmt.Sprintf("ended because nobody asked for it within %v", limit)
		s.ending.stop(now.Add(leaseGrace))
	}
}

// powerOff is the dead man's switch: it waits until nobody has polled an ended run for long enough, and ends the
// machine. If that fails it is tried again after the same time.
func (s *supervisor) powerOff() {
	idle := time.Duration(s.req.IdleSeconds) * time.Second
	if idle <= 0 || len(s.req.PowerOff) == 0 {
		return
	}
	for s.lease = newLease(time.Now()); ; {
		left := idle - s.lease.silence(s.dir.touched(), time.Now())
		if left > 0 {
			time.Sleep(min(left, time.Minute)) // and looks at the file in between, since its time may jump
			continue
		}
		cmd := exec.Command(s.req.PowerOff[0], s.req.PowerOff[1:]...)
		cmd.Env, cmd.Dir = s.node, "/"
		if cmd.Run() == nil {
			return
		}
		s.lease = newLease(time.Now())
	}
}

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// until reaps what ends, looks at the files and sends the signals that are due, until done says so.
func (s *supervisor) until(done func() bool) {
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	for {
		s.reap()
		if done() {
			return
		}
		now := time.Now()
		s.checkStop(now)
		s.checkNotice(now)
		s.checkLease(now)
		s.enforce(now)
		s.keep.look(now)
		timer.Reset(s.keep.nextLook(now, s.nextLook(now)))
		select {
		case <-s.children:
		case <-s.changed:
		case <-timer.C:
		}
	}
}

// reap takes leave of every child that has ended, its own and adopted ones.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // ECHILD
			s.childless = true
			return
		case pid == 0:
			s.childless = false
			return
		case pid == s.main.pid:
			s.main = mainProcess{group: pid, over: true, status: status}
		}
	}
}

// watchFiles asks to be told of a stop and a notice, or looks for them more often if that can not be had.
func (s *supervisor) watchFiles() {
	folders := []string{string(s.dir)}
	if s.req.NoticeFile != "" {
		folders = append(folders, filepath.Dir(s.req.NoticeFile))
	}
	w, err := watchFolders(folders...)
	if err != nil {
		s.every = lookOften
		return
	}
	s.changed = w.changed // watched until this process ends
	s.keep.arm = func() bool { return w.once(s.dir.path(fileLog)) == nil }
}

// oomScore remembers what the kernel thought of this process before it was asked to spare it.
type oomScore struct{ before string }

const oomScoreFile = "/proc/self/oom_score_adj"

// takeOOMScore asks the kernel to kill others first when memory is short. Only root may; else it has no effect.
func takeOOMScore() oomScore {
	before, err := os.ReadFile(oomScoreFile)
	if err != nil || os.WriteFile(oomScoreFile, []byte("-1000"), 0) != nil {
		return oomScore{}
	}
	return oomScore{before: strings.TrimSpace(string(before))}
}

// giveBack undoes it; a process that is started now does not inherit it.
func (o oomScore) giveBack() {
	if o.before != "" {
		_ = os.WriteFile(oomScoreFile, []byte(o.before), 0) // raising it is always allowed
	}
}

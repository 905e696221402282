package agent

import (
	"encoding/json"
	"fmt"
	"syscall"
	"time"
)

// noNoticeSignal is the name for none.
const noNoticeSignal = "none"

// noticeSignals are the signals that a notice may be told with.
var noticeSignals = map[string]syscall.Signal{
	"": syscall.SIGTERM, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, noNoticeSignal: 0,
}

// userNotice is what the user's code finds in its notice file.
type userNotice struct {
	Notice
	SecondsLeft int64 `json:"seconds_left"` // when it was written
}

// parseNotice reads a provider's word. One that says nothing of the time was seen now.
func parseNotice(text []byte, now time.Time) (userNotice, bool) {
	var n Notice
	if json.Unmarshal(text, &n) != nil {
		return userNotice{}, false // half written: it is read again
	}
	if n.At == 0 {
		n.At = now.UnixMilli()
	}
	n.Deadline = max(n.Deadline, n.At)
	left := time.UnixMilli(n.Deadline).Sub(now)
	return userNotice{Notice: n, SecondsLeft: max(0, int64(left/time.Second))}, true
}

// checkNotice looks for the word that the machine will be taken, and hands it on once: to the user's code as a
// file and as a signal to its process group, to the script for it, and through the file to whoever polls.
func (s *supervisor) checkNotice(now time.Time) {
	if s.req.NoticeFile == "" || s.noticeKept {
		return
	}
	text, err := readBounded(s.req.NoticeFile, maxRecord)
	if err != nil {
		return
	}
	n, ok := parseNotice(text, now)
	if !ok {
		return // tried again at the next look
	}
	s.noticeKept = s.dir.replace(fileNotice, n) == nil // so is this: on a full disk the code is told without the file
	if s.noticed {
		return
	}
	s.noticed = true
	deadline := now.Add(time.Duration(n.SecondsLeft) * time.Second)
	if s.req.NoticeRun != "" && s.noticeRun() {
		s.ending.noticeAt = deadline
	}
	sig := noticeSignals[s.req.NoticeSignal]
	if sig == 0 || s.main.pid == 0 || !s.ending.mainEnded.IsZero() {
		return
	}
	s.ending.noticeAt, s.noticeTerm = deadline, sig == syscall.SIGTERM
	_ = syscall.Kill(-s.main.group, sig) // its leader is not reaped, so it is still that group
}

// noticeRun starts the script for a notice. Nobody waits for it; it ends with the run, at the latest when the machine goes.
func (s *supervisor) noticeRun() bool {
	pid, err := s.spawn(s.req.NoticeRun)
	if err != nil {
		_, _ = fmt.Fprintf(s.log, "[outlast: the script for a notice could not be started: %v]\n", err)
		return false
	}
	s.noticeGroup, s.childless = pid, false
	return true
}

// toldOfNotice reports whether a process needs no TERM when the run ends, since it works on the notice.
func (s *supervisor) toldOfNotice(p process) bool {
	return s.noticeTerm && p.group == s.main.group || s.noticeGroup != 0 && p.group == s.noticeGroup
}

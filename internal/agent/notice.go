package agent

import (
	"encoding/json"
	"syscall"
	"time"
)

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
// file and as a TERM to its process group, and through the file to whoever polls.
func (s *supervisor) checkNotice(now time.Time) {
	if s.req.NoticeFile == "" || s.noticed {
		return
	}
	text, err := readBounded(s.req.NoticeFile, maxRecord)
	if err != nil {
		return
	}
	n, ok := parseNotice(text, now)
	if !ok || s.dir.replace(fileNotice, n) != nil {
		return // tried again at the next look
	}
	s.noticed = true
	if s.req.NoTerm || s.main.pid == 0 || !s.ending.mainEnded.IsZero() {
		return
	}
	s.ending.noticeAt = now.Add(time.Duration(n.SecondsLeft) * time.Second)
	_ = syscall.Kill(-s.main.group, syscall.SIGTERM) // its leader is not reaped, so it is still that group
}

package hook

import (
	"errors"
	"fmt"

	"github.com/outlast-dev/outlast/internal/job"
)

// Progress is how it goes with the one message that a receiver is told next. It is kept in the store, so that no worker's
// death resets it.
type Progress struct {
	Tries int      `json:"tries,omitempty"`
	Due   job.Time `json:"due,omitempty"`  // of the next try
	Dead  bool     `json:"dead,omitempty"` // a message was given up, and none was delivered since
}

// noteAfter is after how many tries that failed a job's history tells that somebody is not told.
const noteAfter = 3

// errDied is how a try ended of which nobody wrote down how it ended.
var errDied = &Error{Text: "the worker ended in the middle of it, each time"}

// Begun is the progress when a try begins. It is kept before the try: one that ends its worker counts, too.
func (p Progress) Begun(s Schedule, now job.Time, spread float64) Progress {
	p.Tries++
	p.Due = now.Add(s.Wait(p.Tries, spread))
	return p
}

// Spent is nil, or how the tries ended if none is left.
func (p Progress) Spent(s Schedule) error {
	if p.Tries >= p.limit(s) {
		return errDied
	}
	return nil
}

// limit is how often a message is tried. When one was given up, those behind it are tried once each: their receiver is gone,
// and they would keep each other for days.
func (p Progress) limit(s Schedule) int {
	if p.Dead {
		return 1
	}
	return s.Tries
}

// Failed is the progress after a try that failed, with what is to be told of it in the job's history, if anything, and whether
// the message is given up.
func (p Progress) Failed(s Schedule, why error, what string, now job.Time, spread float64) (next Progress, note *job.Cause, givenUp bool) {
	var e *Error
	permanent := errors.As(why, &e) && e.Permanent
	switch {
	case permanent || p.Tries >= p.limit(s):
		if !p.Dead {
			note = &job.Cause{Code: job.CodeNotTold, Text: fmt.Sprintf("%s, which is given up after %s; what follows is tried once each", what, times(p.Tries)), Evidence: why.Error()}
		}
		return Progress{Dead: true}, note, true
	case p.Tries == noteAfter:
		note = &job.Cause{Code: job.CodeNotTold, Text: what + ", and is tried on", Evidence: why.Error()}
	}
	p.Due = now.Add(s.Wait(p.Tries, spread))
	return p, note, false
}

func times(n int) string {
	if n == 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", n)
}

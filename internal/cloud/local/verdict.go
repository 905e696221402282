package local

import (
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
)

// initState says how the init process of a machine is.
type initState string

const (
	initAbsent   initState = "absent"   // never said a word: is being started, or never was
	initAlive    initState = "alive"    //
	initDead     initState = "dead"     // was alive in this run of the computer
	initRebooted initState = "rebooted" // was alive in an earlier one
)

const (
	// startLimit is how long a machine may be without an init before it counts as never started: its creator died, and
	// nobody came to complete it. Generous, since an init that is slow to start on a busy computer is then lost.
	startLimit = 15 * time.Second
	// noticeSlack is what init may take to act on a deadline before somebody else does.
	noticeSlack = 2 * time.Second
)

// facts is all that the state of a machine depends on.
type facts struct {
	now     time.Time
	created time.Time
	init    initState
	booted  bool
	notice  *agent.Notice
	end     *end
	gone    bool
}

// verdict is what the facts mean.
type verdict struct {
	state  cloud.State
	reason string
	end    *end // to be recorded: the machine has ended without anybody having said so
	sweep  bool // it has to end, and nobody has seen yet that nothing of it is left
}

// judge tells the state of a machine. Every rule is here.
func judge(f facts) verdict {
	switch {
	case f.end != nil && f.gone:
		return verdict{state: f.end.State, reason: f.end.Reason}
	case f.end != nil:
		return verdict{state: cloud.Stopping, reason: f.end.Reason, sweep: true}
	case f.init == initRebooted:
		return lost(f, cloud.Preempted, "the computer was restarted")
	case f.init == initDead:
		return lost(f, cloud.Preempted, "its init process was killed")
	case f.init == initAbsent && f.now.Sub(f.created) > startLimit:
		return lost(f, cloud.Terminated, "it was never started")
	case f.notice != nil && f.now.Sub(time.UnixMilli(f.notice.Deadline)) > noticeSlack:
		return lost(f, cloud.Preempted, takenReason(*f.notice))
	case f.notice != nil:
		return verdict{state: cloud.Stopping, reason: "it will be taken at " + time.UnixMilli(f.notice.Deadline).UTC().Format(time.RFC3339)}
	case f.init == initAlive && f.booted:
		return verdict{state: cloud.Running}
	default:
		return verdict{state: cloud.Booting}
	}
}

// lost is the verdict on a machine that ends now.
func lost(f facts, state cloud.State, reason string) verdict {
	return verdict{state: cloud.Stopping, reason: reason, end: &end{State: state, Reason: reason, At: f.now}, sweep: true}
}

// takenReason is why a machine ends whose notice has run out.
func takenReason(n agent.Notice) string {
	return fmt.Sprintf("taken after a notice of %s", time.Duration(n.Deadline-n.At)*time.Millisecond)
}

package job

import (
	"fmt"
	"slices"
)

// transitions is the one table of legal moves; decision.move is the one function
// that makes them. A move to the status a task already has is a success without an
// effect, every other move that is not listed is an error and leaves no event.
//
//	PENDING ─► STARTING ─► RUNNING ─► SUCCEEDED
//	              │  ▲        │ ▲
//	              │  └────────┼─┤          any of the four left ones ─► CANCELLING ─► CANCELLED
//	              ▼           ▼ │
//	        FAILED_PRECHECKS  RECOVERING ─► FAILED_NO_RESOURCE
//	        FAILED_NO_RESOURCE    RUNNING ─► FAILED · FAILED_SETUP
//	        any non-terminal ─► FAILED_CONTROLLER
//
// PENDING goes to CANCELLED directly for a later task of a chain whose earlier task
// ended otherwise than well: it never held anything, so there is nothing to cancel.
// It goes to SUCCEEDED directly if there is nothing to run, and to FAILED_PRECHECKS
// if nothing could ever serve it, and to FAILED_NO_RESOURCE if it waited for its turn or a machine for as long as its
// max_wait allows. FAILED_SETUP without a run is a workdir that cannot
// be brought to the machine.
var transitions = map[Status][]Status{
	Pending:    {Starting, Succeeded, Cancelling, Cancelled, FailedPrechecks, FailedNoResource, FailedController},
	Starting:   {Running, Cancelling, FailedPrechecks, FailedNoResource, FailedSetup, FailedController},
	Running:    {Recovering, Succeeded, Failed, FailedSetup, Cancelling, FailedController},
	Recovering: {Running, Cancelling, FailedSetup, FailedNoResource, FailedController},
	Cancelling: {Cancelled, FailedController},
}

// CanMove reports whether a task may go from one status to another.
func CanMove(from, to Status) bool {
	return slices.Contains(transitions[from], to)
}

// IllegalMoveError says that the table does not allow a move. It is always a fault of ours.
type IllegalMoveError struct {
	Task     int
	From, To Status
}

func (e *IllegalMoveError) Error() string {
	return fmt.Sprintf("task %d: no transition from %s to %s", e.Task, e.From, e.To)
}

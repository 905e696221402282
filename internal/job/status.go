package job

import "slices"

// Status says how far a task has come. A job shows the status of its first task
// that has not succeeded (see [Record.Status]).
//
// PENDING means never started: waiting for a slot, for capacity or for a
// back-off to pass is told by [Record.WaitingFor], not by a status.
type Status string

// The twelve statuses. Their names are those SkyPilot's users know.
const (
	Pending    Status = "PENDING"    // accepted, never started
	Starting   Status = "STARTING"   // a first machine is being made ready
	Running    Status = "RUNNING"    // the user's code was started on a machine
	Recovering Status = "RECOVERING" // the machine was lost, another one is being made ready
	Cancelling Status = "CANCELLING" // a cancel was taken, its machines are being closed

	Succeeded        Status = "SUCCEEDED"          // the user's code ended with exit code 0
	Cancelled        Status = "CANCELLED"          // cancelled by the user, or after an earlier task of the chain failed
	Failed           Status = "FAILED"             // the user's code failed
	FailedSetup      Status = "FAILED_SETUP"       // the user's setup failed
	FailedPrechecks  Status = "FAILED_PRECHECKS"   // nothing could ever serve the request
	FailedNoResource Status = "FAILED_NO_RESOURCE" // no machine may or can be had any more
	FailedController Status = "FAILED_CONTROLLER"  // our own fault, after its budget was spent
)

// Statuses lists all statuses in the order in which people read them.
var Statuses = []Status{
	Pending, Starting, Running, Recovering, Cancelling,
	Succeeded, Cancelled, Failed, FailedSetup, FailedPrechecks, FailedNoResource, FailedController,
}

// Valid reports whether s is one of [Statuses].
func (s Status) Valid() bool { return slices.Contains(Statuses, s) }

// Terminal reports whether s is final (G5: nothing leaves it).
func (s Status) Terminal() bool {
	switch s {
	case Succeeded, Cancelled, Failed, FailedSetup, FailedPrechecks, FailedNoResource, FailedController:
		return true
	default:
		return false
	}
}

// Failure reports whether s is an ending that is neither success nor a wish.
func (s Status) Failure() bool { return s.Terminal() && s != Succeeded && s != Cancelled }

package account

import (
	"fmt"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// Stage says in a few words what is going on with a job whose code does not run: "job 7 asks local/a for a machine". It is
// "" for one that runs or has ended.
func Stage(r *job.Record) string {
	var does string
	switch status := r.Status(); {
	case status == job.Running || status.Terminal():
		return ""
	case status == job.Cancelling:
		does = "is being cancelled"
	case !r.Wait.For.IsZero():
		does = Awaits(r.Wait.For)
	case len(r.Live) == 0:
		does = "waits for a machine"
	default:
		does = stageOf(r.Live[len(r.Live)-1])
	}
	return fmt.Sprintf("job %d %s", r.ID, does)
}

// Awaits says what a job waits for.
func Awaits(c job.Cause) string {
	if s := Explain(c); strings.HasPrefix(s, "waits ") {
		return s
	}
	return "waits: " + Explain(c)
}

// stageOf says what is going on with the newest machine of a job.
func stageOf(a job.Attempt) string {
	where := Place(a.Offer)
	switch a.Phase {
	case job.PhaseIntent:
		return "asks " + where + " for a machine"
	case job.PhaseBooting:
		return "waits until its machine at " + where + " is up"
	case job.PhaseReady:
		return "is being started at " + where
	default:
		return "gives its machine at " + where + " back"
	}
}

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// Rules are the numbers that decisions use. The zero value of a field is not a default: start from [DefaultRules].
type Rules struct {
	Deployment  string        // part of every attempt's token
	Quick       time.Duration // between looks while something is expected
	Quiet       time.Duration // between looks at a job that only runs
	ExitGrace   time.Duration // from a failing exit to the view that tells a preemption from the user's failure
	Probes      int           // probes without an answer, and
	ProbeTime   time.Duration // time without an answer, both needed for a verdict
	BootTimeout time.Duration // from create to running, and from running to started
	StopGrace   time.Duration // between TERM and KILL when a task is stopped
	Durable     time.Duration // age at which no store loses a commit any more: 0 for one that writes before it answers
}

// DefaultRules are the numbers of the specification.
var DefaultRules = Rules{
	Quick:       time.Second,
	Quiet:       15 * time.Second, // SkyPilot: JOB_STATUS_CHECK_GAP_SECONDS
	ExitGrace:   5 * time.Second,  // SkyPilot: controller.py, let a preemption become visible
	Probes:      5,                // with ProbeTime: one slow round must not spend the whole budget (its issue 10123)
	ProbeTime:   time.Minute,
	BootTimeout: 10 * time.Minute,
	StopGrace:   30 * time.Second,
	Durable:     2 * time.Second, // twice what a Redis with appendfsync everysec may lose
}

const (
	quietGrowth  = 1.5         // each quiet look waits this much longer than the one before
	callFirst    = time.Second // first wait after a failed call
	callGrowth   = 2           // and how it grows
	createTries  = 5           // lost or failed answers to one create before its attempt is closed
	crashSoon    = time.Minute // a failure within this of the start counts as a crash
	maxCrashWait = 5 * time.Minute
	cleanReads   = 2                // views without a machine that prove it gone: one may be stale or a provider's lapse
	lapse        = time.Second      // of a provider's list, in which it lacks a machine: longer than one lasts
	soonEnough   = 4 * time.Second  // after it a view that lacks the machine again is no lapse of its own
	missesInARow = 5                // views without a machine that prove it gone, however far apart
	pauseTime    = 10 * time.Second // until another worker may try what one cannot
	slotRecheck  = 30 * time.Second // a granted slot wakes the job; this is for a grant that got lost
	maxCallWait  = 30 * time.Second
	maxCloseWait = 5 * time.Minute       // a machine that cannot be ended is tried for ever, at this pace
	shortest     = 20 * time.Millisecond // of all waits; a local machine is up in less than a tenth of a second
	pollFirst    = 50 * time.Millisecond
	pollMax      = 2 * time.Second
)

// Before a machine goes without its last log lines, the archive must have failed so often and for so long.
const (
	saveTries          = 5                // one slow write must not spend the time
	savePatience       = 10 * time.Minute // of an ended task: an archive is restarted, a disk is emptied; a machine costs cents
	savePatienceHeldUp = time.Minute      // where the next machine waits
)

// Fault budget (SkyPilot: jobs/constants.py, emergency recovery).
const (
	faultBudget = 10
	faultFirst  = time.Minute
	faultMax    = 30 * time.Minute
	faultForget = 6 * time.Hour // without a fault, and the budget is whole again
)

// grow is first × factor^n, at most limit.
func grow(first time.Duration, factor float64, n int, limit time.Duration) time.Duration {
	d := float64(first) * math.Pow(factor, float64(n))
	if d > float64(limit) || math.IsInf(d, 0) {
		return limit
	}
	return time.Duration(d)
}

// jitter spreads d by ± part, the same way for the same seed: decisions have no dice.
func jitter(d time.Duration, part float64, seed string) time.Duration {
	h := sha256.Sum256([]byte(seed))
	unit := float64(uint32(h[0])<<16|uint32(h[1])<<8|uint32(h[2])) / float64(1<<24) // [0, 1)
	return time.Duration(float64(d) * (1 - part + 2*part*unit))
}

// Token is what makes the create call of an attempt idempotent. Two jobs never share one, also if a store has given them
// the same id: their nonces differ.
func Token(deployment string, id ID, nonce string, task, attempt int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s/%d/%d", deployment, id, nonce, task, attempt))
	return "ol-" + hex.EncodeToString(h[:12])
}

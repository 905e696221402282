package job

import (
	"strings"
	"time"
)

// Code is the machine-readable reason of an ending, a recovery or a wait (G13). Codes are part of
// the public interface: they never change their meaning.
type Code string

// The codes.
const (
	CodeSucceeded      Code = "succeeded"         // the user's code ended with exit code 0
	CodeUserExit       Code = "user_exit"         // the user's code ended with a non-zero exit code
	CodeUserSignal     Code = "user_signal"       // the user's code was ended by a signal on a healthy machine
	CodeUserMemory     Code = "user_memory"       // the user's code was killed for memory
	CodeSetupExit      Code = "setup_exit"        // the user's setup ended with a non-zero exit code
	CodePreempted      Code = "preempted"         // the provider took the machine
	CodeNotice         Code = "preemption_notice" // the provider says that it will take the machine
	CodeVanished       Code = "machine_vanished"  // the provider does not know the machine any more
	CodeUnreachable    Code = "unreachable"       // no answer for long enough, though the provider says running
	CodeAgentLost      Code = "agent_lost"        // the run's supervisor is gone, its exit code unknown
	CodeStartAmbiguous Code = "start_ambiguous"   // a start was cut off where it may or may not have run
	CodeBootTimeout    Code = "boot_timeout"      // the machine was not ready in time
	CodeCapacity       Code = "no_capacity"       // the provider has no such machine now
	CodeQuota          Code = "quota"             // the account may not have more
	CodeDenied         Code = "denied"            // the provider refuses the credentials
	CodeInvalid        Code = "invalid_request"   // the provider can never serve this request
	CodeProvider       Code = "provider_error"    // the provider failed, for now
	CodeNoOffer        Code = "no_offer"          // nothing matches the resources
	CodeNeverRecover   Code = "never_recover"     // the machine was lost and the job's strategy is NEVER
	CodeCancelled      Code = "cancelled"         // the user cancelled
	CodeChainStopped   Code = "chain_stopped"     // an earlier task of the chain did not succeed
	CodeForgotten      Code = "forgotten"         // a machine of this task that the store has forgotten
	CodeController     Code = "controller_fault"  // our own fault
	CodeStore          Code = "archive_failed"    // the logs or the bundle could not be stored or read
	CodeLaunchSlot     Code = "launch_slot"       // waits for a launch slot
	CodeRateLimit      Code = "rate_limit"        // waits for its turn: the calls of the provider are limited
	CodeBackoff        Code = "backoff"           // waits for the next round of offers
	CodeBooting        Code = "booting"           // waits for the machine to come up
	CodeClosing        Code = "closing"           // waits for the provider to end the old machine
	CodeSecrets        Code = "secrets_locked"    // waits for a worker that can open the job's secrets
	CodeNothingToRun   Code = "nothing_to_run"    // the task has no run section
	CodeMaxDuration    Code = "max_duration"      // the user's code ran for as long as the job file allows
	CodeMaxWait        Code = "max_wait"          // no machine ran the task within the time that the job file allows
	CodeResumed        Code = "resumed"           // a person let the job go again
	CodeNotTold        Code = "not_told"          // a webhook or callback could not be told
)

// Cause explains an ending or a recovery: a code for programs, a sentence for people, and the evidence it rests on.
type Cause struct {
	Code     Code   `json:"code,omitempty"`
	Text     string `json:"text"`
	Evidence string `json:"evidence,omitempty"`
}

// IsZero reports whether there is no cause.
func (c Cause) IsZero() bool { return c == Cause{} }

// longest bounds, in bytes, what a record keeps of the words of providers and agents: it is read at every look.
const longest = 200

// brief is c with its evidence cut to what a record keeps.
func (c Cause) brief() Cause {
	c.Evidence = brief(c.Evidence)
	return c
}

// brief cuts text at the bound, between two characters.
func brief(text string) string {
	const more = "…"
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest-len(more)], "") + more
}

// Class says what may be done about a fault of a provider or a machine (G8).
type Class string

// The classes. Whatever cannot be told is Transient.
const (
	Capacity  Class = "capacity"  // no such machine there now: try another offer
	Quota     Class = "quota"     // the account may not have more there: try another place
	Denied    Class = "denied"    // the credentials do not allow it
	Invalid   Class = "invalid"   // the same request can never succeed
	Throttled Class = "throttled" // too many calls: slow down, then the same again
	Transient Class = "transient" // the same again, after a while
	Locked    Class = "locked"    // this worker cannot open the job's secrets: another one may
)

// Permanent reports whether repeating the same request cannot help.
func (c Class) Permanent() bool { return c == Denied || c == Invalid }

// Fault is a classified error in a form that can be stored and decided on.
type Fault struct {
	Class Class  `json:"class"`
	Scope string `json:"scope,omitempty"` // for Capacity and Quota: "zone", "region", "type" or "cloud"
	Text  string `json:"text"`
	// Wait is set if the call was not made at all, since its turn has not come: nothing has failed, and it may be tried
	// again after so long.
	Wait time.Duration `json:"-"`
}

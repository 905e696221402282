package job

import "slices"

// Phase says how far the machines of an attempt have come.
type Phase string

// The phases, in order. An attempt only ever goes forward.
const (
	PhaseIntent  Phase = "intent"  // committed, the create call may or may not have been made
	PhaseBooting Phase = "booting" // the provider has made the machines
	PhaseReady   Phase = "ready"   // the machines run; the user's code may be started
	PhaseStarted Phase = "started" // the user's code was started
	PhaseClosing Phase = "closing" // being stopped and terminated; never used again
	PhaseGone    Phase = "gone"    // the provider was seen twice without them
)

// Attempt is one incarnation of a task: a set of machines, made, used once and ended.
type Attempt struct {
	Task   int    `json:"task,omitempty"`
	Number int    `json:"n"` // 1, 2, ... within the task; never used twice
	Offer  Offer  `json:"offer"`
	Token  string `json:"token"` // makes the create call idempotent
	Phase  Phase  `json:"phase"`
	Nodes  []Node `json:"nodes,omitempty"`

	IntentAt  Time `json:"intent_at,omitempty"`
	CreatedAt Time `json:"created_at,omitempty"`
	ReadyAt   Time `json:"ready_at,omitempty"`
	StartedAt Time `json:"started_at,omitempty"`
	EndedAt   Time `json:"ended_at,omitempty"` // when the user's code was seen to have ended, or the machine to be lost
	ClosingAt Time `json:"closing_at,omitempty"`
	GoneAt    Time `json:"gone_at,omitempty"`

	Exit   *Exit   `json:"exit,omitempty"`
	Notice *Notice `json:"notice,omitempty"`
	Why    Cause   `json:"why,omitzero"` // why it was closed

	Tries  int  `json:"tries,omitempty"`   // calls or looks in this phase, for its back-off
	Reads  int  `json:"reads,omitempty"`   // clean reads in a row while closing, or misses in a row while booting
	ReadAt Time `json:"read_at,omitempty"` // time of the view that was counted last
	MissAt Time `json:"miss_at,omitempty"` // time of the last view that lacked a machine and was counted
	TermAt Time `json:"term_at,omitempty"` // closing: when the provider took the order to end them
	// AlarmAt is when it was told that the machines cannot be ended: once.
	AlarmAt Time `json:"alarm_at,omitempty"`
	Stop    bool `json:"stop,omitempty"`    // closing: the user's code is to be told to end
	StopAt  Time `json:"stop_at,omitempty"` // closing: when it was told first
	Saved   bool `json:"saved,omitempty"`   // closing: its logs are in the archive, or as much as could be had
}

// Closes reports whether next begins to close an attempt that r does not.
func (r *Record) Closes(next *Record) bool {
	return slices.ContainsFunc(next.Live, func(a Attempt) bool {
		return a.Phase == PhaseClosing && !slices.ContainsFunc(r.Live, func(b Attempt) bool {
			return b.Phase == PhaseClosing && b.Task == a.Task && b.Number == a.Number
		})
	})
}

// ended keeps how the user's code ended.
func (a *Attempt) ended(e *Exit, now Time) {
	kept := *e
	kept.Text = brief(kept.Text)
	a.Exit, a.EndedAt = &kept, now
}

// Node is one machine of an attempt.
type Node struct {
	ID      string `json:"id"`             // the provider's name of it
	Address string `json:"addr,omitempty"` // where a Shell reaches it
}

// Exit is how the user's code ended, as the agent recorded it on the node.
type Exit struct {
	Stage  string `json:"stage"`            // "setup" or "run"
	Code   int    `json:"code"`             // 128+signal if ended by a signal
	Signal string `json:"signal,omitempty"` // name of the signal, e.g. "SIGKILL"
	Memory bool   `json:"oom,omitempty"`    // killed for memory
	Text   string `json:"text,omitempty"`   // why it could not be started at all
}

// Notice is a provider's word that it will take the machine.
type Notice struct {
	At    Time  `json:"at"`    // when it was first seen
	After int64 `json:"after"` // seconds left at that time
}

package job

import (
	"maps"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/planted"
)

// Step says who has to act next on a job.
type Step string

// The steps; see the package comment.
const (
	StepLaunch  Step = "launch"
	StepWatch   Step = "watch"
	StepRecover Step = "recover"
	StepCleanup Step = "cleanup"
	StepDone    Step = "done"
)

// Acts reports whether the step is carried out by an act of its own rather than by the watch.
func (s Step) Acts() bool { return s == StepLaunch || s == StepRecover || s == StepCleanup }

// Head is what never changes about a job and is needed at every look. The rest of the request is kept apart.
type Head struct {
	ID          ID         `json:"id"`
	Nonce       string     `json:"nonce,omitempty"` // random: a store that lost its last second gives the same ids again
	Name        string     `json:"name"`
	User        string     `json:"user,omitempty"`
	Priority    int        `json:"priority,omitempty"`
	SubmittedAt Time       `json:"submitted_at"`
	Tells       bool       `json:"tells,omitempty"` // it has somebody to tell its changes of status; see News
	Tasks       []TaskHead `json:"tasks"`

	LogRetention time.Duration `json:"log_retention,omitempty"` // see Request
}

// TaskHead is the part of a task's request that decisions need.
type TaskHead struct {
	Name     string        `json:"name,omitempty"`
	Recovery Recovery      `json:"recovery,omitzero"`
	Grace    time.Duration `json:"grace,omitempty"` // between TERM and KILL; 0 means Rules.StopGrace
	Idle     bool          `json:"idle,omitempty"`  // there is nothing to run

	MaxDuration time.Duration `json:"max_duration,omitempty"` // see limits.go
	MaxWait     time.Duration `json:"max_wait,omitempty"`
}

// HeadOf takes the head out of a request.
func HeadOf(id ID, r Request, submitted Time) Head {
	h := Head{ID: id, Name: r.Name, User: r.User, Priority: r.Priority, SubmittedAt: submitted, LogRetention: r.LogRetention, Tells: len(r.Webhooks) > 0}
	for _, t := range r.Tasks {
		h.Tells = h.Tells || t.EventCallback != ""
		h.Tasks = append(h.Tasks, TaskHead{
			Name: t.Name, Recovery: t.Recovery, Grace: t.Grace, Idle: t.Run == "", MaxDuration: t.MaxDuration, MaxWait: t.MaxWait,
		})
	}
	return h
}

// Task is the state of one task of the chain. Its counters live here and survive every worker (G8).
type Task struct {
	Status          Status `json:"-"` // stored apart: every commit is guarded by it
	StartedAt       Time   `json:"started_at,omitempty"`
	EndedAt         Time   `json:"ended_at,omitempty"`
	LastRecoveredAt Time   `json:"last_recovered_at,omitempty"` // when the user's code was last seen to start
	SoughtAt        Time   `json:"sought_at,omitempty"`         // since when it wants a machine, if not since the submission
	RunMS           int64  `json:"run_ms,omitempty"`            // run time of earlier attempts, without provisioning and recovery
	SpentMS         int64  `json:"spent_ms,omitempty"`          // of that, before the job was resumed: it counts against no limit
	Recoveries      int    `json:"recoveries,omitempty"`        // genuine losses and failures that were recovered from
	Restarts        int    `json:"restarts,omitempty"`          // of those, counted against max_restarts_on_errors
	Crashes         int    `json:"crashes,omitempty"`           // failures of the user's code in a row, each soon after its start
	NotBefore       Time   `json:"not_before,omitempty"`        // the next machine is sought then: back-off after crashes
	Attempts        int    `json:"attempts,omitempty"`          // highest attempt number used
	Cause           Cause  `json:"cause,omitzero"`              // of the ending, or of the recovery under way
	Later           []Code `json:"later,omitempty"`             // other causes beside it, at most maxLater
	Search          Search `json:"search,omitzero"`
}

// RunTime is how long the user's code has run in all attempts together, at now.
func (t Task) RunTime(now Time) time.Duration {
	d := time.Duration(t.RunMS) * time.Millisecond
	if t.Status == Running && !t.LastRecoveredAt.IsZero() {
		d += now.Sub(t.LastRecoveredAt)
	}
	return d
}

// Look is what the watch remembers from one look to the next about the attempt that runs. A new attempt
// starts with a clean one: suspicion belongs to one incarnation (G6).
type Look struct {
	Every     int64 `json:"every,omitempty"`      // milliseconds until the next look
	Fails     int   `json:"fails,omitempty"`      // probes without an answer, in a row
	FailSince Time  `json:"fail_since,omitempty"` // first of them
	Misses    int   `json:"misses,omitempty"`     // views without one of the machines, in a row
	MissAt    Time  `json:"miss_at,omitempty"`    // the last of those
	ViewAt    Time  `json:"view_at,omitempty"`    // the view that was counted last
	ExitAt    Time  `json:"exit_at,omitempty"`    // when a failing exit was first seen
	Tail      int64 `json:"tail,omitempty"`       // bytes of the log that were copied to the live tail
	Kept      int64 `json:"kept,omitempty"`       // bytes of the log that are in the archive
	KeptAt    Time  `json:"kept_at,omitempty"`
}

// Cancel is a user's wish to end the job. It is durable and honoured by whoever drives next (G7).
type Cancel struct {
	At    Time          `json:"at"`
	By    string        `json:"by,omitempty"`
	Grace time.Duration `json:"grace,omitempty"` // between TERM and KILL; negative means the task's own
}

// Preempt is a user's wish to lose the machine, to see that the job survives it.
type Preempt struct {
	At     Time          `json:"at"`
	Notice time.Duration `json:"notice,omitempty"`
}

// Waiting says what a job waits for and until when at the latest it is looked at again.
type Waiting struct {
	For   Cause `json:"for,omitzero"`
	Since Time  `json:"since,omitempty"`
	Until Time  `json:"until,omitempty"`
	Tries int   `json:"tries,omitempty"` // calls that failed in a row, for the back-off
}

// Faults is the budget for errors of our own.
type Faults struct {
	N    int    `json:"n,omitempty"`
	Last Time   `json:"last,omitempty"`
	Text string `json:"text,omitempty"`
}

// Record is all that is known about a job, as one reads and commits it. Fence, Seq and Wake guard the commit.
type Record struct {
	Head
	Step  Step
	Cur   int // index of the task being driven
	Tasks []Task
	Live  []Attempt // attempts of the current task whose machines may exist, oldest first; two at most but for forgotten ones
	Look  Look
	Wait  Waiting
	Fault Faults

	Cancel  *Cancel
	Preempt *Preempt
	Follow  Time // somebody follows the logs until then
	Shut    Time // when the store took the decision that last began to close an attempt; set by the store
	Doubt   Time // a view newer than this must be seen: the provider lost a machine

	Calm bool // the decision was that of a quiet look, and so would the next ones be; see calm.go

	Fence    int64 // raised by every claim; only its holder may commit
	Seq      int64 // raised by every commit
	Wakes    int64 // raised by every wake; a commit that missed one makes the job due at once
	Dispatch int64 // number of the act that must exist
	Ran      int64 // number of the act that last began
	HeldTo   Time  // until when the present claim is good; zero if nobody holds one
	Due      Time  // when somebody must look again

	Events []Event   // outbox of this decision: appended to the job's history with the commit
	Past   []Attempt // outbox: attempts that are gone
}

// Event is a line of a job's history. It is written by the same commit as what it tells.
type Event struct {
	At      Time   `json:"at"`
	Kind    string `json:"kind"` // "status", "attempt" or "note"
	Task    int    `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Cause   Cause  `json:"cause,omitzero"`
}

// NewRecord is the record of a job as submitted.
func NewRecord(h Head) Record {
	r := Record{Head: h, Step: StepLaunch, Dispatch: 1}
	for range h.Tasks {
		r.Tasks = append(r.Tasks, Task{Status: Pending})
	}
	return r
}

// Status is the job's status: that of its first task that has not succeeded.
func (r *Record) Status() Status {
	for _, t := range r.Tasks {
		if t.Status != Succeeded {
			return t.Status
		}
	}
	return Succeeded
}

// Recoveries is the sum over all tasks.
func (r *Record) Recoveries() int {
	n := 0
	for _, t := range r.Tasks {
		n += t.Recoveries
	}
	return n
}

// Ended reports whether every task of the job has a final status. Its machines may still be closing.
func (r *Record) Ended() bool {
	return !slices.ContainsFunc(r.Tasks, func(t Task) bool { return !t.Status.Terminal() })
}

// HoldsSlot reports whether the job is on the way from create to started, and so counts as a launch. A machine that
// is ready and waits for the code on an old one to end is not, nor is a create that waits for its turn: waiting holds
// nothing (G9).
func (r *Record) HoldsSlot() bool {
	a := r.newest()
	switch {
	case planted.On(planted.G9):
		return true
	case r.Step != StepLaunch || a == nil || a.Phase == PhaseStarted:
		return false
	case a.Phase == PhaseIntent && a.Tries == 0:
		return r.Wait.For.Code != CodeRateLimit && r.Wait.For.Code != CodeLaunchSlot
	default:
		return a.Phase != PhaseReady || len(r.Live) == 1
	}
}

// NeedsSlot reports whether a slot that the job has held for a while may still be of use to it: also one that was only
// granted, as long as the job can come for it, and one whose job somebody drives, who commits last what has come of it.
func (r *Record) NeedsSlot(granted bool, now Time) bool {
	return r.HeldTo > now || r.HoldsSlot() || granted && r.Step == StepLaunch
}

// task is the task being driven.
func (r *Record) task() *Task { return &r.Tasks[r.Cur] }

// newest is the live attempt that is to run the task: the last one that is not being closed.
func (r *Record) newest() *Attempt {
	for i := len(r.Live) - 1; i >= 0; i-- {
		if r.Live[i].Phase != PhaseClosing {
			return &r.Live[i]
		}
	}
	return nil
}

// Started is the live attempt in which the user's code was started, or nil.
func (r *Record) Started() *Attempt {
	for i := range r.Live {
		if r.Live[i].Phase == PhaseStarted {
			return &r.Live[i]
		}
	}
	return nil
}

// Attempt returns the live attempt with that number, or nil.
func (r *Record) Attempt(number int) *Attempt {
	for i := range r.Live {
		if r.Live[i].Number == number {
			return &r.Live[i]
		}
	}
	return nil
}

// Clone returns a copy with an empty outbox, which is to be decided on. It shares with r only what is never changed in place: the head and what
// pointers point to.
func (r *Record) Clone() Record {
	c := *r
	c.Events, c.Past, c.Calm = nil, nil, false
	c.Tasks = slices.Clone(r.Tasks)
	for i := range c.Tasks {
		c.Tasks[i].Later = slices.Clone(r.Tasks[i].Later)
		c.Tasks[i].Search = r.Tasks[i].Search.clone()
	}
	c.Live = slices.Clone(r.Live)
	for i := range c.Live {
		c.Live[i].Nodes = slices.Clone(r.Live[i].Nodes)
	}
	return c
}

func (s Search) clone() Search {
	s.Tried = slices.Clone(s.Tried)
	s.Penalties = maps.Clone(s.Penalties)
	return s
}

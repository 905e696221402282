package job

import "time"

// DoKind names what a driver can do in the world for a job.
type DoKind string

// The kinds. Each may be done twice without harm.
const (
	DoNext      DoKind = "next"      // nothing: commit and decide again
	DoWait      DoKind = "wait"      // nothing before Until
	DoHold      DoKind = "hold"      // ask for a launch slot, or renew it
	DoChoose    DoKind = "choose"    // ask the providers for offers and choose one
	DoSurvey    DoKind = "survey"    // a view of this job's machines newer than Newer
	DoCreate    DoKind = "create"    // make the machines of Attempt
	DoProbe     DoKind = "probe"     // ask the agent of Attempt how it goes
	DoStart     DoKind = "start"     // start the user's code in Attempt
	DoStop      DoKind = "stop"      // end the user's code in Attempt, with Grace
	DoSave      DoKind = "save"      // bring the rest of the log of Attempt into the archive
	DoTerminate DoKind = "terminate" // end the machines of Attempt
	DoPreempt   DoKind = "preempt"   // take a machine of Attempt away, with Grace as notice
	DoEnd       DoKind = "end"       // nothing, ever again
)

// Do is one thing to do in the world, after the record was committed.
type Do struct {
	Kind    DoKind
	Attempt int           // number of the live attempt it is about
	Until   Time          // DoWait
	Leave   bool          // DoWait: nobody is to stay for it, however short it is
	Newer   Time          // DoSurvey
	Wide    bool          // DoSurvey: also of other regions, as far as they answer
	Grace   time.Duration // DoStop, DoPreempt
}

// Seen is what came of it. A driver starts with an empty one and adds each result, replacing earlier ones of the same kind.
type Seen struct {
	Slot      *bool    // granted or not
	Choice    *Chosen  //
	Survey    *Survey  //
	Create    *Created //
	Probe     *Probe   //
	Start     *Probe   // how the run stood after start
	Stop      *Outcome //
	Save      *Outcome //
	Terminate *Outcome //
	Preempt   *Outcome //
}

// Outcome is the result of something that has none but success or failure.
type Outcome struct {
	Attempt int
	At      Time
	Fault   *Fault
}

// Chosen is the result of DoChoose.
type Chosen struct {
	Choice
	Fault *Fault // the offers could not be had
}

// Created is the result of DoCreate.
type Created struct {
	Attempt int
	Nodes   []SeenNode
	Fault   *Fault
}

// NodeState is a provider's word on a machine, as far as decisions need it.
type NodeState string

// The node states.
const (
	NodeBooting  NodeState = "booting"
	NodeRunning  NodeState = "running"
	NodeStopping NodeState = "stopping" // may still run code
	NodeEnded    NodeState = "ended"    // runs nothing any more, certainly
)

// SeenNode is one machine in a view.
type SeenNode struct {
	Node
	Task    int
	Attempt int
	State   NodeState
	Reason  string // in the provider's words
	Where   Offer  // what it was made as; only Provider and Region matter
}

// Survey is a whole view of this job's machines in the regions of its live attempts, or a Fault and nothing. A wide
// one shows those of other regions too; a region that does not answer is left out of that.
type Survey struct {
	At     Time          // when the provider was asked
	Settle time.Duration // how long the provider's answers may lag behind
	Nodes  []SeenNode
	Fault  *Fault
}

// of returns the nodes of one attempt.
func (s *Survey) of(task, attempt int) []SeenNode {
	var out []SeenNode
	for _, n := range s.Nodes {
		if n.Task == task && n.Attempt == attempt {
			out = append(out, n)
		}
	}
	return out
}

// RunState is the agent's word on the user's code.
type RunState string

// The run states. RunAlive covers setup and run, supervised or not.
const (
	RunAbsent RunState = "absent" // was never started there
	RunAlive  RunState = "alive"
	RunExited RunState = "exited"
	RunLost   RunState = "lost" // certainly not running, and unknown how it ended
)

// Probe is what the agent of an attempt answered, or a Fault if it did not. For several nodes it is the
// worst of their answers.
type Probe struct {
	Attempt int
	At      Time // when it was asked
	State   RunState
	Exit    *Exit
	Notice  *Notice
	Tail    int64 // new value of Look.Tail
	Kept    int64 // new value of Look.Kept
	Fault   *Fault
}

// Package history is what a run of the fault suite has recorded: what was asked for, what was broken, what the fleet
// said, and what really happened. A run writes it ([Writer]), a judge reads it ([Read]). It knows nothing of the product,
// so that whoever judges by it cannot share a mistake with what is judged.
//
// A history is a folder. Each file *.jsonl in it holds lines of one form, {"kind": KIND, "of": {…}}:
//
//	history.jsonl   what was done and seen while the run went on, in the order of time:
//	                run, worker, submission, cancel, preemption, fault, heal, seen, sample, call
//	ledger.jsonl    entry: the ledger of the sim provider, whole: what its machines and the code on them really did
//	traces.jsonl    trace: what the user's code on local machines has written down itself
//	jobs.jsonl      job: each job at the end, as the client tells it
//	end.jsonl       machine, process: what was left one collector interval after the end; searched, leak
//
// Beside them lie what people want to read: the logs of the workers and of Redis, and the settings.
//
// All times are milliseconds since 1970 by one clock: everything of a run is on one computer.
package history

import "time"

// Time is milliseconds since 1970. Zero is never.
type Time int64

// TimeOf is a time as a history has it.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Std is the time as Go has it.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)) }

// Sub is the time between two times.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// Add is a time later by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// History is a whole run.
type History struct {
	Run         Run
	Workers     []Worker
	Submissions []Submission
	Cancels     []Cancel
	Resumes     []Resume
	Preemptions []Preemption
	Faults      []Fault // with their ends, see [Heal]
	Seen        []Seen
	Samples     []Sample
	Calls       []Call
	Ledger      []Entry
	Traces      []Trace
	Jobs        []Job
	Machines    []Machine
	Processes   []Process
	Searched    []Searched
	Leaks       []Leak
}

// Run is the run as such. It is written at the begin and once more, complete, at the end: the last one counts.
type Run struct {
	Seed    uint64 `json:"seed"`
	Size    string `json:"size"`
	Planted string `json:"planted,omitempty"` // the bug that was planted

	Began   Time `json:"began"`
	Healed  Time `json:"healed"`   // from here on no fault was begun, and none was left
	CalmAt  Time `json:"calm_at"`  // all jobs had ended and were cleaned up; 0: they never were, and the run gave up
	EndedAt Time `json:"ended_at"` // of the dumps

	Secret   string   `json:"secret"` // the value that must be found nowhere
	Launches int      `json:"launches"`
	Shards   int      `json:"shards"`
	Worlds   []string `json:"worlds,omitempty"` // of the sim provider
	Times    Times    `json:"times"`            // the settings of the fleet
}

// Times are the settings that bounds of guarantees follow from.
type Times struct {
	Lease     time.Duration `json:"lease"`
	Claim     time.Duration `json:"claim"`
	Backoff   time.Duration `json:"backoff"`
	Collector time.Duration `json:"collector"` // from a machine's end of use to its end, at most, when nothing is broken
	Grace     time.Duration `json:"grace"`     // between TERM and KILL of a cancel, unless it says otherwise
	Probes    int           `json:"probes"`    // without an answer, and
	ProbeTime time.Duration `json:"probe_time"`
}

// Worker is something that happened to a worker's process.
type Worker struct {
	At      Time   `json:"at"`
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Op      string `json:"op"` // started, killed, stopped (asked to), ended, frozen, thawed
	Version string `json:"version,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Submission is one accepted submission: that of Jobs, which all have the same right endings.
type Submission struct {
	At    Time    `json:"at"`  // when it was first asked for
	Got   Time    `json:"got"` // when it was answered
	Key   string  `json:"key"`
	Kind  string  `json:"kind"` // of the jobs, such as "short" or "cancelled"
	Tries int     `json:"tries"`
	Jobs  []int64 `json:"jobs"`

	Provider string   `json:"provider"` // sim or local
	Tasks    int      `json:"tasks"`
	Priority int      `json:"priority,omitempty"`
	Expect   []string `json:"expect"`           // the final statuses that are right
	Causes   []string `json:"causes,omitempty"` // the codes of causes that are right; none says that any is
	Lines    []string `json:"lines,omitempty"`  // of output that must be in the log of each that has succeeded, in this order
	// NoRecovery says that no machine of these jobs is ever taken, so that none may have been recovered.
	NoRecovery bool `json:"no_recovery,omitempty"`
}

// Cancel is a cancel that was asked for.
type Cancel struct {
	At    Time          `json:"at"`  // when it was first asked for
	Got   Time          `json:"got"` // when it was acknowledged; 0 if it never was
	Job   int64         `json:"job"`
	Saw   string        `json:"saw"` // the job's status before it
	Grace time.Duration `json:"grace"`
	Tries int           `json:"tries"`
	Late  bool          `json:"late,omitempty"` // the answer to the last try was that the job had ended already, or is cancelled
}

// Resume is a second life that was asked for, for a job that a client had been told has ended.
type Resume struct {
	At    Time   `json:"at"`  // when it was first asked for
	Got   Time   `json:"got"` // when it was acknowledged; 0 if it never was
	Job   int64  `json:"job"`
	Saw   string `json:"saw"` // the job's status before it
	Tries int    `json:"tries"`
	Late  bool   `json:"late,omitempty"` // the answer to the last try was that the job cannot go again: it does already, if an answer was lost
}

// Preemption is a machine that was taken on purpose.
type Preemption struct {
	At       Time          `json:"at"`
	Provider string        `json:"provider"`
	Machine  string        `json:"machine"`
	Job      int64         `json:"job"`
	Notice   time.Duration `json:"notice,omitempty"`
}

// Fault is something that was broken.
type Fault struct {
	ID     int    `json:"id"`
	At     Time   `json:"at"`
	Healed Time   `json:"healed,omitempty"` // 0 if it went on until the end
	Name   string `json:"name"`             // the kind: a row of the table of faults
	Target string `json:"target,omitempty"` // worker, zone, machine
	Detail string `json:"detail,omitempty"`
	// Stops says whose work it stopped: "all" if nobody could drive a job while it went on, "one" if one worker could not,
	// "ticks" if all could and nothing told them to until they had taken over the ticks that were lost, "" if it stopped none.
	Stops string `json:"stops,omitempty"`
	// Forgets is until when Redis may have taken writes, from the begin of the fault on, that are lost; 0 if none are.
	Forgets Time `json:"forgets,omitempty"`
	// Cloud is set for faults of a provider: operation and kind, such as "create" and "lost".
	Op   string `json:"op,omitempty"`
	Kind string `json:"kind,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Failed says that it could not be begun, so that nothing was broken.
	Failed string `json:"failed,omitempty"`
}

// Heal is the end of a fault.
type Heal struct {
	ID int  `json:"id"`
	At Time `json:"at"`
}

// Seen is what the client said of a job while the run went on, whenever it was news. One look came after the other: their
// order is that in which it was so.
type Seen struct {
	At         Time   `json:"at"`  // when it was asked
	Got        Time   `json:"got"` // when it was answered
	Job        int64  `json:"job"`
	Status     string `json:"status"`
	Cause      string `json:"cause,omitempty"` // its code
	Recoveries int    `json:"recoveries"`
	Attempts   int    `json:"attempts"`
	Restarts   int    `json:"restarts"`
	Via        string `json:"via"` // queue, show or wait
}

// Sample is a look into Redis.
type Sample struct {
	At      Time   `json:"at"`
	Slots   []Slot `json:"slots"`   // launch slots held
	Waiting int    `json:"waiting"` // jobs in the line for one
	Live    int    `json:"live"`    // jobs that have not ended
	// Overdue is how long the job that waits longest has been due without anybody taking it, and Silence the same for the
	// chains of ticks. Both are gaps without a driver.
	Overdue time.Duration `json:"overdue"`
	Job     int64         `json:"job,omitempty"` // the one
	Silence time.Duration `json:"silence"`
	Chain   string        `json:"chain,omitempty"`
}

// Slot is a launch slot that a job holds, and what the job's record said in the same look.
type Slot struct {
	Job    int64  `json:"job"`
	Until  Time   `json:"until"`
	Step   string `json:"step"`
	Status string `json:"status"`
	Wait   string `json:"wait,omitempty"` // what it waits for
}

// Call is a run of the client that failed.
type Call struct {
	At   Time          `json:"at"`
	Took time.Duration `json:"took"`
	Args []string      `json:"args"`
	Exit int           `json:"exit"`
	Code string        `json:"code,omitempty"` // of the error that it told
	Text string        `json:"text,omitempty"`
}

// Entry is a line of the ledger of the sim provider.
type Entry struct {
	At         Time   `json:"at"`
	World      string `json:"world"`
	Op         string `json:"op"`
	By         string `json:"by,omitempty"`
	Machine    string `json:"machine,omitempty"`
	Deployment string `json:"deployment,omitempty"`
	Job        int64  `json:"job,omitempty"`
	Task       int    `json:"task"`
	Attempt    int    `json:"attempt,omitempty"`
	Token      string `json:"token,omitempty"`
	Zone       string `json:"zone,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// Trace is a line that the user's code on a local machine has written about itself.
type Trace struct {
	At      Time   `json:"at"`
	Job     int64  `json:"job"`
	Task    int    `json:"task"`
	Attempt int    `json:"attempt"`
	Op      string `json:"op"` // start, beat, term, end; double: another one held the lock of the job
	PID     int    `json:"pid"`
}

// Job is a job at the end. Its fields are those of `enqueue show -o json`.
type Job struct {
	ID         int64     `json:"id"`
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	Priority   int       `json:"priority"`
	Recoveries int       `json:"recoveries"`
	Submitted  time.Time `json:"submitted_at"`
	Started    time.Time `json:"started_at"`
	Ended      time.Time `json:"ended_at"`
	Cancelling bool      `json:"cancel_asked,omitempty"`
	Waits      *Cause    `json:"waits,omitempty"`
	Cause      *Cause    `json:"cause,omitempty"`
	Tasks      []Task    `json:"tasks"`
	Attempts   []Attempt `json:"attempts"`
	Events     []Event   `json:"events"`

	Log      string `json:"log"`                 // what `enqueue logs` prints
	LogError string `json:"log_error,omitempty"` // what it said if it could not
	Missing  string `json:"missing,omitempty"`   // what `enqueue show` said if it could not
	Damaged  bool   `json:"damaged,omitempty"`   // the record could not be read
}

// Task is a task of a job's chain.
type Task struct {
	Index      int       `json:"index"`
	Status     string    `json:"status"`
	Attempts   int       `json:"attempts"`
	Recoveries int       `json:"recoveries"`
	Restarts   int       `json:"restarts"`
	Started    time.Time `json:"started_at"`
	Ended      time.Time `json:"ended_at"`
	Cause      *Cause    `json:"cause,omitempty"`
}

// Attempt is one machine that a task had, or tried to have.
type Attempt struct {
	Task    int       `json:"task"`
	Number  int       `json:"n"`
	Phase   string    `json:"phase"`
	Offer   Offer     `json:"offer"`
	Nodes   []Node    `json:"nodes,omitempty"`
	Intent  time.Time `json:"intent_at"`
	Created time.Time `json:"created_at"`
	Ready   time.Time `json:"ready_at"`
	Started time.Time `json:"started_at"`
	Ended   time.Time `json:"ended_at"`
	Closing time.Time `json:"closing_at"`
	Gone    time.Time `json:"gone_at"`
	Exit    *Exit     `json:"exit,omitempty"`
	Why     *Cause    `json:"why,omitempty"`
}

// Offer is what an attempt asked for.
type Offer struct {
	Provider string `json:"provider"`
	Region   string `json:"region"`
	Zone     string `json:"zone,omitempty"`
	Type     string `json:"type,omitempty"`
	Spot     bool   `json:"spot,omitempty"`
}

// Node is a machine of an attempt.
type Node struct {
	ID string `json:"id"`
}

// Exit is how the user's code ended.
type Exit struct {
	Stage  string `json:"stage"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// Event is a line of a job's history.
type Event struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Task    int       `json:"task"`
	Attempt int       `json:"attempt,omitempty"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Cause   *Cause    `json:"cause,omitempty"`
}

// Cause is why something happened.
type Cause struct {
	Code     string `json:"code,omitempty"`
	Text     string `json:"text"`
	Evidence string `json:"evidence,omitempty"`
}

// Machine is a machine that was there at the end, one collector interval after the last job was cleaned up.
type Machine struct {
	At       Time   `json:"at"`
	Provider string `json:"provider"`
	ID       string `json:"id"`
	Job      int64  `json:"job"`
	Task     int    `json:"task"`
	Attempt  int    `json:"attempt"`
	Zone     string `json:"zone"`
	State    string `json:"state"`
	Ended    bool   `json:"ended"` // it runs nothing and costs nothing any more
}

// Process is a process of a local machine that was there at the end.
type Process struct {
	At      Time   `json:"at"`
	PID     int    `json:"pid"`
	Machine string `json:"machine"`
	Command string `json:"command"`
}

// Searched is a place in which the planted secret was sought.
type Searched struct {
	Where string `json:"where"` // a file of the run, or "redis"
	Bytes int64  `json:"bytes"`
}

// Leak is a place where it was found.
type Leak struct {
	Where string `json:"where"`
	As    string `json:"as"` // plain, hex or base64
	Near  string `json:"near"`
}

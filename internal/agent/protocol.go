package agent

// State says how far a run has come on its node.
type State string

// The states of a run.
const (
	// Absent: no start was ever carried out here. Starting is safe.
	Absent State = "absent"
	// Starting: a start is under way, or its first stage is about to run.
	Starting State = "starting"
	// Setup and Running: that stage's process is alive under its supervisor.
	Setup   State = "setup"
	Running State = "running"
	// Unsupervised: the supervisor died, the user's code is alive. Its exit code will be lost.
	Unsupervised State = "unsupervised"
	// Exited: it ended, and Exit says how.
	Exited State = "exited"
	// Lost: it is certain that nothing of it runs any more, and unknown how it ended, or whether it ran at all. It is
	// never started again here.
	Lost State = "lost"
)

// StartRequest is the standard input of `agent start DIR`: one JSON document. Secret values are handed on to the
// supervisor through a pipe and to the user's code in its environment; they are never written to a file.
type StartRequest struct {
	Token   string            `json:"token"` // of the attempt; a second start with another token is refused
	Setup   string            `json:"setup,omitempty"`
	Run     string            `json:"run"`
	Env     map[string]string `json:"env,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"`
	// NoticeFile is a file that appears when the machine is about to be taken (local provider); it holds a Notice.
	NoticeFile string `json:"notice_file,omitempty"`
	// NoticeSignal is what the user's code gets then: TERM if empty, INT, HUP, USR1 or USR2; "none" leaves it to the code to
	// look at its notice file.
	NoticeSignal string `json:"notice_signal,omitempty"`
	// NoticeRun is a script that runs then, beside the user's code and with its environment.
	NoticeRun string `json:"notice_run,omitempty"`
	// IdleSeconds is the dead man's switch: this long after the run has ended and nobody polled, the supervisor runs
	// PowerOff. 0 means never.
	IdleSeconds int      `json:"idle_seconds,omitempty"`
	PowerOff    []string `json:"power_off,omitempty"` // argv
	// LeaseSeconds ends a running run that nobody polled for so long (borrowed hosts only). 0 means never.
	LeaseSeconds int `json:"lease_seconds,omitempty"`
	// LogLimit is how many bytes of the log are kept: a quarter of its beginning, and its end. 0 means all.
	LogLimit int64 `json:"log_limit,omitempty"`
}

// Status is the answer to start, poll and stop: one line of JSON on standard output.
type Status struct {
	State   State   `json:"state"`
	Exit    *Exit   `json:"exit,omitempty"`
	Notice  *Notice `json:"notice,omitempty"`
	Token   string  `json:"token,omitempty"`   // of the attempt that was started here
	Already bool    `json:"already,omitempty"` // start: somebody had started it before
	Stopped bool    `json:"stopped,omitempty"` // stop was asked for
	Started int64   `json:"started,omitempty"` // Unix ms by the node's clock
	Ended   int64   `json:"ended,omitempty"`   // Unix ms by the node's clock
	Clock   int64   `json:"clock,omitempty"`   // poll: what the node's clock says, Unix ms
	// LogSize is the length of the whole log in bytes; Log holds the bytes from LogOffset on that poll asked for. They
	// begin later than asked for if those were dropped.
	LogSize   int64  `json:"log_size"`
	LogOffset int64  `json:"log_offset"`
	Log       []byte `json:"log,omitempty"`
	LogGap    *Gap   `json:"log_gap,omitempty"`   // what was dropped of the log
	LogMarks  []Mark `json:"log_marks,omitempty"` // of the bytes in Log
}

// Exit is the exit record, written once and atomically by the supervisor.
type Exit struct {
	Stage  string `json:"stage"`            // "setup" or "run"
	Code   int    `json:"code"`             // 128+signal if ended by a signal; 126 or 127 if it could not be started
	Signal string `json:"signal,omitempty"` // "SIGKILL", ...
	Memory bool   `json:"oom,omitempty"`    // the kernel killed it for memory
	Text   string `json:"text,omitempty"`   // why it could not be started
}

// Gap is a part of a log that was dropped because the log is longer than its limit: the bytes From up to To.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Notice is the word that the machine will be taken.
type Notice struct {
	At       int64 `json:"at"`       // Unix ms by the node's clock when it was seen
	Deadline int64 `json:"deadline"` // Unix ms by the node's clock when the machine goes
}

package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// story is a small history in the making. Its times are seconds since the run began; job 1 has the key "job" and, unless a
// test says otherwise, succeeded in its first attempt on machine m1 of the sim.
type story struct{ history.History }

const began = history.Time(1_700_000_000_000)

func sec(s float64) history.Time { return began + history.Time(s*1000) }

func clockAt(s float64) time.Time { return sec(s).Std() }

func why(code, text, evidence string) *history.Cause {
	return &history.Cause{Code: code, Text: text, Evidence: evidence}
}

// ran is a run in which a job succeeded and nothing went wrong.
func ran() *story {
	s := &story{}
	s.Run = history.Run{
		Size: "ci", Began: began, Healed: sec(60), CalmAt: sec(70), EndedAt: sec(80), Secret: "planted", Launches: 2, Shards: 4,
		Times: history.Times{
			Lease: 4 * time.Second, Claim: 4 * time.Second, Backoff: 2 * time.Second, Collector: 45 * time.Second, Grace: 30 * time.Second,
			Probes: 5, ProbeTime: 8 * time.Second,
		},
	}
	s.Workers = []history.Worker{{At: began, Name: "w1", Op: "started"}, {At: began, Name: "w2", Op: "started"}}
	s.Searched = []history.Searched{{Where: "redis", Bytes: 1000}}
	s.Submissions = []history.Submission{{At: sec(1), Got: sec(1), Key: "job", Kind: "short", Jobs: []int64{1}, Provider: "sim", Tasks: 1, Expect: []string{"SUCCEEDED"}, Lines: []string{"begin", "end"}}}
	s.Jobs = []history.Job{{
		ID: 1, Status: "SUCCEEDED", Submitted: clockAt(1), Started: clockAt(3), Ended: clockAt(9), Cause: why("succeeded", "the user's code ended with exit code 0", ""),
		Tasks: []history.Task{{Status: "SUCCEEDED", Attempts: 1, Ended: clockAt(9), Cause: why("succeeded", "the user's code ended with exit code 0", "")}},
		Log:   "begin\nend\n",
	}}
	s.status(1, "PENDING", "STARTING", nil).attempt(1, "intent", why("", "on sim/a", "")).status(3, "STARTING", "RUNNING", nil)
	s.status(9, "RUNNING", "SUCCEEDED", s.Jobs[0].Cause).attempt(9, "closing", s.Jobs[0].Cause)
	s.tell(1.5, "create", "m1", 1, "").tell(3, "start", "m1", 1, endsAt(8, 0)).tell(9.5, "terminate", "m1", 1, "").tell(10, "terminated", "m1", 1, "")
	s.see(5, "RUNNING").see(12, "SUCCEEDED")
	s.job().Attempts = []history.Attempt{{Number: 1, Offer: history.Offer{Provider: "sim"}, Started: clockAt(3)}}
	s.Samples = []history.Sample{{At: sec(2)}}
	return s
}

// endsAt is the detail of a start whose code ends by itself, with an exit code.
func endsAt(ends float64, exit int) string {
	at := history.Time(0)
	if ends > 0 {
		at = sec(ends)
	}
	return fmt.Sprintf(`{"ends":%d,"exit":%d,"stage":"run"}`, at, exit)
}

func (s *story) job() *history.Job { return &s.Jobs[0] }

func (s *story) event(e history.Event) *story {
	s.job().Events = append(s.job().Events, e)
	return s
}

func (s *story) status(at float64, from, to string, c *history.Cause) *story {
	n := 0
	for _, e := range s.job().Events {
		n = max(n, e.Attempt)
	}
	return s.event(history.Event{At: clockAt(at), Kind: "status", Attempt: n, From: from, To: to, Cause: c})
}

func (s *story) attempt(at float64, to string, c *history.Cause) *story {
	n := 0
	for _, e := range s.job().Events {
		n = max(n, e.Attempt)
	}
	if to == "intent" {
		n++
	}
	return s.event(history.Event{At: clockAt(at), Kind: "attempt", Attempt: n, To: to, Cause: c})
}

// note adds a note to the history.
func (s *story) note(at float64, c *history.Cause) *story {
	return s.event(history.Event{At: clockAt(at), Kind: "note", Cause: c})
}

func (s *story) tell(at float64, op, machine string, attempt int, detail string) *story {
	by := "w1"
	if op == "terminated" || op == "preempted" || op == "notice" {
		by = ""
	}
	s.Ledger = append(s.Ledger, history.Entry{At: sec(at), World: "chaos", Op: op, By: by, Machine: machine, Job: 1, Attempt: attempt, Detail: detail})
	return s
}

func (s *story) see(at float64, status string) *story {
	seen := history.Seen{At: sec(at), Job: 1, Status: status, Via: "queue", Attempts: 1}
	if finals[status] {
		seen.Cause = code(s.job().Cause)
	}
	s.Seen = append(s.Seen, seen)
	return s
}

func (s *story) broke(from, to float64, x history.Fault) *story {
	x.At = sec(from)
	if to > 0 {
		x.Healed = sec(to)
	}
	s.Faults = append(s.Faults, x)
	return s
}

// begin forgets what became of the job, for a story that goes another way.
func (s *story) begin() *story {
	s.Ledger, s.Seen, s.job().Events, s.job().Attempts = nil, []history.Seen{{At: sec(1), Job: 1, Status: "PENDING"}}, nil, nil
	return s
}

// recovered is a run in which the machine was taken at 5 s for a reason, and the job went on on another one.
func recovered(c *history.Cause) *story {
	s := ran().begin()
	s.job().Recoveries, s.job().Tasks[0].Attempts, s.job().Tasks[0].Recoveries = 1, 2, 1
	s.status(1, "PENDING", "STARTING", nil).attempt(1, "intent", nil).status(3, "STARTING", "RUNNING", nil)
	s.status(6, "RUNNING", "RECOVERING", c).attempt(6, "closing", c)
	s.attempt(8, "intent", nil).status(10, "RECOVERING", "RUNNING", c).status(20, "RUNNING", "SUCCEEDED", s.job().Cause).attempt(20, "closing", s.job().Cause)
	s.tell(1.5, "create", "m1", 1, "").tell(3, "start", "m1", 1, endsAt(0, 0))
	s.tell(8.5, "create", "m2", 2, "").tell(10, "start", "m2", 2, endsAt(19, 0)).tell(21, "terminate", "m2", 2, "").tell(21, "terminated", "m2", 2, "")
	s.job().Ended, s.job().Tasks[0].Ended = clockAt(20), clockAt(20)
	return s
}

var preempted = why("preempted", "the provider took the machine", "m1: capacity")

// taken is such a run in which all is well.
func taken() *story { return recovered(preempted).tell(5, "preempted", "m1", 1, "") }

// stopped is a run in which the job ran without an end, and was cancelled at 10 s.
func stopped() *story {
	s := ran().begin()
	c := why("cancelled", "cancelled by ada", "")
	s.Submissions[0].Expect = []string{"CANCELLED"}
	s.Cancels = []history.Cancel{{At: sec(10), Got: sec(10), Job: 1, Saw: "RUNNING", Grace: time.Second}}
	s.job().Status, s.job().Cause, s.job().Tasks[0].Status, s.job().Tasks[0].Cause = "CANCELLED", c, "CANCELLED", c
	s.status(1, "PENDING", "STARTING", nil).attempt(1, "intent", nil).status(3, "STARTING", "RUNNING", nil).status(10, "RUNNING", "CANCELLING", c)
	s.attempt(10, "closing", c).status(13, "CANCELLING", "CANCELLED", c)
	s.tell(1.5, "create", "m1", 1, "").tell(3, "start", "m1", 1, endsAt(0, 0)).tell(10.5, "stop", "m1", 1, fmt.Sprintf(`{"ends":%d}`, sec(11)))
	s.tell(12, "terminate", "m1", 1, "").tell(12, "terminated", "m1", 1, "")
	return s
}

// again is a run in which that job was resumed at 20 s, and succeeded.
func again() *story {
	s := stopped().see(14, "CANCELLED")
	s.Submissions[0].Expect = []string{"SUCCEEDED"}
	s.Resumes = []history.Resume{{At: sec(20), Got: sec(20.5), Job: 1, Saw: "CANCELLED", Tries: 1}}
	s.job().Status, s.job().Cause = "SUCCEEDED", why("succeeded", "the user's code ended with exit code 0", "")
	s.job().Tasks[0] = history.Task{Status: "SUCCEEDED", Attempts: 2, Ended: clockAt(30), Cause: s.job().Cause}
	s.job().Ended = clockAt(30)
	s.status(20.5, "CANCELLED", "PENDING", why("resumed", "resumed by ada", "it was CANCELLED")).status(21, "PENDING", "STARTING", nil)
	s.attempt(21, "intent", nil).status(23, "STARTING", "RUNNING", nil).status(30, "RUNNING", "SUCCEEDED", s.job().Cause).attempt(30, "closing", s.job().Cause)
	s.tell(21.5, "create", "m2", 2, "").tell(23, "start", "m2", 2, endsAt(29, 0)).tell(31, "terminate", "m2", 2, "").tell(31, "terminated", "m2", 2, "")
	return s.see(22, "STARTING").see(32, "SUCCEEDED")
}

// verdict judges a story and compares what one judge has found: nothing, or something that tells what is wrong.
type verdict struct {
	name  string
	story *story
	want  string // part of the violation's text; "" for none
}

func (v verdict) check(t *testing.T, guarantee string) {
	t.Helper()
	var lines []string
	for _, one := range Judge(v.story.sorted()) {
		if one.Guarantee == guarantee {
			lines = append(lines, one.String())
		}
	}
	switch got := strings.Join(lines, "\n"); {
	case v.want == "" && got != "":
		t.Errorf("found in a sound history:\n%s", got)
	case v.want != "" && (got == "" || !strings.Contains(got, v.want)):
		t.Errorf("got %q, want something with %q", got, v.want)
	}
}

// sorted is the history in the order of time, as it is read from a folder.
func (s *story) sorted() history.History {
	h := s.History
	for i := 1; i < len(h.Ledger); i++ {
		for j := i; j > 0 && h.Ledger[j].At < h.Ledger[j-1].At; j-- {
			h.Ledger[j], h.Ledger[j-1] = h.Ledger[j-1], h.Ledger[j]
		}
	}
	return h
}

func judged(t *testing.T, guarantee string, table []verdict) {
	t.Helper()
	for _, v := range table {
		t.Run(v.name, func(t *testing.T) { v.check(t, guarantee) })
	}
}

// Ensure that the histories that the tables begin with are sound by all judges.
func TestSoundHistories(t *testing.T) {
	for name, s := range map[string]*story{"succeeded": ran(), "recovered": taken(), "cancelled": stopped(), "resumed": again()} {
		for _, v := range Judge(s.sorted()) {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// Ensure that there is a judge for each guarantee, in order, and that violations come in that order.
func TestJudges(t *testing.T) {
	for i, g := range Guarantees() {
		if want := fmt.Sprintf("G%d", i+1); g.Name != want || g.Means == "" {
			t.Errorf("judge %d is of %+v, want %s", i, g, want)
		}
	}
	s := ran()
	s.Leaks = []history.Leak{{Where: "w1.log", As: "plain"}}
	s.job().Status = "RUNNING"
	s.Machines = []history.Machine{{ID: "m9", Job: 9, State: "running"}}
	var order []string
	for _, v := range Judge(s.sorted()) {
		order = append(order, v.Guarantee)
	}
	if got := strings.Join(order, " "); got != "G1 G4 G5 G12" {
		t.Errorf("got %s", got)
	}
}

package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/outlast-dev/outlast/internal/agent"
)

// run is a run as it is kept: what it does and how it ends, as far as that is known. Times are Unix ms.
type run struct {
	token   string
	started int64  // 0 if it was stopped before
	setup   int64  // its setup has ended by then; 0 if it has none
	ends    int64  // 0 for never by itself
	stage   string // that ends
	code    int
	told    bool // of a notice
	stopped bool // on request
	size    int64
	last    int64 // nothing is printed after it
	offset  int64 // by which the machine's clock was wrong at the start
	lines   string
}

// runWords are how many words a line has before what the run prints.
const runWords = 12

// parseRun reads the line of a run.
func parseRun(text string) (run, error) {
	var w [runWords]string
	rest, more := text, true
	for i := range w {
		if !more {
			return run{}, fmt.Errorf("the record of a run is damaged: %q", text)
		}
		w[i], rest, more = strings.Cut(rest, " ")
	}
	return run{
		token: w[0], started: number(w[1]), setup: number(w[2]), ends: number(w[3]), stage: w[4], code: int(number(w[5])),
		told: w[6] != "-", stopped: w[8] == "1", size: number(w[9]), last: number(w[10]), offset: number(w[11]), lines: rest,
	}, nil
}

// ended reports whether the run is over at a time.
func (r run) ended(t int64) bool { return r.started == 0 || (r.ends != 0 && r.ends <= t) }

// status is what the agent of machine m says at a time of its run r, nil if there was none, without the log.
func (m record) status(r *run, t int64) agent.Status {
	if r == nil {
		return agent.Status{State: agent.Absent}
	}
	st := agent.Status{Stopped: r.stopped}
	if r.started == 0 {
		st.State = agent.Exited
		st.Exit = &agent.Exit{Stage: "setup", Code: codeTerm, Signal: "SIGTERM", Text: "stopped before it was started"}
		return st
	}
	st.Token, st.Started = r.token, r.started+r.offset
	if r.told && m.notice > 0 && m.notice <= t && (r.ends == 0 || m.notice < r.ends) {
		st.Notice = &agent.Notice{At: m.clock(max(m.notice, r.started)), Deadline: m.clock(m.gone)}
	}
	switch {
	case r.ended(t):
		st.State, st.Ended = agent.Exited, m.clock(r.ends)
		st.Exit = &agent.Exit{Stage: r.stage, Code: r.code, Signal: signals[r.code-signalled]}
	case t < r.setup:
		st.State = agent.Setup
	default:
		st.State = agent.Running
	}
	return st
}

// signalled is what shells add to a signal for the exit code.
const signalled = 128

// signals are those that end a run here. A script that exits with such a code by itself is taken for ended by the signal.
var signals = map[int]string{1: "SIGHUP", 2: "SIGINT", 9: "SIGKILL", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}

// log adds to a status what the run has printed by a time: at most limit bytes from offset on, with their marks.
func (m record) log(st *agent.Status, r *run, t, offset, limit int64) error {
	if r == nil || r.started == 0 {
		return nil
	}
	if r.ends != 0 {
		t = min(t, r.ends)
	}
	if t >= r.last && offset >= r.size { // nothing new, as most of the time
		st.LogSize, st.LogOffset = r.size, r.size
		return nil
	}
	var lines []line
	if err := json.Unmarshal([]byte(r.lines), &lines); err != nil {
		return fmt.Errorf("the record of a run is damaged: %w", err)
	}
	var text strings.Builder
	var marks []agent.Mark
	for _, l := range lines {
		if r.started+l.At > t {
			break
		}
		text.WriteString(l.Text)
		marks = append(marks, agent.Mark{Offset: int64(text.Len()), At: m.clockOf(r, l.At), Stage: l.Stage})
	}
	all := text.String()
	st.LogSize = int64(len(all))
	st.LogOffset = min(offset, st.LogSize)
	end := min(st.LogOffset+max(min(limit, agent.MaxLog), 0), st.LogSize)
	st.Log = []byte(all[st.LogOffset:end])
	st.LogMarks = marksOf(marks, st.LogOffset, end)
	return nil
}

// clockOf is what the machine's clock said so many ms after the start of the run.
func (m record) clockOf(r *run, after int64) int64 { return m.clock(r.started + after) }

// marksOf are the marks of the bytes from..to, as the agent tells them: times of when these were written, stages that begin
// with one of them, and for the last byte the time of the line that it belongs to.
func marksOf(all []agent.Mark, from, to int64) []agent.Mark {
	if from >= to {
		return nil
	}
	var found []agent.Mark
	for _, mark := range all {
		switch {
		case mark.Stage != "" && from <= mark.Offset && mark.Offset < to, mark.Stage == "" && from < mark.Offset && mark.Offset <= to:
			found = append(found, mark)
		case mark.Stage == "" && mark.Offset > to:
			return append(found, agent.Mark{Offset: to, At: mark.At})
		}
	}
	return found
}

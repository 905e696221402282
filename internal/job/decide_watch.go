package job

import (
	"fmt"
	"slices"
	"time"
)

// watch is one look at a task whose code was started.
func (d *decision) watch() Do {
	a := d.Started()
	if a == nil {
		d.Step = StepLaunch
		return d.next()
	}
	p := d.seen.Probe
	if p == nil || p.Attempt != a.Number {
		return Do{Kind: DoProbe, Attempt: a.Number}
	}
	d.moved = p.Tail > d.Look.Tail || p.Kept > d.Look.Kept
	d.Look.Tail, d.Look.Kept = max(d.Look.Tail, p.Tail), max(d.Look.Kept, p.Kept)
	if p.State != RunExited && d.overran() { // an exit that is seen now wins, and no answer is no reason to run on
		return d.stopRunning("")
	}
	if p.Fault != nil {
		return d.suspect(a, p)
	}
	d.answered(p)
	if p.Notice != nil && a.Notice == nil {
		a.Notice = p.Notice
		d.note(Cause{Code: CodeNotice, Text: fmt.Sprintf("the provider will take the machine in %ds", a.Notice.After)})
		if p.State != RunExited { // else there is nothing left to run on
			return d.noticed(a)
		}
	}
	switch p.State {
	case RunExited:
		return d.exited(a, p)
	case RunLost, RunAbsent:
		return d.lose(a, agentLost())
	}
	if d.Doubt > d.Look.ViewAt || d.Look.Misses > 0 { // the provider has lost a machine of this job; this one still answers
		if do, yes := d.check(a, d.Doubt); yes {
			return do
		}
	}
	return d.quiet()
}

// agentLost is the cause of a run of which the agent that answers knows nothing more.
func agentLost() Cause {
	return Cause{Code: CodeAgentLost, Text: "nothing of the run is left on the machine, and how it ended is not recorded"}
}

// answered ends all suspicion: an agent that answers is there. If its run is alive, a view without the machine was wrong.
func (d *decision) answered(p *Probe) {
	d.Look.Fails, d.Look.FailSince = 0, 0
	if p.State == RunAlive {
		d.Look.Misses, d.Look.MissAt = 0, 0
	}
}

// quiet looks again later: soon while somebody follows the logs, then ever more rarely.
func (d *decision) quiet() Do {
	d.clear()
	do := d.later()
	d.Calm = d.calm()
	return do
}

// later looks again after a pause that grows from look to look.
func (d *decision) later() Do {
	every := time.Duration(d.Look.Every) * time.Millisecond
	every = min(max(time.Duration(float64(every)*quietGrowth), d.rules.Quick), d.rules.Quiet)
	if d.now < d.Follow {
		every = d.rules.Quick
	}
	d.Look.Every = every.Milliseconds()
	d.Due = d.now.Add(every)
	return Do{Kind: DoWait, Until: d.Due}
}

// soon looks again after the quick interval, since something is expected.
func (d *decision) soon(after time.Duration) Do {
	d.Look.Every = d.rules.Quick.Milliseconds()
	d.Due = d.now.Add(after)
	return Do{Kind: DoWait, Until: d.Due}
}

// noticed begins to make the next machine ready while the code still runs, unless the job is never to be recovered.
func (d *decision) noticed(a *Attempt) Do {
	if d.policy().Strategy == Never {
		return d.soon(d.rules.Quick)
	}
	lost := a.Offer
	d.task().Search.Lost = &lost
	d.Step = StepLaunch
	return d.next()
}

// suspect is a probe without an answer, which proves nothing by itself (G6): only the provider's word does, or
// enough probes over enough time.
func (d *decision) suspect(a *Attempt, p *Probe) Do {
	s := d.seen.Survey
	switch {
	case s == nil || s.At < p.At:
		return Do{Kind: DoSurvey, Newer: p.At}
	case s.Fault != nil: // nobody answers, so the trouble may be ours: a pause, and no probe that counts (G10)
		return d.later()
	}
	nodes := s.of(d.Cur, a.Number)
	if s.At > d.Look.ViewAt {
		d.Look.ViewAt = s.At
		switch d.fate(a, nodes, s, &d.Look.Misses, &d.Look.MissAt) {
		case fateLost:
			return d.lose(a, lostCause(nodes))
		case fateMissing:
			if do, yes := d.sooner(s, d.Look.MissAt); yes {
				return do
			}
		}
	}
	d.Look.Fails++
	if d.Look.FailSince.IsZero() {
		d.Look.FailSince = d.now
	}
	if d.Look.Fails >= d.rules.Probes && d.now.Sub(d.Look.FailSince) >= d.rules.ProbeTime {
		return d.lose(a, Cause{
			Code:     CodeUnreachable,
			Text:     fmt.Sprintf("no answer to %d probes over %s, though the provider says that it runs", d.Look.Fails, d.now.Sub(d.Look.FailSince).Round(time.Second)),
			Evidence: p.Fault.Text,
		})
	}
	d.Look.Every = d.rules.Quick.Milliseconds()
	pause := grow(d.rules.Quick, 1.6, d.Look.Fails-1, 5*d.rules.Quick) // SkyPilot: utils.py, transient window
	d.Due = d.now.Add(pause)
	return Do{Kind: DoWait, Until: d.Due}
}

// check compares the attempt with a view newer than a doubt. It returns false if all machines are there.
func (d *decision) check(a *Attempt, newer Time) (Do, bool) {
	if d.Look.Misses > 0 { // the view that missed one cannot clear it
		newer = max(newer, d.Look.ViewAt+1)
	}
	s := d.seen.Survey
	if s == nil || s.At < newer {
		return Do{Kind: DoSurvey, Newer: newer}, true
	}
	if s.Fault != nil { // the provider's trouble is a pause, never a verdict (G10)
		return d.later(), true
	}
	if s.At <= d.Look.ViewAt { // looked at before, and all was well
		return Do{}, false
	}
	d.Look.ViewAt = s.At
	nodes := s.of(d.Cur, a.Number)
	switch d.fate(a, nodes, s, &d.Look.Misses, &d.Look.MissAt) {
	case fateLost:
		return d.lose(a, lostCause(nodes)), true
	case fateMissing: // one read is no proof: ask for another
		if do, yes := d.sooner(s, d.Look.MissAt); yes {
			return do, true
		}
		return d.soon(d.rules.Quick), true
	}
	if a.Exit != nil && slices.ContainsFunc(nodes, func(n SeenNode) bool { return n.State == NodeStopping }) {
		return d.lose(a, lostCause(nodes)), true // the code failed on a machine that is being taken
	}
	return Do{}, false
}

// exited judges a run that has ended. A failing exit is the user's only if all machines are still there after a
// grace: a machine that is being taken often kills the code first.
func (d *decision) exited(a *Attempt, p *Probe) Do {
	switch {
	case p.Exit == nil: // an exit without a record of it
		return d.lose(a, agentLost())
	case clean(p.Exit):
		a.ended(p.Exit, d.now)
		return d.end(Succeeded, Cause{Code: CodeSucceeded, Text: "the user's code ended with exit code 0"})
	case a.Exit == nil:
		a.ended(p.Exit, d.now)
	}
	if a.Notice != nil {
		return d.lose(a, Cause{Code: CodeNotice, Text: "the provider gave notice and the code has ended", Evidence: exitText(p.Exit)})
	}
	if d.Look.ExitAt.IsZero() {
		d.Look.ExitAt = d.now
	}
	judge := d.Look.ExitAt.Add(d.rules.ExitGrace)
	if s := d.seen.Survey; s != nil && s.Fault == nil {
		judge = max(judge, d.Look.ExitAt.Add(s.Settle)) // an older view may still show what was taken
	}
	if d.now < judge {
		d.Due = judge
		return Do{Kind: DoWait, Until: judge}
	}
	if do, yes := d.check(a, judge); yes {
		return do
	}
	return d.userFailure(a)
}

// userFailure restarts the task if the user allowed that for this exit, or ends it.
func (d *decision) userFailure(a *Attempt) Do {
	t, p := d.task(), d.policy()
	cause := failureCause(a.Exit)
	switch {
	case slices.Contains(p.RecoverOnExitCodes, a.Exit.Code): // not counted (SkyPilot: recovery_strategy.py)
		d.crashed(a)
		return d.again(a, cause)
	case t.Restarts < p.MaxRestartsOnErrors:
		t.Restarts++
		d.crashed(a)
		return d.again(a, cause)
	case a.Exit.Stage == "setup":
		return d.end(FailedSetup, cause)
	default:
		return d.end(Failed, cause)
	}
}

// crashed lets code that fails again and again soon after its start wait ever longer for its next machine: some exit
// codes are recovered from without an end (G8). A loss of the machine waits for nothing.
func (d *decision) crashed(a *Attempt) {
	t := d.task()
	if a.EndedAt.Sub(a.StartedAt) > crashSoon {
		t.Crashes = 0
		return
	}
	if t.Crashes++; t.Crashes > 1 {
		t.NotBefore = d.now.Add(jitter(grow(callFirst, callGrowth, t.Crashes-2, maxCrashWait), 0.4, d.seed("crash", t.Crashes)))
	}
}

// again recovers a task whose machine is fine.
func (d *decision) again(a *Attempt, cause Cause) Do {
	if d.overran() { // there is no time left to recover for
		return d.stopRunning(cause.Text)
	}
	if d.task().Status == Running && !d.must(d.Cur, Recovering, cause) {
		return d.refused()
	}
	d.clear()
	d.close(a, cause)
	d.Step = StepRecover
	return d.next()
}

// lose recovers a task that has lost its machine.
func (d *decision) lose(a *Attempt, cause Cause) Do {
	lost := a.Offer
	d.task().Search.Lost = &lost
	return d.again(a, cause)
}

// policy is what the user allows for the current task.
func (d *decision) policy() Recovery { return d.Head.Tasks[d.Cur].Recovery }

// fate is what a view says of an attempt.
type fate int

const (
	fateAll     fate = iota // every machine is there and may be used
	fateComing              // some still boot
	fateMissing             // one was not in the view, which is no proof yet
	fateLost                // one is gone for certain, or going
)

// fate compares an attempt with a view. misses and at remember the views in a row that lacked a machine, after the provider's
// answers have settled; see Survey.miss.
func (d *decision) fate(a *Attempt, nodes []SeenNode, s *Survey, misses *int, at *Time) fate {
	result := fateAll
	for _, n := range nodes {
		switch n.State {
		case NodeEnded:
			return fateLost
		case NodeStopping:
			if a.StartedAt.IsZero() {
				return fateLost
			}
			// else the code may run on: its agent tells how long, and how it ended
		case NodeBooting:
			result = fateComing
		}
	}
	if len(nodes) >= max(len(a.Nodes), 1) {
		*misses, *at = 0, 0
		return result
	}
	if s.At > a.CreatedAt.Add(s.Settle) && s.miss(misses, at) {
		return fateLost
	}
	return fateMissing
}

// miss counts a view that lacks a machine: n of them in a row, the last one at a time. It returns true when the machine is
// proven gone. One list may be short or lag, so it takes a second one apart from it, soon enough that it is no other lapse of
// the same kind. Where nobody could look so soon, a row of them does.
func (s *Survey) miss(n *int, at *Time) (gone bool) {
	if *n > 0 && s.At < s.confirms(*at) {
		return false
	}
	soon := *n > 0 && s.At <= s.confirms(*at).Add(soonEnough)
	*n, *at = *n+1, s.At
	return soon || *n >= missesInARow
}

// confirms is from when on a view confirms that a machine was missing from an earlier one: no single lapse of the provider
// lasts so long.
func (s *Survey) confirms(miss Time) Time { return miss.Add(max(s.Settle, lapse)) }

// sooner asks for another view in this very look, when a lapse is over: the next look may come too late to tell it from another
// one.
func (d *decision) sooner(s *Survey, miss Time) (Do, bool) {
	over := miss.Add(lapse)
	return Do{Kind: DoSurvey, Newer: over}, !miss.IsZero() && s.At < over && over.Sub(d.now) <= lapse
}

// lostCause explains a lost attempt with the provider's words.
func lostCause(nodes []SeenNode) Cause {
	for _, n := range nodes {
		if n.State == NodeEnded || n.State == NodeStopping {
			return Cause{Code: CodePreempted, Text: "the provider took the machine", Evidence: n.ID + ": " + n.Reason}
		}
	}
	return Cause{Code: CodeVanished, Text: "the provider does not know the machine any more"}
}

// clean reports whether a run ended as the user meant it to.
func clean(e *Exit) bool { return e != nil && e.Code == 0 && e.Stage != "setup" }

// failureCause explains the user's failure.
func failureCause(e *Exit) Cause {
	switch {
	case e.Memory:
		return Cause{Code: CodeUserMemory, Text: "out of memory: the kernel killed the user's code", Evidence: exitText(e)}
	case e.Stage == "setup":
		return Cause{Code: CodeSetupExit, Text: fmt.Sprintf("setup ended with exit code %d", e.Code), Evidence: exitText(e)}
	case e.Signal != "":
		return Cause{Code: CodeUserSignal, Text: "the user's code was ended by " + e.Signal, Evidence: exitText(e)}
	default:
		return Cause{Code: CodeUserExit, Text: fmt.Sprintf("the user's code ended with exit code %d", e.Code), Evidence: exitText(e)}
	}
}

func exitText(e *Exit) string {
	if e == nil {
		return "no exit record"
	}
	text := fmt.Sprintf("%s: exit code %d", e.Stage, e.Code)
	if e.Signal != "" {
		text += " (" + e.Signal + ")"
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

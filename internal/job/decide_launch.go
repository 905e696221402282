package job

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/planted"
)

// launch brings the task from "no machine" to "the user's code was started". One call decides one step of
//
//	slot ─► offer ─► intent ─► survey ─► create ─► booting ─► ready ─► start
//
// It also runs while an earlier machine, of which the provider gave notice, still runs the user's code: then it
// stops at ready until that code has ended (G3).
func (d *decision) launch() Do {
	if slices.ContainsFunc(d.Live, func(a Attempt) bool { return a.Phase == PhaseClosing }) {
		d.Step = StepRecover // what is being closed comes first
		return d.next()
	}
	if old := d.Started(); old != nil {
		if do, yes := d.watchLeaving(old); yes {
			return do
		}
	}
	return d.lookingAfter(d.advance())
}

// lookingAfter shortens a wait, however long, while code still runs on a machine of which notice was given.
func (d *decision) lookingAfter(do Do) Do {
	if do.Kind == DoWait && d.Started() != nil {
		d.Due = min(do.Until, d.now.Add(d.rules.Quick))
		do.Until = d.Due
	}
	return do
}

// advance takes the next step of a launch.
func (d *decision) advance() Do {
	a := d.newest()
	if a == nil || a.Phase == PhaseStarted {
		return d.seek()
	}
	switch a.Phase {
	case PhaseIntent:
		return d.create(a)
	case PhaseBooting:
		return d.boot(a)
	default:
		return d.start(a)
	}
}

// seek finds the next offer and commits the intent to use it.
func (d *decision) seek() Do {
	t := d.task()
	switch {
	case d.Head.Tasks[d.Cur].Idle:
		return d.end(Succeeded, Cause{Code: CodeNothingToRun, Text: "the task has no run section"})
	case d.now < d.Wait.Until && d.Wait.For.Code != CodeLaunchSlot:
		return Do{Kind: DoWait, Until: d.Wait.Until}
	case d.now < t.NotBefore:
		return d.wait(Cause{Code: CodeBackoff, Text: fmt.Sprintf("the user's code failed soon after its start, %d times in a row", t.Crashes)}, t.NotBefore)
	case d.seen.Slot == nil:
		return Do{Kind: DoHold}
	case !*d.seen.Slot:
		return d.slotless()
	case d.seen.Choice == nil:
		return Do{Kind: DoChoose}
	}
	c := d.seen.Choice
	switch {
	case c.Fault != nil && c.Fault.Class.Permanent():
		return d.giveUp(Cause{Code: codeOf(*c.Fault), Text: "the provider's offers cannot be had", Evidence: c.Fault.Text})
	case c.Fault != nil && c.Fault.Class == Locked:
		return d.locked(c.Fault)
	case c.Fault != nil:
		return d.retry(CodeProvider, c.Fault, maxCallWait)
	case c.None != nil:
		return d.giveUp(*c.None)
	case c.Offer == nil: // a whole round has failed
		cause := Cause{Code: CodeBackoff, Text: fmt.Sprintf("every offer failed in round %d; the next round begins later", t.Search.Round+1), Evidence: lastFaults(t.Search)}
		t.Search = t.Search.RoundOver()
		d.note(cause)
		return d.wait(cause, max(c.Until, d.now.Add(d.rules.Quick)))
	}
	d.clear()
	t.Attempts++
	d.Live = append(d.Live, Attempt{
		Task: d.Cur, Number: t.Attempts, Offer: *c.Offer, Phase: PhaseIntent, IntentAt: d.now,
		Token: Token(d.rules.Deployment, d.ID, d.Nonce, d.Cur, t.Attempts),
	})
	if t.Status == Pending && !d.must(d.Cur, Starting, Cause{}) {
		return d.refused()
	}
	d.Events = append(d.Events, Event{At: d.now, Kind: "attempt", Task: d.Cur, Attempt: t.Attempts, To: string(PhaseIntent), Cause: Cause{Text: "on " + c.Offer.String()}})
	return d.next()
}

// slotless waits in the line for a launch slot.
func (d *decision) slotless() Do {
	return d.wait(Cause{Code: CodeLaunchSlot, Text: "waits for a launch slot: others with higher priority or an earlier submission come first"}, d.now.Add(slotRecheck))
}

// giveUp ends a task that can never get a machine. A task that has run before had one: then the resources are
// gone, not wrong.
func (d *decision) giveUp(cause Cause) Do {
	switch d.task().Status {
	case Running: // on a machine of which notice was given: it runs on as long as it may
		d.note(cause)
		d.clear()
		d.Step = StepWatch
		return d.soon(d.rules.Quick)
	case Recovering:
		return d.end(FailedNoResource, cause)
	default:
		return d.end(FailedPrechecks, cause)
	}
}

// create makes the machines of an intent. Before it does, it looks for machines of this task that the store has
// forgotten: a store that lost its last second must not double what it forgot.
func (d *decision) create(a *Attempt) Do {
	switch {
	case d.now < d.Wait.Until && d.Wait.For.Code != CodeLaunchSlot:
		return Do{Kind: DoWait, Until: d.Wait.Until}
	case d.seen.Slot == nil:
		return Do{Kind: DoHold}
	case !*d.seen.Slot && a.Tries == 0: // given up while it waited for its turn; an intent that may have been carried out goes on
		return d.slotless()
	case d.seen.Survey == nil || d.seen.Survey.At < a.IntentAt:
		return Do{Kind: DoSurvey, Newer: a.IntentAt, Wide: true}
	case d.seen.Survey.Fault != nil && d.seen.Survey.Fault.Class.Permanent():
		f := *d.seen.Survey.Fault
		return d.refuse(a, f, a.Tries > 0, Cause{Code: codeOf(f), Text: "the provider does not tell which machines exist", Evidence: f.Text})
	case d.seen.Survey.Fault != nil:
		return d.retry(CodeProvider, d.seen.Survey.Fault, maxCallWait)
	case d.closeForgotten(a):
		return d.next()
	case d.seen.Create == nil || d.seen.Create.Attempt != a.Number:
		a.Tries++ // before the call: a driver that dies in it leaves word that something may exist
		return Do{Kind: DoCreate, Attempt: a.Number}
	case d.seen.Create.Fault != nil:
		return d.createFailed(a, d.seen.Create.Fault)
	}
	d.clear()
	a.Phase, a.CreatedAt, a.Tries = PhaseBooting, d.now, 0
	a.Nodes = nil
	for _, n := range d.seen.Create.Nodes {
		a.Nodes = append(a.Nodes, n.Node)
	}
	d.ready(a, d.seen.Create.Nodes)
	return d.next()
}

// closeForgotten closes machines of this task that the record does not know: those with a higher attempt number, and
// those with the same one in another place. One with the same number in the same place is what the create call
// returns, so it is adopted.
func (d *decision) closeForgotten(a *Attempt) bool {
	intent := *a
	highest, clash := intent.Number, false
	for _, n := range d.seen.Survey.Nodes {
		if n.Task != d.Cur || n.Attempt < intent.Number || n.State == NodeEnded {
			continue
		}
		where := intent.Offer
		if n.Where.Provider != "" {
			where = n.Where
		}
		same := where.Provider == intent.Offer.Provider && where.Region == intent.Offer.Region
		if n.Attempt == intent.Number && (same || clash) || n.Attempt > intent.Number && d.Attempt(n.Attempt) != nil {
			continue
		}
		if n.Attempt == intent.Number {
			clash = true
			d.retire(intent.Number, forgotten("gave way to a machine of the same number that the store had forgotten", n.ID))
		}
		highest = max(highest, n.Attempt)
		d.Live = append(d.Live, Attempt{
			Task: d.Cur, Number: n.Attempt, Offer: where, Nodes: []Node{n.Node}, IntentAt: d.now,
			Token: Token(d.rules.Deployment, d.ID, d.Nonce, d.Cur, n.Attempt),
		})
		d.close(&d.Live[len(d.Live)-1], forgotten("a machine of this task that the store did not know", n.ID))
	}
	if highest == intent.Number && !clash {
		return false
	}
	d.task().Attempts = highest
	if !clash {
		d.retire(intent.Number, forgotten("gave way to machines that the store had forgotten", ""))
	}
	d.Step = StepRecover
	return true
}

func forgotten(text, node string) Cause {
	return Cause{Code: CodeForgotten, Text: text, Evidence: node}
}

// createFailed handles a failed create by its class. A definite answer to the only call settles the attempt: nothing
// exists. After an answer that got lost something may exist, and must be closed first.
func (d *decision) createFailed(a *Attempt, f *Fault) Do {
	if f.Wait > 0 { // it was not made
		a.Tries--
		return d.turn(f)
	}
	lost := a.Tries > 1
	if f.Class == Throttled || f.Class == Transient {
		if a.Tries < createTries {
			return d.retry(CodeProvider, f, maxCallWait)
		}
		lost = true
	}
	return d.refuse(a, *f, lost, Cause{Code: codeOf(*f), Text: "no machine was made", Evidence: f.Text})
}

// refuse gives up an attempt whose machine the provider did not make, and closes it first if it may have made one.
func (d *decision) refuse(a *Attempt, f Fault, lost bool, why Cause) Do {
	if lost {
		return d.abandon(a, f, why)
	}
	d.clear()
	d.task().Search = d.task().Search.Failed(a.Offer, f, d.now)
	d.retire(a.Number, why)
	return d.next()
}

// boot waits until all machines of an attempt run.
func (d *decision) boot(a *Attempt) Do {
	s := d.seen.Survey
	switch {
	case d.seen.Slot == nil: // renewed: a boot may take longer than a slot lasts
		return Do{Kind: DoHold}
	case s == nil || s.At <= max(a.ReadAt, a.CreatedAt):
		return Do{Kind: DoSurvey, Newer: max(a.ReadAt, a.CreatedAt) + 1}
	case s.Fault != nil: // a pause, never a verdict (G10), however long the boot has taken
		return d.retry(CodeProvider, s.Fault, maxCallWait)
	}
	a.ReadAt = s.At
	switch nodes := s.of(d.Cur, a.Number); d.fate(a, nodes, s, &a.Reads, &a.MissAt) {
	case fateLost:
		return d.abandon(a, Fault{Class: Capacity}, lostCause(nodes))
	case fateMissing:
		if do, yes := d.sooner(s, a.MissAt); yes {
			return do
		}
	case fateAll:
		d.ready(a, nodes)
		if a.Phase == PhaseReady {
			return d.next()
		}
	}
	if s.At.Sub(a.CreatedAt) > d.rules.BootTimeout {
		return d.abandon(a, Fault{Class: Transient}, Cause{Code: CodeBootTimeout, Text: fmt.Sprintf("not running %s after its creation", d.rules.BootTimeout)})
	}
	a.Tries++
	return d.wait(Cause{Code: CodeBooting, Text: "waits for the machine to come up"}, d.now.Add(pace(a.Tries)))
}

// ready advances an attempt all of whose machines run and can be reached.
func (d *decision) ready(a *Attempt, nodes []SeenNode) {
	if len(nodes) == 0 {
		return
	}
	for _, n := range nodes {
		if n.State != NodeRunning || n.Address == "" {
			return
		}
	}
	a.Phase, a.ReadyAt, a.Tries, a.Nodes = PhaseReady, d.now, 0, nil
	for _, n := range nodes {
		a.Nodes = append(a.Nodes, n.Node)
	}
	d.clear()
}

// start starts the user's code, if nothing else of the task can still be running (G3).
func (d *decision) start(a *Attempt) Do {
	for _, other := range d.Live {
		if other.Number != a.Number && !planted.On(planted.G3) {
			return d.wait(Cause{Code: CodeClosing, Text: "the next machine is ready and waits for the code on the old one to end"}, d.now.Add(d.rules.Quick))
		}
	}
	p := d.seen.Start
	switch {
	case d.now < d.Wait.Until:
		return Do{Kind: DoWait, Until: d.Wait.Until}
	case d.seen.Slot == nil:
		return Do{Kind: DoHold}
	case p == nil || p.Attempt != a.Number:
		return Do{Kind: DoStart, Attempt: a.Number}
	case p.Fault != nil && p.Fault.Class == Invalid:
		return d.end(FailedSetup, Cause{Code: CodeStore, Text: "the task's files could not be brought to the machine", Evidence: p.Fault.Text})
	case p.Fault != nil:
		return d.startFailed(a, p.Fault)
	case p.State == RunLost || p.State == RunAbsent:
		return d.abandon(a, Fault{Class: Transient}, Cause{Code: CodeStartAmbiguous, Text: "a start was cut off where it cannot be told whether it ran; a new machine is taken instead"})
	}
	return d.started(a)
}

// startFailed looks whether the machine is still there before it tries again.
func (d *decision) startFailed(a *Attempt, f *Fault) Do {
	s := d.seen.Survey
	switch {
	case s == nil || s.At < d.seen.Start.At:
		return Do{Kind: DoSurvey, Newer: d.seen.Start.At}
	case s.Fault != nil: // a pause, never a verdict (G10)
		return d.retry(CodeProvider, s.Fault, maxCallWait)
	}
	if s.At > a.ReadAt {
		a.ReadAt = s.At
		nodes := s.of(d.Cur, a.Number)
		switch d.fate(a, nodes, s, &a.Reads, &a.MissAt) {
		case fateLost:
			return d.abandon(a, Fault{Class: Capacity}, lostCause(nodes))
		case fateMissing:
			if do, yes := d.sooner(s, a.MissAt); yes {
				return do
			}
		}
	}
	switch late := d.now.Sub(a.ReadyAt) > d.rules.BootTimeout; {
	case f.Class == Locked && late: // nobody came by who could: nothing is gained by paying for the machine
		return d.abandon(a, *f, Cause{Code: CodeSecrets, Text: "no worker could open the job's secrets", Evidence: f.Text})
	case f.Class == Locked:
		return d.locked(f)
	}
	if a.Tries++; a.Tries >= d.rules.Probes && d.now.Sub(a.ReadyAt) > d.rules.BootTimeout {
		return d.abandon(a, *f, Cause{Code: CodeBootTimeout, Text: fmt.Sprintf("the user's code could not be started within %s", d.rules.BootTimeout), Evidence: f.Text})
	}
	return d.wait(Cause{Code: CodeBooting, Text: "the machine runs but does not answer yet", Evidence: f.Text}, d.now.Add(pace(a.Tries)))
}

// locked waits for a worker that can open the job's secrets (G10): that this one cannot says nothing about the job.
func (d *decision) locked(f *Fault) Do {
	d.Wait.Tries = d.tries(CodeSecrets) + 1
	pause := jitter(grow(callFirst, callGrowth, d.Wait.Tries-1, maxCallWait), 0.4, d.seed("locked", d.Wait.Tries))
	return d.wait(Cause{Code: CodeSecrets, Text: "waits for a worker that can open the job's secrets", Evidence: f.Text}, d.now.Add(pause))
}

// started commits that the user's code runs: the end of a launch or of a recovery.
func (d *decision) started(a *Attempt) Do {
	t := d.task()
	recovered := t.Status == Recovering
	if !d.must(d.Cur, Running, Cause{}) {
		return d.refused()
	}
	if recovered {
		t.Recoveries++
	}
	a.Phase, a.StartedAt, a.Tries, a.Reads, a.MissAt = PhaseStarted, d.now, 0, 0, 0
	t.Search = t.Search.Won(d.now)
	d.Look = Look{Every: d.rules.Quick.Milliseconds()}
	d.clear()
	d.Step = StepWatch
	d.Due = d.now.Add(d.rules.Quick)
	return Do{Kind: DoWait, Until: d.Due}
}

// abandon closes an attempt that never ran the user's code and remembers its offer as bad for a while.
func (d *decision) abandon(a *Attempt, f Fault, why Cause) Do {
	if f.Text == "" {
		f.Text = why.Text
	}
	d.task().Search = d.task().Search.Failed(a.Offer, f, d.now)
	d.clear()
	d.close(a, why)
	d.Step = StepRecover
	return d.next()
}

// watchLeaving looks after the code on a machine of which notice was given, while another one is made ready.
func (d *decision) watchLeaving(old *Attempt) (Do, bool) {
	p := d.seen.Probe
	if p == nil || p.Attempt != old.Number || d.now.Sub(p.At) >= stale {
		return Do{Kind: DoProbe, Attempt: old.Number}, true
	}
	d.Look.Tail, d.Look.Kept = max(d.Look.Tail, p.Tail), max(d.Look.Kept, p.Kept)
	if p.State != RunExited && d.overran() {
		return d.stopRunning(""), true
	}
	if p.Fault != nil {
		return d.suspect(old, p), true
	}
	d.answered(p)
	switch p.State {
	case RunExited:
		return d.exited(old, p), true
	case RunAlive:
		return Do{}, false
	default:
		return d.lose(old, agentLost()), true
	}
}

// stale is the age at which the answer of the code that still runs must be had again, also when a launch goes on
// without a wait. It is longer than a probe may take: else no answer would ever be new enough.
const stale = 15 * time.Second

// pace is the wait between two looks at a machine that is expected soon.
func pace(tries int) time.Duration { return grow(shortest, quietGrowth, tries-1, pollMax) }

// codeOf gives the cause code for a class of fault.
func codeOf(f Fault) Code {
	switch f.Class {
	case Capacity:
		return CodeCapacity
	case Quota:
		return CodeQuota
	case Denied:
		return CodeDenied
	case Invalid:
		return CodeInvalid
	default:
		return CodeProvider
	}
}

// lastFaults tells what the offers of a failed round said, at most three of them.
func lastFaults(s Search) string {
	text := ""
	for i, key := range s.Tried {
		if i == 3 {
			return text + fmt.Sprintf("; and %d more", len(s.Tried)-i)
		}
		if i > 0 {
			text += "; "
		}
		text += key + ": " + s.Penalties[key].Fault.Text
	}
	return text
}

package job_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// never is a time that no simulation reaches.
const never = job.Time(1 << 60)

// chances are how often things go wrong in a world, in percent of the calls they belong to. The zero value is a world
// in which all goes well.
type chances struct {
	Lost      int // a create is carried out, perhaps late, and its answer is lost
	Refused   int // a create or terminate fails for now, and nothing was done
	Limited   int // the turn of a call has not come, and it is not made
	Capacity  int // a create finds no capacity
	Denied    int // a create is refused for good
	Short     int // a machine is missing from lists for a moment
	Outage    int // an outage of the provider begins, at a list
	Silence   int // an agent stops answering for a while, at a probe
	Preempt   int // the provider takes a machine, at a probe
	Notice    int // of those: with a notice before
	StartLost int // a start is carried out and its answer is lost
	Archive   int // the archive takes nothing
	NoSlot    int // there is no launch slot
}

// world is what a driver acts on: a provider with its machines and the agents on them, as they really are. Its views
// are old by less than half of settle.
type world struct {
	chances
	now        job.Time
	settle     time.Duration
	dice       *rand.Rand
	offers     []job.Offer
	vms        []*vm
	terminated map[string]bool // by token
	outage     job.Time        // the provider does not answer until then
	denied     string          // offer key that is refused for good
	plan       func(task, attempt int) code
}

// vm is a machine as it really is, whatever its provider tells.
type vm struct {
	id            string
	task, attempt int
	token         string
	offer         job.Offer
	born, runs    job.Time // exists, runs
	leaving, ends job.Time // shown as stopping; nothing runs on it any more
	gone          job.Time // not shown any more
	notice        job.Time // word that it will be taken
	omitted       job.Time // lists lack it until then
	silent        job.Time // its agent does not answer until then
	answered      job.Time // its agent did last, and a driver lived to say so
	taken         bool     // by the provider
	forbidden     bool     // a stop came before the start
	stray         bool     // made by a driver that had lost its lease
	code          *code
}

// code is the user's code on a machine.
type code struct {
	after    time.Duration // how long it runs
	exit     job.Exit
	lost     bool // the agent cannot tell how it ended
	deaf     bool // it ignores TERM
	noticed  *job.Exit
	started  job.Time
	ends     job.Time
	byTaking bool // it ended because the provider took the machine
}

func newWorld(seed uint64, c chances) *world {
	return &world{
		chances: c, now: 1_700_000_000_000, settle: 3 * time.Second,
		dice:       rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // a simulation
		terminated: map[string]bool{},
		offers: []job.Offer{
			{Provider: "sim", Region: "a", Zone: "1", Type: "s", Price: 1, Spot: true},
			{Provider: "sim", Region: "a", Zone: "2", Type: "s", Price: 2, Spot: true},
			{Provider: "sim", Region: "b", Zone: "1", Type: "s", Price: 3, Spot: true},
			{Provider: "sim", Region: "c", Zone: "1", Type: "s", Price: 9},
		},
		plan: func(int, int) code { return code{after: 10 * time.Second, exit: job.Exit{Stage: "run"}} },
	}
}

func (w *world) chance(percent int) bool { return percent > 0 && w.dice.IntN(100) < percent }

func (w *world) within(d time.Duration) time.Duration {
	return time.Duration(w.dice.Int64N(max(int64(d), 1)))
}

func (v *vm) state(at job.Time) (job.NodeState, bool) {
	switch {
	case at < v.born || at >= v.gone:
		return "", false
	case at >= v.ends:
		return job.NodeEnded, true
	case at >= v.leaving:
		return job.NodeStopping, true
	case at >= v.runs:
		return job.NodeRunning, true
	default:
		return job.NodeBooting, true
	}
}

// busy reports whether the user's code really runs.
func (v *vm) busy(at job.Time) bool {
	return v.code != nil && at < v.code.ends && at < v.ends
}

func (v *vm) seen(state job.NodeState) job.SeenNode {
	return job.SeenNode{Node: job.Node{ID: v.id, Address: v.id}, Task: v.task, Attempt: v.attempt, State: state, Reason: "word of the provider", Where: v.offer}
}

// list is a view of some regions, or of all if there are none.
func (w *world) list(regions []string) *job.Survey {
	s := &job.Survey{At: w.now, Settle: w.settle}
	if s.Fault = w.limited(); s.Fault != nil {
		return s
	}
	if w.chance(w.Outage) {
		w.outage = w.now.Add(w.within(20 * time.Minute))
	}
	if w.now < w.outage {
		s.Fault = &job.Fault{Class: job.Transient, Text: "503"}
		return s
	}
	for _, v := range w.vms {
		if w.now >= v.omitted.Add(5*time.Second) && w.chance(w.Short) {
			v.omitted = w.now.Add(w.within(time.Second))
		}
		if w.now < v.omitted {
			continue
		}
		at := w.now.Add(-w.within(w.settle / 2)) // the other half is for machines that appear late
		if state, shown := v.state(at); shown && (len(regions) == 0 || slices.Contains(regions, v.offer.Region)) {
			s.Nodes = append(s.Nodes, v.seen(state))
		}
	}
	return s
}

// create makes the machine of an attempt. late is true for a driver that has lost its lease.
func (w *world) create(a *job.Attempt, late bool) *job.Created {
	out := &job.Created{Attempt: a.Number}
	if out.Fault = w.limited(); out.Fault != nil {
		return out
	}
	fail := func(c job.Class, text string) *job.Created {
		out.Fault = &job.Fault{Class: c, Text: text}
		return out
	}
	for _, v := range w.vms {
		if v.token == a.Token && v.offer.Region == a.Offer.Region {
			state, _ := v.state(w.now)
			out.Nodes = append(out.Nodes, v.seen(state))
		}
	}
	switch {
	case w.now < w.outage || w.chance(w.Refused):
		return fail(job.Throttled, "slow down")
	case len(out.Nodes) > 0:
		return out
	case w.terminated[a.Token]:
		return fail(job.Invalid, "was terminated")
	case a.Offer.Key() == w.denied || w.chance(w.Denied):
		w.denied = a.Offer.Key()
		return fail(job.Denied, "not allowed")
	case w.chance(w.Capacity):
		return fail(job.Capacity, "none left")
	}
	v := &vm{
		id: fmt.Sprintf("vm-%d", len(w.vms)), task: a.Task, attempt: a.Number, token: a.Token, offer: a.Offer,
		born: w.now, leaving: never, ends: never, gone: never, notice: never, stray: late,
	}
	lost := w.chance(w.Lost)
	if lost {
		v.born = w.now.Add(w.within(w.settle / 2))
	}
	v.runs = v.born.Add(w.within(20 * time.Second))
	w.vms = append(w.vms, v)
	if lost {
		return fail(job.Transient, "connection reset")
	}
	out.Nodes = append(out.Nodes, v.seen(job.NodeBooting))
	return out
}

// limited is the answer to a call whose turn has not come, or nil.
func (w *world) limited() *job.Fault {
	if !w.chance(w.Limited) {
		return nil
	}
	return &job.Fault{Class: job.Throttled, Text: "not called yet", Wait: time.Second + w.within(time.Minute)}
}

// terminate orders the end of an attempt's machines. One that does not exist yet does not hear it.
func (w *world) terminate(a *job.Attempt) *job.Outcome {
	out := &job.Outcome{Attempt: a.Number, At: w.now}
	if out.Fault = w.limited(); out.Fault != nil {
		return out
	}
	if w.now < w.outage || w.chance(w.Refused) {
		out.Fault = &job.Fault{Class: job.Transient, Text: "503"}
		return out
	}
	w.terminated[a.Token] = true
	for _, v := range w.vms {
		if v.task == a.Task && v.attempt == a.Number && v.offer.Region == a.Offer.Region && w.now >= v.born && w.now < v.leaving {
			w.end(v, w.now.Add(w.within(20*time.Second)))
		}
	}
	return out
}

// end lets a machine end at a time; after that the provider shows it for a while.
func (w *world) end(v *vm, at job.Time) {
	v.leaving, v.ends = min(v.leaving, w.now), min(v.ends, at)
	v.gone = v.ends.Add(w.within(2 * time.Minute))
}

// take is a preemption. Its code is often killed a moment before the provider says a word.
func (w *world) take(v *vm, notice time.Duration) {
	if v.taken || w.now >= v.leaving {
		return
	}
	v.taken = true
	at := w.now.Add(notice)
	if c := v.code; notice > 0 {
		v.notice = w.now
		if c != nil && c.noticed != nil && w.now < c.ends {
			c.exit, c.ends = *c.noticed, min(c.ends, w.now.Add(notice/2))
		}
	}
	if c := v.code; c != nil && at < c.ends && w.chance(50) {
		early := max(at.Add(-w.within(3*time.Second)), w.now)
		c.ends, c.exit, c.byTaking = early, job.Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}, true
	}
	v.ends, v.gone = at, at.Add(w.within(time.Minute))
}

// of is the machine of an attempt that can be reached, if any.
func (w *world) of(a *job.Attempt) *vm {
	for _, v := range w.vms {
		if len(a.Nodes) > 0 && v.id == a.Nodes[0].ID && w.now >= v.runs && w.now < v.ends && w.now >= v.silent {
			return v
		}
	}
	return nil
}

// probe asks the agent; an answer that does not come takes its time.
func (w *world) probe(a *job.Attempt) *job.Probe {
	p := &job.Probe{Attempt: a.Number, At: w.now}
	v := w.of(a)
	if v != nil && w.chance(w.Silence) {
		v.silent = w.now.Add(w.within(3 * time.Minute))
		v = nil
	}
	if v == nil {
		p.Fault = &job.Fault{Class: job.Transient, Text: "no route to host"}
		w.now = w.now.Add(w.within(10 * time.Second))
		return p
	}
	if w.chance(w.Preempt) {
		notice := time.Duration(0)
		if w.chance(w.Notice) {
			notice = time.Minute + w.within(time.Minute)
		}
		w.take(v, notice)
		if v.ends <= w.now {
			p.Fault = &job.Fault{Class: job.Transient, Text: "connection reset"}
			return p
		}
	}
	if w.now >= v.notice {
		p.Notice = &job.Notice{At: w.now, After: int64(v.ends.Sub(w.now).Seconds())}
	}
	v.report(w.now, p)
	return p
}

// report fills in what the agent knows of the run.
func (v *vm) report(now job.Time, p *job.Probe) {
	switch c := v.code; {
	case c == nil && v.forbidden:
		p.State = job.RunLost
	case c == nil:
		p.State = job.RunAbsent
	case now < c.ends:
		p.State = job.RunAlive
	case c.lost:
		p.State = job.RunLost
	default:
		exit := c.exit
		p.State, p.Exit = job.RunExited, &exit
	}
}

// start starts the user's code, once per machine. It returns the machine on which it began just now.
func (w *world) start(a *job.Attempt) (*job.Probe, *vm) {
	p := &job.Probe{Attempt: a.Number, At: w.now}
	v := w.of(a)
	if v == nil {
		p.Fault = &job.Fault{Class: job.Transient, Text: "no route to host"}
		return p, nil
	}
	var began *vm
	if v.code == nil && !v.forbidden {
		c := w.plan(a.Task, a.Number)
		c.started, c.ends = w.now, w.now.Add(c.after)
		v.code, began = &c, v
	}
	v.report(w.now, p)
	if w.chance(w.StartLost) {
		p.Fault = &job.Fault{Class: job.Transient, Text: "connection reset"}
	}
	return p, began
}

// stop ends the user's code, or forbids its start.
func (w *world) stop(a *job.Attempt, grace time.Duration) *job.Outcome {
	out := &job.Outcome{Attempt: a.Number, At: w.now}
	v := w.of(a)
	switch {
	case v == nil:
		out.Fault = &job.Fault{Class: job.Transient, Text: "no route to host"}
	case v.code == nil:
		v.forbidden = true
	case w.now < v.code.ends:
		wait := w.within(grace)
		if v.code.deaf {
			wait = grace
		}
		v.code.ends, v.code.exit = min(v.code.ends, w.now.Add(wait)), job.Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}
	}
	return out
}

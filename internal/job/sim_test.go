package job_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
)

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// sim drives one job through a world as the workers do: claim, decide, commit, do. A driver may die at every point;
// the next one starts with the last record that was committed and with nothing seen.
type sim struct {
	*world
	t     failer
	rules job.Rules
	rec   job.Record // as committed
	due   job.Time

	crash  int // percent of the points at which the driver dies
	zombie int // percent of the deaths after which the dead driver's last act is still carried out, late
	forget int // percent of the deaths with which the store loses its last second
	stored []version
	late   []lateAct

	events   []job.Event
	past     []job.Attempt
	heard    *job.Probe // an answer that is not yet committed
	log      []string
	started  map[int]int // attempts of each task in which the code really began
	success  map[int]*vm // of each task whose success was committed, though the store may have lost that since
	decided  int
	calm     int // records that were calm
	onCommit func(before, after *job.Record)
	onDo     func(do job.Do)
	dieAfter func(do job.Do) bool // the driver dies when it has done this
}

// lateAct is what a driver without a lease does after all.
type lateAct struct {
	at  job.Time
	do  job.Do
	rec job.Record
}

const simID = 7

func newSim(t failer, w *world, tasks ...job.TaskHead) *sim {
	if len(tasks) == 0 {
		tasks = []job.TaskHead{{}}
	}
	rules := job.DefaultRules
	rules.Deployment = "test"
	head := job.Head{ID: simID, Name: "sim", SubmittedAt: w.now, Tasks: tasks}
	return &sim{world: w, t: t, rules: rules, rec: job.NewRecord(head), due: w.now, started: map[int]int{}, success: map[int]*vm{}}
}

func (s *sim) fail(format string, args ...any) {
	tail := s.log[max(len(s.log)-40, 0):]
	s.t.Fatalf("%s\nat step %s, status %s, live %+v\nlast steps:\n%s", fmt.Sprintf(format, args...), s.rec.Step, s.rec.Status(), s.rec.Live, strings.Join(tail, "\n"))
}

func (s *sim) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%9.3fs ", float64(s.now-1_700_000_000_000)/1000)+fmt.Sprintf(format, args...))
}

// until drives until the condition holds, and fails if that takes longer than limit in the world's time.
func (s *sim) until(limit time.Duration, what string, holds func() bool) {
	end := s.now.Add(limit)
	for !holds() {
		if s.now > end {
			s.fail("not %s within %s", what, limit)
		}
		if s.rec.Step == job.StepDone {
			s.fail("the job is done and not %s", what)
		}
		s.now = max(s.now, s.due)
		s.drive()
	}
}

func (s *sim) finish(limit time.Duration) {
	s.until(limit, "done", func() bool { return s.rec.Step == job.StepDone })
}

// die reports whether the driver dies here; the job is due again when its claim has run out.
func (s *sim) die() bool {
	if !s.chance(s.crash) {
		return false
	}
	s.dead()
	return true
}

func (s *sim) dead() {
	s.note("driver dies")
	s.heard = nil
	s.loseSecond()
	s.due = s.now.Add(15 * time.Second)
}

// version is a record as it was committed at a time.
type version struct {
	at  job.Time
	rec job.Record
}

// loseSecond puts the record back to what it was a second ago. The machines that it does not know any more are found
// before another is made, or are for the collector if none is.
func (s *sim) loseSecond() {
	if !s.chance(s.forget) {
		return
	}
	for _, v := range s.stored {
		if s.now.Sub(v.at) <= time.Second {
			s.note("the store is back at %d", v.at)
			cancel := s.rec.Cancel
			s.rec = v.rec
			s.rec.Cancel = cancel
			break
		}
	}
	for _, v := range s.vms {
		if since := s.rec.Look.FailSince; since != 0 { // an answer after that is forgotten, too
			v.answered = min(v.answered, since)
		}
		v.stray = v.stray || s.rec.Attempt(v.attempt) == nil || v.task != s.rec.Cur
	}
}

// rounds bounds the decisions of one claim: more would be a loop that gets nowhere.
const rounds = 80

// drive is one claim.
func (s *sim) drive() {
	seen := job.Seen{}
	s.heard, s.rec = nil, s.through(s.rec)
	nexts, inline := 0, 2*time.Second // as the acts of the package tasks wait in place
	for range rounds {
		s.catchUp()
		next, do := job.Decide(s.rec, seen, s.rules, s.now)
		s.decided++
		s.note("%s: %s attempt %d (%s)", s.rec.Step, do.Kind, do.Attempt, next.Wait.For.Code)
		if s.die() {
			return
		}
		if do.Kind == job.DoNext {
			if nexts++; nexts > 6 {
				s.fail("%d decisions in a row that do nothing", nexts)
			}
		} else {
			nexts = 0
		}
		s.commit(next)
		switch do.Kind {
		case job.DoEnd:
			return
		case job.DoWait:
			s.checkWait(do)
			if inline -= do.Until.Sub(s.now); inline < 0 || do.Leave || !s.rec.Step.Acts() {
				s.due = do.Until
				return
			}
			s.now = do.Until
			seen = job.Seen{Slot: seen.Slot}
			continue
		case job.DoNext:
			seen = job.Seen{Slot: seen.Slot, Survey: seen.Survey, Probe: seen.Probe}
			continue
		}
		if s.onDo != nil {
			s.onDo(do)
		}
		if s.die() {
			if s.chance(s.zombie) {
				s.late = append(s.late, lateAct{at: s.now.Add(s.within(2 * time.Minute)), do: do, rec: s.rec})
			}
			return
		}
		s.perform(do, &s.rec, &seen, false)
		s.now = s.now.Add(time.Millisecond + s.within(time.Second))
		if s.dieAfter != nil && s.dieAfter(do) {
			s.dead()
			return
		}
		if s.die() {
			return
		}
		if do.Kind == job.DoProbe && seen.Probe.Fault == nil {
			s.heard = seen.Probe
		}
	}
	s.fail("%d decisions in one claim", rounds)
}

// catchUp carries out what drivers without a lease do late.
func (s *sim) catchUp() {
	s.late = slices.DeleteFunc(s.late, func(l lateAct) bool {
		if l.at > s.now {
			return false
		}
		s.note("a driver without a lease does %s attempt %d", l.do.Kind, l.do.Attempt)
		s.perform(l.do, &l.rec, &job.Seen{}, true)
		return true
	})
}

// perform does one thing in the world.
func (s *sim) perform(do job.Do, rec *job.Record, seen *job.Seen, late bool) {
	switch do.Kind {
	case job.DoHold:
		got := !s.chance(s.NoSlot)
		seen.Slot = &got
		return
	case job.DoChoose:
		seen.Choice = &job.Chosen{Choice: place.Choose(place.Input{
			Offers: s.offers, Resources: job.Resources{Any: []job.Want{{UseSpot: true}, {}}},
			Strategy: rec.Head.Tasks[rec.Cur].Recovery.Strategy, Search: rec.Tasks[rec.Cur].Search, Now: s.now, Seed: 1,
		})}
		return
	case job.DoSurvey:
		var regions []string
		for _, a := range rec.Live {
			if !do.Wide {
				regions = append(regions, a.Offer.Region)
			}
		}
		seen.Survey = s.list(regions)
		return
	}
	a := rec.Attempt(do.Attempt)
	if a == nil {
		s.fail("%s of attempt %d, which is not live", do.Kind, do.Attempt)
	}
	s.performOn(do, rec, a, seen, late)
}

func (s *sim) performOn(do job.Do, rec *job.Record, a *job.Attempt, seen *job.Seen, late bool) {
	switch do.Kind {
	case job.DoCreate:
		seen.Create = s.create(a, late)
	case job.DoProbe:
		seen.Probe = s.probe(a)
	case job.DoStart:
		if len(rec.Live) != 1 {
			s.fail("start of attempt %d beside other live attempts", a.Number)
		}
		p, began := s.start(a)
		seen.Start = p
		s.began(began)
	case job.DoStop:
		seen.Stop = s.stop(a, do.Grace)
	case job.DoSave:
		seen.Save = &job.Outcome{Attempt: a.Number, At: s.now}
		if s.chance(s.Archive) {
			seen.Save.Fault = &job.Fault{Class: job.Transient, Text: "bucket away"}
		}
	case job.DoTerminate:
		seen.Terminate = s.terminate(a)
	case job.DoPreempt:
		seen.Preempt = &job.Outcome{Attempt: a.Number, At: s.now}
		for _, v := range s.vms {
			if v.id == a.Nodes[0].ID {
				s.take(v, do.Grace)
			}
		}
	default:
		s.fail("do %q", do.Kind)
	}
}

// began checks G3 where it matters: in the world, at the moment at which the user's code really begins.
func (s *sim) began(v *vm) {
	if v == nil {
		return
	}
	s.started[v.task]++
	if done := s.success[v.task]; done != nil && !done.taken && done.silent == 0 {
		s.fail("the code of task %d begins again on %s: it had succeeded on %s, and the store lost that", v.task, v.id, done.id)
	}
	for _, other := range s.vms {
		if other != v && other.busy(s.now) {
			s.fail("G3: the code begins on %s (task %d, attempt %d) while it runs on %s (task %d, attempt %d)",
				v.id, v.task, v.attempt, other.id, other.task, other.attempt)
		}
	}
}

// commit makes a decision the record, as the store does, and checks what must hold for each.
func (s *sim) commit(next job.Record) {
	before := s.rec
	s.check(&before, &next)
	s.events = append(s.events, next.Events...)
	s.past = append(s.past, next.Past...)
	if s.forget > 0 {
		s.stored = append(s.stored, version{s.now, before})
		s.stored = s.stored[max(len(s.stored)-20, 0):]
	}
	s.rec = next.Clone()
	s.rec.Calm = next.Calm
	for _, v := range s.vms {
		if c := v.code; v.task == before.Cur && before.Status() != job.Succeeded && next.Tasks[v.task].Status == job.Succeeded && c != nil && c.exit.Code == 0 && c.ends <= s.now {
			s.success[v.task] = v
		}
		if p := s.heard; p != nil && v.task == before.Cur && v.attempt == p.Attempt {
			v.answered = p.At
		}
	}
	if s.onCommit != nil {
		s.onCommit(&before, &next)
	}
}

// through is the record after a trip through JSON, statuses and user's wishes apart, as internal/store keeps it.
func (s *sim) through(next job.Record) job.Record {
	b, err := json.Marshal(next)
	if err != nil || len(b) > 8<<10 {
		s.fail("the record cannot be stored in its %d bytes: %v", len(b), err)
	}
	var out job.Record
	if err := json.Unmarshal(b, &out); err != nil {
		s.fail("the record cannot be read: %v", err)
	}
	for i := range next.Tasks {
		out.Tasks[i].Status = next.Tasks[i].Status
	}
	return out
}

// cancel writes the user's wish and wakes the job.
func (s *sim) cancel() {
	s.rec.Cancel = &job.Cancel{At: s.now, By: "ann", Grace: -1}
	s.due = s.now
}

// quietly lets nothing go wrong any more.
func (s *sim) quietly() {
	s.chances, s.crash, s.denied, s.outage = chances{}, 0, "", 0
	for _, v := range s.vms {
		v.silent = 0
	}
}

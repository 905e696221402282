package job_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestAnyJobInAnyWorld drives jobs through worlds in which everything goes wrong at times: lost answers, machines that
// appear late, old views, silent agents, preemptions with and without notice, outages, dead drivers, drivers that act
// without a lease, cancels. In every decision the invariants of this package hold, and once things stop going wrong
// the job comes to its end.
//
// nomad #23640: with tens of thousands of spot tasks, lost ones were no longer placed anew.
func TestAnyJobInAnyWorld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), chances{
			Lost: percent(t, "lost", 40), Refused: percent(t, "refused", 30), Limited: percent(t, "limited", 30), Capacity: percent(t, "capacity", 60),
			Denied: percent(t, "denied", 3), Outage: percent(t, "outage", 3), Silence: percent(t, "silence", 10),
			Preempt: percent(t, "preempt", 20), Notice: percent(t, "notice", 100), StartLost: percent(t, "start lost", 30),
			Archive: percent(t, "archive", 60), Short: percent(t, "short", 10), NoSlot: percent(t, "no slot", 30),
		})
		w.settle = time.Duration(rapid.IntRange(0, 20).Draw(t, "settle")) * time.Second
		w.plan = somePlan(w)
		s := newSim(t, w, someTasks(t)...)
		s.crash, s.zombie = percent(t, "crash", 15), percent(t, "zombie", 100)
		if rapid.IntRange(0, 3).Draw(t, "the store forgets") == 0 {
			s.forget, s.zombie, w.settle = 50, 0, 0 // what nobody can see yet would not be found
		}
		wishes := someWishes(t)
		end := s.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes of trouble")) * time.Minute)
		for s.rec.Step != job.StepDone && s.now < end {
			s.now = max(s.now, s.due)
			wishes(s)
			s.drive()
		}
		s.quietly()
		s.due = s.now
		for _, v := range s.vms {
			if v.code != nil {
				v.code.ends = min(v.code.ends, s.now.Add(time.Minute))
			}
		}
		w.plan = func(int, int) code { return code{after: time.Minute, exit: job.Exit{Stage: "run"}} }
		s.decided = 0
		s.toTheEnd(end)
		if s.rec.Status() != job.Succeeded {
			s.resume() // whatever the first life was, the second one succeeds or reaches a limit
			s.decided = 0
			s.toTheEnd(s.now)
			if at := s.rec.Tasks[s.rec.Cur]; at.Status != job.Succeeded && at.Cause.Code != job.CodeMaxDuration && at.Cause.Code != job.CodeMaxWait {
				s.fail("a resumed job in a world without trouble is %s: %+v", s.rec.Status(), at.Cause)
			}
		}
		if rec, do := job.Decide(s.rec, job.Seen{}, s.rules, s.now); do.Kind != job.DoEnd || len(rec.Events) != 0 {
			s.fail("G5: a job that is done is told to %s", do.Kind)
		}
	})
}

func percent(t *rapid.T, name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }

func someTasks(t *rapid.T) []job.TaskHead {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.TaskHead {
		return job.TaskHead{
			MaxDuration: someLimit(t, "max_duration"), MaxWait: someLimit(t, "max_wait"),
			Idle:  rapid.IntRange(0, 9).Draw(t, "idle") == 0,
			Grace: time.Duration(rapid.IntRange(0, 20).Draw(t, "grace")) * time.Second,
			Recovery: job.Recovery{
				Strategy:            rapid.SampledFrom([]job.Strategy{"", job.EagerNextRegion, job.Failover, job.Never}).Draw(t, "strategy"),
				MaxRestartsOnErrors: rapid.IntRange(0, 3).Draw(t, "restarts"),
				RecoverOnExitCodes:  rapid.SliceOfN(rapid.IntRange(1, 3), 0, 2).Draw(t, "codes"),
			},
		}
	}), 1, 3).Draw(t, "tasks")
}

// someLimit is a limit of some minutes, or none.
func someLimit(t *rapid.T, name string) time.Duration {
	return max(0, time.Duration(rapid.IntRange(-20, 20).Draw(t, name))*time.Minute/2)
}

// someWishes are what users do: cancel, ask for a preemption, follow; and the doubts of the provider's views.
func someWishes(t *rapid.T) func(*sim) {
	cancelAfter := rapid.IntRange(0, 400).Draw(t, "cancel after drives")
	drives := 0
	return func(s *sim) {
		drives++
		if drives == cancelAfter && s.rec.Step != job.StepDone {
			s.cancel()
		}
		switch {
		case s.chance(2):
			s.rec.Preempt = &job.Preempt{At: s.now, Notice: s.within(90 * time.Second)}
		case s.chance(6):
			s.rec.Doubt = s.now
		case s.chance(5):
			s.rec.Follow = s.now.Add(15 * time.Second)
		case s.chance(1) && s.rec.Fault.N < 8:
			s.commit(job.Faulted(s.rec, "a panic", s.rules, s.now))
		}
	}
}

// somePlan is user code of all kinds.
func somePlan(w *world) func(task, attempt int) code {
	return func(int, int) code {
		c := code{after: w.within(20 * time.Minute), exit: job.Exit{Stage: "run"}, deaf: w.chance(30), lost: w.chance(5)}
		if w.chance(10) {
			c.after = never.Sub(w.now) // hangs
		}
		if w.chance(40) {
			c.exit.Code = 1 + w.dice.IntN(4)
		}
		if w.chance(10) {
			c.exit.Stage, c.exit.Code = "setup", 1
		}
		switch w.dice.IntN(3) {
		case 0:
			c.noticed = &job.Exit{Stage: "run"}
		case 1:
			c.noticed = &job.Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}
		}
		return c
	}
}

// toTheEnd drives until the job is done, which it must be within hours of a time and not too many decisions.
func (s *sim) toTheEnd(from job.Time) {
	for s.rec.Step != job.StepDone {
		if s.now > from.Add(4*time.Hour) || s.decided > 3000 {
			s.fail("not done %s and %d decisions after the trouble", s.now.Sub(from), s.decided)
		}
		s.now = max(s.now, s.due)
		s.drive()
	}
}

package job_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

func forever(int, int) code { return code{after: 1000 * time.Hour, exit: job.Exit{Stage: "run"}} }

// running is a job whose code runs, in a world in which nothing goes wrong yet.
func running(t failer, tasks ...job.TaskHead) *sim {
	w := newWorld(1, chances{})
	w.plan = forever
	s := newSim(t, w, tasks...)
	s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
	return s
}

// TestG3_NoticeMakesAReplacementReadyAndStartsItLater ensures that a replacement is made while the code still runs on
// the machine that will be taken, and that the code starts on it only when that machine is gone.
func TestG3_NoticeMakesAReplacementReadyAndStartsItLater(t *testing.T) {
	t.Parallel()
	s := running(t)
	old := s.vms[0]
	s.take(old, 2*time.Minute)
	ready := false
	s.onCommit = func(_, after *job.Record) {
		if len(after.Live) == 2 && after.Live[1].Phase == job.PhaseReady && s.now < old.ends {
			ready = true
			if after.HoldsSlot() {
				s.fail("G9: a launch slot is held while the replacement only waits")
			}
		}
	}
	s.until(time.Hour, "running again", func() bool { return s.started[0] == 2 && s.rec.Status() == job.Running })
	if !ready {
		t.Error("the replacement was not ready before the old machine was taken")
	}
	if late := s.now.Sub(old.ends); late > time.Minute {
		t.Errorf("running again %s after the old machine was taken", late)
	}
	if n := s.rec.Tasks[0].Recoveries; n != 1 || s.rec.Status() != job.Running {
		t.Errorf("%d recoveries, %s", n, s.rec.Status())
	}
}

// TestG3_ReplacementLostWhileTheOldCodeRuns ensures that the code on the leaving machine is looked after also while
// a lost replacement is being closed: its success counts.
func TestG3_ReplacementLostWhileTheOldCodeRuns(t *testing.T) {
	t.Parallel()
	s := running(t)
	old := s.vms[0]
	s.take(old, 5*time.Minute)
	ending := false
	s.onCommit = func(_, after *job.Record) {
		switch {
		case len(after.Live) == 2 && after.Live[1].Phase == job.PhaseBooting:
			s.take(s.vms[1], 0)
		case after.Step == job.StepRecover && !ending:
			ending = true
			s.outage = s.now.Add(time.Hour) // the lost replacement cannot be closed for a while
			old.code.ends, old.code.exit = s.now.Add(10*time.Second), job.Exit{Stage: "run"}
		}
	}
	s.until(2*time.Minute, "succeeded", func() bool { return s.rec.Status() == job.Succeeded })
	if !ending || len(s.rec.Live) != 2 {
		t.Errorf("succeeded beside %d live attempts", len(s.rec.Live))
	}
	s.finish(2 * time.Hour)
}

// TestG3_LostAnswersAreClosedFirst ensures that after a create whose answer was lost no other offer is tried before
// what may have been made is gone.
func TestG3_LostAnswersAreClosedFirst(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(seed, chances{Lost: 80, Capacity: 30, Refused: 40})
		s := newSim(t, w)
		s.crash = 10
		s.onCommit = func(before, after *job.Record) {
			if after.Tasks[0].Attempts == before.Tasks[0].Attempts {
				return
			}
			for _, v := range s.vms {
				if s.now < v.ends {
					s.fail("attempt %d is begun while %s of attempt %d is there", after.Tasks[0].Attempts, v.id, v.attempt)
				}
			}
		}
		s.finish(12 * time.Hour)
	}
}

// TestG3_ForgottenMachines ensures that a store which lost its last second does not double what it forgot: machines
// of this task with a higher number, or with the same one in another place, are closed before any is made.
func TestG3_ForgottenMachines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		attempt  int
		offer    int
		attempts int // highest number in the end
		machines int
	}{
		{"a higher number in the same place", 5, 0, 6, 2},
		{"a higher number in another place", 5, 3, 6, 2},
		{"the same number in another place", 1, 3, 2, 2},
		{"the same number in the same place is adopted", 1, 0, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, chances{})
			s := newSim(t, w)
			w.create(&job.Attempt{Number: tt.attempt, Offer: w.offers[tt.offer], Token: job.Token("test", simID, 0, tt.attempt)}, false)
			forgotten := s.vms[0]
			forgotten.code = &code{ends: s.now.Add(3 * time.Second), exit: job.Exit{Stage: "run"}}
			if tt.machines > 1 {
				forgotten.code.ends = never
			}
			s.now = s.now.Add(10 * time.Second)
			s.finish(time.Hour)
			if got := s.rec.Tasks[0].Attempts; got != tt.attempts || len(s.vms) != tt.machines {
				t.Errorf("%d attempts, %d machines, want %d and %d", got, len(s.vms), tt.attempts, tt.machines)
			}
			if s.rec.Status() != job.Succeeded {
				t.Errorf("the job is %s", s.rec.Status())
			}
		})
	}
}

// TestG5_NothingChangesAnEnding ensures that a cancel, a fault of ours and a failing clean-up after the end change
// neither status nor cause.
func TestG5_NothingChangesAnEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	s := newSim(t, w)
	s.until(time.Hour, "succeeded", func() bool { return s.rec.Status() == job.Succeeded })
	was := s.rec.Tasks[0]
	s.outage = s.now.Add(24 * time.Hour) // the machine cannot be ended
	s.cancel()
	for range 15 {
		s.now = max(s.now, s.due)
		s.drive()
		next := job.Faulted(s.rec, "a panic", s.rules, s.now)
		s.commit(next)
		s.due = next.Due
	}
	s.outage = 0
	s.finish(3 * time.Hour)
	if got := s.rec.Tasks[0]; got.Status != job.Succeeded || got.Cause != was.Cause || got.EndedAt != was.EndedAt {
		t.Errorf("%+v became %+v", was, got)
	}
	before := s.rec
	if after := job.Faulted(before, "late", s.rules, s.now); len(after.Events) != 0 || after.Step != job.StepDone || after.Fault != before.Fault {
		t.Errorf("a late fault changed a job that is done: %+v", after)
	}
}

// TestG6_VerdictNeedsProbesAndTime ensures that a silent agent on a machine that its provider calls running is given
// up only after 5 probes and 60 seconds, whichever is later, and that the next incarnation starts without suspicion.
func TestG6_VerdictNeedsProbesAndTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		pause time.Duration // what a probe takes
	}{
		{"quick probes", 0}, {"slow probes", 40 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t)
			v := s.vms[0]
			v.silent = never
			probes, first := 0, job.Time(0)
			s.onDo = func(do job.Do) {
				if do.Kind == job.DoProbe && s.rec.Step == job.StepWatch {
					s.now = s.now.Add(tt.pause)
					probes++
				}
				if first == 0 && do.Kind == job.DoSurvey {
					first = s.now
				}
			}
			s.until(time.Hour, "recovering", func() bool { return s.rec.Status() == job.Recovering })
			if took := s.now.Sub(first); probes < 5 || took < time.Minute || took > 5*time.Minute {
				t.Errorf("given up after %d probes and %s", probes, took)
			}
			if c := s.rec.Tasks[0].Cause; c.Code != job.CodeUnreachable || c.Evidence == "" {
				t.Errorf("cause %+v", c)
			}
			s.onDo = nil
			s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
			if l := s.rec.Look; l.Fails != 0 || l.FailSince != 0 || l.Misses != 0 {
				t.Errorf("a new incarnation is under suspicion: %+v", l)
			}
		})
	}
}

// TestG6_OneAnswerEndsSuspicion ensures that only probes in a row count, in a launch under notice as well.
func TestG6_OneAnswerEndsSuspicion(t *testing.T) {
	t.Parallel()
	for _, notice := range []bool{false, true} {
		s := running(t)
		v := s.vms[0]
		if notice {
			s.take(v, 10*time.Hour)
		}
		for range 20 {
			v.silent = s.now.Add(50 * time.Second)
			s.until(10*time.Minute, "under suspicion", func() bool { return s.rec.Look.Fails >= 4 })
			v.silent = 0
			s.until(10*time.Minute, "free of suspicion", func() bool { return s.rec.Look.Fails == 0 && s.rec.Look.FailSince == 0 })
		}
		if s.rec.Status() != job.Running || s.rec.Tasks[0].Recoveries != 0 {
			t.Errorf("notice %t: %s after %d recoveries", notice, s.rec.Status(), s.rec.Tasks[0].Recoveries)
		}
	}
}

// TestG6_ViewsWithoutAMachineThatAnswers ensures that a provider which forgets a machine that answers is not believed.
func TestG6_ViewsWithoutAMachineThatAnswers(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.vms[0].gone = s.now // from the views only
	for range 50 {
		s.rec.Doubt, s.due = s.now, s.now
		s.drive()
		s.now = s.now.Add(time.Minute)
	}
	if s.rec.Status() != job.Running || s.started[0] != 1 {
		t.Errorf("%s, started %d times", s.rec.Status(), s.started[0])
	}
}

// TestG6_GoneNeedsTwoCleanViews ensures that closing ends with two views without the machine, both newer than the
// order and the time in which the provider's answers settle; a view with it, or none, starts the count again.
func TestG6_GoneNeedsTwoCleanViews(t *testing.T) {
	t.Parallel()
	at := job.Time(100_000)
	rec := job.NewRecord(job.Head{ID: simID, Tasks: make([]job.TaskHead, 1)})
	rec.Step, rec.Tasks[0].Status = job.StepRecover, job.Starting
	rec.Tasks[0].Attempts = 1
	rec.Live = []job.Attempt{{Number: 1, Phase: job.PhaseClosing, TermAt: at}}
	node := job.SeenNode{Attempt: 1, State: job.NodeStopping}
	ended := job.SeenNode{Attempt: 1, State: job.NodeEnded}
	other := job.SeenNode{Attempt: 2, State: job.NodeRunning}
	settle := 5 * time.Second
	for _, view := range []struct {
		what   string
		survey job.Survey
		reads  int
		gone   bool
	}{
		{"before the answers have settled", job.Survey{At: at + 1000, Settle: settle}, 0, false},
		{"first", job.Survey{At: at + 6000, Settle: settle, Nodes: []job.SeenNode{other}}, 1, false},
		{"the same again", job.Survey{At: at + 6000, Settle: settle}, 1, false},
		{"a failed one", job.Survey{At: at + 6500, Fault: &job.Fault{Class: job.Transient, Text: "503"}}, 0, false},
		{"first", job.Survey{At: at + 6600, Settle: settle}, 1, false},
		{"still there", job.Survey{At: at + 6610, Settle: settle, Nodes: []job.SeenNode{node}}, 0, false},
		{"first", job.Survey{At: at + 6620, Settle: settle, Nodes: []job.SeenNode{ended}}, 1, false},
		{"second", job.Survey{At: at + 6630, Settle: settle}, 0, true},
	} {
		rec.Wait.Until = 0
		next, _ := job.Decide(rec, job.Seen{Survey: &view.survey}, job.DefaultRules, view.survey.At+10)
		if gone := len(next.Live) == 0; gone != view.gone {
			t.Fatalf("%s view: gone is %t", view.what, gone)
		}
		if !view.gone && next.Live[0].Reads != view.reads {
			t.Fatalf("%s view: %d clean reads, want %d", view.what, next.Live[0].Reads, view.reads)
		}
		rec = next
	}
}

// TestG7_CancelAtEveryPoint cancels before every single act in the life of a job that is preempted with and without
// notice, loses answers and is restarted. It ends CANCELLED, soon, and leaves nothing.
func TestG7_CancelAtEveryPoint(t *testing.T) {
	t.Parallel()
	for point := 1; point <= 120; point++ {
		w := newWorld(5, chances{Lost: 30, Capacity: 20, Preempt: 8, Notice: 50})
		w.plan = func(_, n int) code {
			return code{after: 2 * time.Minute, exit: job.Exit{Stage: "run", Code: 7}, deaf: n%2 == 0}
		}
		s := newSim(t, w, job.TaskHead{Grace: 5 * time.Second, Recovery: job.Recovery{RecoverOnExitCodes: []int{7}}}, job.TaskHead{})
		acts := 0
		s.onDo = func(job.Do) {
			if acts++; acts == point {
				s.cancel()
			}
		}
		s.until(100*time.Hour, "cancelled", func() bool { return s.rec.Cancel != nil || acts > point })
		at := s.now
		s.chances, s.decided = chances{}, 0
		s.finish(5 * time.Minute)
		if s.decided > 120 {
			t.Fatalf("point %d: %d decisions, %s after the cancel", point, s.decided, s.now.Sub(at))
		}
		for i, task := range s.rec.Tasks {
			if task.Status != job.Cancelled {
				t.Fatalf("point %d: task %d is %s", point, i, task.Status)
			}
		}
	}
}

// TestG7_Grace ensures that a cancel gives the user's code its grace from the moment at which it was told, however
// long nobody drove the job before that.
func TestG7_Grace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		own    time.Duration
		cancel time.Duration
		want   time.Duration
	}{
		{"the default", 0, -1, 30 * time.Second},
		{"the task's own", 7 * time.Second, -1, 7 * time.Second},
		{"as the canceller says", 7 * time.Second, 3 * time.Second, 3 * time.Second},
		{"none at all", 7 * time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, job.TaskHead{Grace: tt.own})
			s.vms[0].code.deaf = true
			s.cancel()
			s.rec.Cancel.Grace = tt.cancel
			next, _ := job.Decide(s.rec, job.Seen{}, s.rules, s.now)
			s.commit(next)
			s.now = s.now.Add(time.Hour) // no worker was there
			var told, ended job.Time
			s.onDo = func(do job.Do) {
				if do.Kind == job.DoStop && told == 0 {
					told = s.now
					if do.Grace != tt.want {
						t.Errorf("grace %s, want %s", do.Grace, tt.want)
					}
				}
				if do.Kind == job.DoTerminate && ended == 0 {
					ended = s.now
				}
			}
			s.finish(time.Hour)
			if got := ended.Sub(told); told == 0 || got < tt.want || got > tt.want+8*time.Second {
				t.Errorf("told at %d, machine ended %s later, want %s", told, got, tt.want)
			}
		})
	}
}

// TestG10_OutageIsAPause ensures that no outage, however long, of the provider, of the network or of both changes the
// fate of a running or booting job.
func TestG10_OutageIsAPause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		status          job.Status
		provider, agent time.Duration
	}{
		{"provider, running", job.Running, 3 * time.Hour, 0},
		{"provider and agent, running", job.Running, 3 * time.Hour, 3*time.Hour + 15*time.Second},
		{"provider, booting", job.Starting, 3 * time.Hour, 0},
		{"agent for less than a minute", job.Running, 0, 50 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, chances{})
			w.plan = forever
			s := newSim(t, w)
			s.until(time.Hour, "there", func() bool {
				return s.rec.Status() == tt.status && len(s.vms) == 1 && s.rec.Live[0].Phase != job.PhaseIntent
			})
			s.outage, s.vms[0].silent = s.now.Add(tt.provider), s.now.Add(tt.agent)
			end, decided := s.now.Add(4*time.Hour), s.decided
			for s.now < end {
				if s.chance(20) {
					s.rec.Doubt = s.now
				}
				s.now = max(s.now, s.due)
				s.drive()
			}
			if task := s.rec.Tasks[0]; task.Status != job.Running || task.Attempts != 1 || task.Recoveries != 0 {
				t.Errorf("%s, %d attempts, %d recoveries", task.Status, task.Attempts, task.Recoveries)
			}
			if n := s.decided - decided; n > 10_000 {
				t.Errorf("%d decisions in four hours", n)
			}
		})
	}
}

// TestG8_RecordStaysSmall ensures that the record of a job that was preempted 50 times in a world without room, where
// providers talk a lot, is below 4 KB, and that every cause is kept in the history.
func TestG8_RecordStaysSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{Capacity: 60, Lost: 20})
	w.plan = forever
	s := newSim(t, w)
	takenAt(50, time.Minute, 0)(s)
	most := 0
	s.onCommit = func(_, after *job.Record) {
		b, err := json.Marshal(after.Clone())
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(b))
	}
	s.until(1000*time.Hour, "preempted often", func() bool { return s.rec.Tasks[0].Recoveries >= 50 })
	if most > 4<<10 {
		t.Errorf("the record had up to %d bytes", most)
	}
	recovered := 0
	for _, e := range s.events {
		if e.From == string(job.Recovering) && e.To == string(job.Running) && e.Cause.Code != "" {
			recovered++
		}
	}
	if recovered != s.rec.Tasks[0].Recoveries {
		t.Errorf("%d recoveries, %d of them explained", s.rec.Tasks[0].Recoveries, recovered)
	}
}

// TestG13_EveryEndingExplainsItself ensures code, sentence and evidence of the endings that no user code explains.
func TestG13_EveryEndingExplainsItself(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		make   func() *sim
		status job.Status
		code   job.Code
	}{
		{"refused for good at first", func() *sim { return newSim(t, newWorld(1, chances{Denied: 100})) }, job.FailedPrechecks, job.CodeDenied},
		{"refused for good in a recovery", func() *sim {
			s := running(t)
			s.take(s.vms[0], 0)
			s.Denied = 100
			return s
		}, job.FailedNoResource, job.CodeDenied},
		{"no offer", func() *sim {
			w := newWorld(1, chances{})
			w.offers = nil
			return newSim(t, w)
		}, job.FailedPrechecks, job.CodeNoOffer},
		{"the user cancels", func() *sim {
			s := running(t)
			s.cancel()
			return s
		}, job.Cancelled, job.CodeCancelled},
		{"the user cancels a recovery", func() *sim {
			s := running(t)
			s.take(s.vms[0], 0)
			s.onCommit = func(_, after *job.Record) {
				if after.Status() == job.Recovering && s.rec.Cancel == nil {
					s.cancel()
				}
			}
			return s
		}, job.Cancelled, job.CodeCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.make()
			s.finish(time.Hour)
			task := s.rec.Tasks[0]
			if task.Status != tt.status || task.Cause.Code != tt.code || task.Cause.Text == "" {
				t.Errorf("%s with cause %+v, want %s with %s", task.Status, task.Cause, tt.status, tt.code)
			}
			if last := s.events[len(s.events)-1]; tt.code != job.CodeCancelled && task.Cause.Evidence == "" && tt.code != job.CodeNoOffer {
				t.Errorf("no evidence in %+v, last event %+v", task.Cause, last)
			}
		})
	}
}

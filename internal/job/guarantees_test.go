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

// TestG5_NothingChangesAnEnding ensures that a cancel, a fault of ours and a failing clean-up after the end change
// neither status nor cause.
//
// skypilot #9189: a clean-up that failed made FAILED_CONTROLLER of SUCCEEDED.
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

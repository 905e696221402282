package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestCalm ensures that a job whose code runs becomes calm, stays it, and is no more when there is anything to think of. What
// being calm means is checked for each record, see checkCalm.
func TestCalm(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	w.plan = forever
	s := newSim(t, w)
	s.until(time.Hour, "calm", func() bool { return s.rec.Calm })
	for range 10 {
		s.now = s.due
		s.drive()
		if !s.rec.Calm {
			t.Fatal("a quiet look has ended the calm")
		}
	}
	if s.calm < 10 {
		t.Errorf("%d records were checked", s.calm)
	}
	now := s.now
	quiet := job.Probe{Attempt: 1, At: now, State: job.RunAlive, Tail: s.rec.Look.Tail, Kept: s.rec.Look.Kept}
	for name, change := range map[string]func(*job.Record, *job.Probe){
		"a log that grows":                  func(_ *job.Record, p *job.Probe) { p.Tail += 10 },
		"a log that was archived":           func(_ *job.Record, p *job.Probe) { p.Tail += 10; p.Kept += 10 },
		"a log that is not archived":        func(r *job.Record, p *job.Probe) { r.Look.Tail += 10; p.Tail += 10 },
		"somebody who follows":              func(r *job.Record, _ *job.Probe) { r.Follow = now.Add(time.Minute) },
		"an agent that did not answer":      func(_ *job.Record, p *job.Probe) { p.Fault = &job.Fault{Class: job.Transient} },
		"a notice":                          func(_ *job.Record, p *job.Probe) { p.Notice = &job.Notice{At: now, After: 60} },
		"an exit":                           func(_ *job.Record, p *job.Probe) { p.State, p.Exit = job.RunExited, &job.Exit{Stage: "run", Code: 1} },
		"looks that are still growing rare": func(r *job.Record, _ *job.Probe) { r.Look.Every = 2000 },
		"a doubt":                           func(r *job.Record, _ *job.Probe) { r.Doubt = now },
		"a wish to lose the machine":        func(r *job.Record, _ *job.Probe) { r.Preempt = &job.Preempt{At: now} },
		"a cancel":                          func(r *job.Record, _ *job.Probe) { r.Cancel = &job.Cancel{At: now} },
	} {
		rec, p := s.rec.Clone(), quiet
		change(&rec, &p)
		if next, _ := job.Decide(rec, job.Seen{Probe: &p}, job.DefaultRules, now); next.Calm {
			t.Errorf("calm in spite of %s", name)
		}
	}
	if next, _ := job.Decide(s.rec.Clone(), job.Seen{Probe: &quiet}, job.DefaultRules, now); !next.Calm {
		t.Error("not calm without a reason")
	}
	if next := job.Paused(s.rec, "", now); next.Calm {
		t.Error("a job that waits for another worker is calm")
	}
}

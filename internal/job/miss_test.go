package job_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG6_NoLapseOfAListIsProof ensures that a machine which boots is never given up for what lists lack, as long as no lapse of
// them lasts a second or comes again within five: whenever views are made, however many of them, and whoever dies in between.
func TestG6_NoLapseOfAListIsProof(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		settle := time.Duration(rapid.IntRange(0, 3).Draw(t, "settle")) * time.Second
		created := job.Time(1_000_000)
		now := created
		rec := launching(job.PhaseBooting, created)
		rec.Live[0].CreatedAt, rec.Live[0].Nodes = created, []job.Node{{ID: "vm"}}
		there := []job.SeenNode{{Node: job.Node{ID: "vm"}, Attempt: 1, State: job.NodeBooting}}
		lapse, over := job.Time(0), job.Time(0) // of the lists: from, until
		yes := true
		for range rapid.IntRange(1, 60).Draw(t, "views") {
			now = now.Add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms later")) * time.Millisecond)
			if now >= over.Add(5*time.Second) && rapid.Bool().Draw(t, "a lapse begins") {
				lapse, over = now, now.Add(time.Duration(rapid.IntRange(1, 999).Draw(t, "for ms"))*time.Millisecond)
			}
			s := &job.Survey{At: now, Settle: settle, Nodes: there}
			if now >= lapse && now < over || now < created.Add(settle) && rapid.Bool().Draw(t, "it lags") {
				s.Nodes = nil
			}
			next, do := job.Decide(rec, job.Seen{Slot: &yes, Survey: s}, job.DefaultRules, now)
			if next.Attempt(1) == nil || next.Attempt(1).Phase != job.PhaseBooting {
				t.Fatalf("it was given up: %s, %+v, %+v", do.Kind, next.Live, next.Past)
			}
			rec = next
			rec.Wait = job.Waiting{}
		}
	})
}

// TestG6_WhatIsGoneIsFound ensures that a machine which is gone from all lists is given up within seconds.
func TestG6_WhatIsGoneIsFound(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.settle = 0
	v := s.vms[0]
	v.ends, v.gone, v.leaving = s.now, s.now, s.now
	from := s.now
	s.until(time.Minute, "recovering", func() bool { return s.rec.Status() == job.Recovering })
	if took := s.now.Sub(from); took > 45*time.Second { // of which the next look may be away 15 and a probe take 10
		t.Errorf("it took %s", took)
	}
}

package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG4_AlarmOfAMachineThatCannotBeEnded ensures that it is told once, not never and not again, that a machine cannot be ended:
// also if the number of failures jumps over that at which it is told, and if the provider takes each order and the machine stays.
//
// The schedule of the jump: seven lists fail in a row; then the next call waits for its turn, which keeps the count; then the
// order to end the machine is refused for the first time, as the eighth failure.
func TestG4_AlarmOfAMachineThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	const start = job.Time(1_700_000_000_000)
	closing := func() job.Record {
		rec := launching(job.PhaseClosing, start)
		rec.Step, rec.Tasks[0].Status, rec.Live[0].ClosingAt = job.StepCleanup, job.Succeeded, start
		return rec
	}
	told := func(rec job.Record) int { return len(rec.Events) }
	t.Run("the count jumps", func(t *testing.T) {
		t.Parallel()
		rec, now, alarms := closing(), start.Add(time.Minute), 0
		rec.Wait = job.Waiting{For: job.Cause{Code: job.CodeRateLimit}, Tries: 7}
		for i := range 20 {
			denied := &job.Outcome{Attempt: 1, At: now, Fault: &job.Fault{Class: job.Denied, Text: "ExpiredToken"}}
			next, do := job.Decide(rec, job.Seen{Terminate: denied}, job.DefaultRules, now)
			if alarms += told(next); alarms != 1 || do.Kind != job.DoWait || next.Live[0].AlarmAt != start.Add(time.Minute) {
				t.Fatalf("after failure %d it was told %d times, at %d; then %s", i+8, alarms, next.Live[0].AlarmAt, do.Kind)
			}
			rec, now = next.Clone(), do.Until
			rec.Events = nil
		}
	})
	t.Run("the machine stays", func(t *testing.T) {
		t.Parallel()
		rec, now, alarms := closing(), start, 0
		rec.Live[0].Nodes = []job.Node{{ID: "m"}}
		for now < start.Add(24*time.Hour) {
			seen := job.Seen{
				Terminate: &job.Outcome{Attempt: 1, At: now},
				Survey:    &job.Survey{At: now.Add(time.Millisecond), Nodes: []job.SeenNode{{Node: job.Node{ID: "m"}, Attempt: 1, State: job.NodeRunning}}},
			}
			next, do := job.Decide(rec, seen, job.DefaultRules, now)
			alarms += told(next)
			if want := now > start.Add(20*time.Minute); want && alarms != 1 || alarms > 1 {
				t.Fatalf("it was told %d times after %s", alarms, now.Sub(start))
			}
			rec, now = next.Clone(), max(do.Until, now.Add(time.Second))
			rec.Events = nil
		}
	})
}

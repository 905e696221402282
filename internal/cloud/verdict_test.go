package cloud_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a machine is an orphan only if its record is certain never to use or end it, and only when it is old
// enough for that record to be trusted.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	live := func(phase job.Phase) *job.Record {
		r := job.NewRecord(job.Head{ID: 7, Tasks: make([]job.TaskHead, 3)})
		r.Step, r.Cur = job.StepWatch, 1
		r.Tasks[1].Attempts = 2
		r.Live = []job.Attempt{{Task: 1, Number: 2, Phase: phase, Why: job.Cause{Code: job.CodePreempted, Text: "taken"}}}
		return &r
	}
	done := live(job.PhaseStarted)
	done.Step, done.Live = job.StepDone, nil
	done.Tasks[0].Status, done.Tasks[1].Status = job.Succeeded, job.Cancelled

	suspected, elsewhere := live(job.PhaseStarted), live(job.PhaseStarted)
	suspected.Look.Fails = 1
	elsewhere.Live[0].Nodes = []job.Node{{ID: "another"}}

	for _, tc := range []struct {
		name    string
		task, n int
		state   cloud.State
		age     time.Duration
		rec     *job.Record
		want    cloud.Verdict
	}{
		{"its attempt runs", 1, 2, cloud.Running, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOK}},
		{"its attempt is only intended", 1, 2, cloud.Booting, 0, live(job.PhaseIntent), cloud.Verdict{Kind: cloud.VerdictOK}},
		{"its attempt is closing", 1, 2, cloud.Stopping, time.Hour, live(job.PhaseClosing), cloud.Verdict{Kind: cloud.VerdictClosing, Why: "taken"}},
		{"ended, its attempt runs", 1, 2, cloud.Preempted, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictEnded, Why: "reason"}},
		{"ended, its job is unknown", 1, 2, cloud.Terminated, time.Hour, nil, cloud.Verdict{Kind: cloud.VerdictEnded, Why: "reason"}},
		{"unknown job", 1, 2, cloud.Running, time.Hour, nil, cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "job 7 is unknown"}},
		{"unknown job, young", 1, 2, cloud.Running, time.Second, nil, cloud.Verdict{Kind: cloud.VerdictOK, Why: "younger than 30s: not judged yet"}},
		{"unknown job, as old as must be", 1, 2, cloud.Running, cloud.DefaultMinAge, nil, cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "job 7 is unknown"}},
		{"done job", 1, 2, cloud.Running, time.Hour, done, cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "job 7 is done (CANCELLED)"}},
		{"earlier attempt", 1, 1, cloud.Running, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "attempt 1 of job 7 is over"}},
		{"earlier attempt, young", 1, 1, cloud.Running, time.Second, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOK, Why: "younger than 30s: not judged yet"}},
		{"earlier attempt, on its way out", 1, 1, cloud.Stopping, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "attempt 1 of job 7 is over"}},
		{"later attempt", 1, 3, cloud.Running, time.Hour, live(job.PhaseReady), cloud.Verdict{Kind: cloud.VerdictForgotten, Why: "attempt 3 is newer than the record, which knows 2"}},
		{"later attempt, the code runs", 1, 3, cloud.Running, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "attempt 3 was forgotten, and the code runs in attempt 2"}},
		{"later attempt, the code runs, young", 1, 3, cloud.Running, time.Second, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOK, Why: "younger than 30s: not judged yet"}},
		{"later attempt, the code may not run", 1, 3, cloud.Running, time.Hour, suspected, cloud.Verdict{Kind: cloud.VerdictForgotten, Why: "attempt 3 is newer than the record, which knows 2"}},
		{"its attempt runs elsewhere", 1, 2, cloud.Running, time.Hour, elsewhere, cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "the code of attempt 2 runs on another machine"}},
		{"earlier task", 0, 2, cloud.Running, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictOrphan, Why: "task 0 of job 7 has ended"}},
		{"later task", 2, 1, cloud.Running, time.Hour, live(job.PhaseStarted), cloud.Verdict{Kind: cloud.VerdictForgotten, Why: "job 7 is still at task 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := cloud.Node{
				Identity: cloud.Identity{Job: 7, Task: tc.task, Attempt: tc.n},
				State:    tc.state, Reason: "reason", CreatedAt: now.Add(-tc.age),
			}
			if diff := cmp.Diff(tc.want, cloud.Judge(n, tc.rec, now, cloud.DefaultMinAge)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// Ensure that a machine of a job that the store has lost is an orphan, also if another job has got its id since; and that one
// which an older version has made is judged by the id alone (G3, G4).
func TestG4_JudgeKnowsJobsByTheirNonce(t *testing.T) {
	r := job.NewRecord(job.Head{ID: 7, Nonce: "new", Tasks: make([]job.TaskHead, 1)})
	r.Tasks[0].Attempts = 1
	r.Live = []job.Attempt{{Number: 1, Phase: job.PhaseStarted}}
	for nonce, want := range map[string]cloud.VerdictKind{"new": cloud.VerdictOK, "old": cloud.VerdictOrphan, "": cloud.VerdictOK} {
		n := cloud.Node{Identity: cloud.Identity{Job: 7, Nonce: nonce, Attempt: 1}, State: cloud.Running}
		if v := cloud.Judge(n, &r, time.Now(), cloud.DefaultMinAge); v.Kind != want {
			t.Errorf("nonce %q: verdict is %+v, want %s", nonce, v, want)
		}
	}
}

// Ensure that a machine of unknown age is not spared for ever.
func TestJudgeUnknownAge(t *testing.T) {
	n := cloud.Node{Identity: cloud.Identity{Job: 7}, State: cloud.Running}
	if v := cloud.Judge(n, nil, time.Now(), cloud.DefaultMinAge); v.Kind != cloud.VerdictOrphan {
		t.Errorf("verdict is %q, want orphan", v.Kind)
	}
}

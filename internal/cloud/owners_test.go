package cloud_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a machine whose record nobody can read is no orphan, and hides the verdict on no other one.
//
// karpenter-provider-gcp #616: one bad record ended the scan of all.
func TestJudgeOfDamagedRecords(t *testing.T) {
	done := job.NewRecord(job.Head{ID: 1, Tasks: make([]job.TaskHead, 1)})
	done.Step = job.StepDone
	owners := cloud.Owners{Known: map[job.ID]job.Record{1: done}, Damaged: map[job.ID]error{2: errors.New("no JSON")}}
	machine := func(id job.ID, state cloud.State) cloud.Node {
		return cloud.Node{Identity: cloud.Identity{Job: id, Attempt: 1}, State: state}
	}
	for _, c := range []struct {
		n    cloud.Node
		want cloud.VerdictKind
	}{
		{machine(1, cloud.Running), cloud.VerdictOrphan},
		{machine(2, cloud.Running), cloud.VerdictOK},
		{machine(2, cloud.Terminated), cloud.VerdictEnded},
		{machine(3, cloud.Running), cloud.VerdictOrphan},
	} {
		if v := owners.Judge(c.n, time.Now(), 0); v.Kind != c.want || v.Kind == cloud.VerdictOK && v.Why != "no JSON" {
			t.Errorf("job %d, %s: %+v, want %s", c.n.Job, c.n.State, v, c.want)
		}
	}
}

// Ensure that a stored view is read as it was listed, that there may be none, and that a damaged one is an error.
func TestListed(t *testing.T) {
	for view, want := range map[string][]job.ID{"": {}, "[]": {}, `[{"job":2},{"job":1},{"job":2}]`: {1, 2}} {
		nodes, err := cloud.Listed([]byte(view))
		if got := cloud.JobsOf(nodes); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: jobs %v, %v", view, got, err)
		}
	}
	if _, err := cloud.Listed([]byte("[{")); err == nil {
		t.Error("a damaged view is read")
	}
}

package account_test

import (
	"testing"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that there is a word for each thing that a job may be kept by, and none while it runs.
func TestStage(t *testing.T) {
	live := func(p job.Phase) []job.Attempt {
		return []job.Attempt{{Phase: p, Offer: job.Offer{Provider: "sim", Region: "north"}}}
	}
	for _, tc := range []struct {
		name   string
		status job.Status
		live   []job.Attempt
		wait   job.Cause
		want   string
	}{
		{"new", job.Pending, nil, job.Cause{}, "job 7 waits for a machine"},
		{"in line", job.Pending, nil, job.Cause{Code: job.CodeLaunchSlot, Text: "waits for a launch slot"}, "job 7 waits for a launch slot"},
		{"intent", job.Starting, live(job.PhaseIntent), job.Cause{}, "job 7 asks sim/north for a machine"},
		{"booting", job.Starting, live(job.PhaseBooting), job.Cause{}, "job 7 waits until its machine at sim/north is up"},
		{"ready", job.Recovering, live(job.PhaseReady), job.Cause{}, "job 7 is being started at sim/north"},
		{"closing", job.Recovering, live(job.PhaseClosing), job.Cause{}, "job 7 gives its machine at sim/north back"},
		{"cancelling", job.Cancelling, live(job.PhaseClosing), job.Cause{}, "job 7 is being cancelled"},
		{"running", job.Running, live(job.PhaseStarted), job.Cause{}, ""},
		{"ended", job.Failed, nil, job.Cause{}, ""},
	} {
		r := job.Record{Head: job.Head{ID: 7}, Tasks: []job.Task{{Status: tc.status}}, Live: tc.live, Wait: job.Waiting{For: tc.wait}}
		if got := account.Stage(&r); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

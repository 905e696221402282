package spec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

func envInput() EnvInput {
	return EnvInput{
		Request: job.Request{
			Name: "nightly", User: "eve", Rank: 2, Count: 5,
			Tasks: []job.TaskRequest{
				{Name: "fetch"},
				{Name: "train", Envs: map[string]string{"STEPS": "30", "SKYPILOT_TASK_ID": "mine", "OUTLAST_ATTEMPT": "9"}, Secrets: []string{"TOKEN"}},
			},
		},
		Job: 42, Task: 1, Submitted: job.TimeOf(time.Date(2026, 3, 1, 12, 30, 5, 7_000_000, time.UTC)),
		Attempt: 3, Recoveries: 2,
		Offer: job.Offer{Provider: "aws", Region: "us-east-1", Zone: "us-east-1a"},
	}
}

// TestEnvironment ensures the whole environment of a run on one node, byte for byte: it is what users rely on.
func TestEnvironment(t *testing.T) {
	const (
		id   = "sky-managed-2026-03-01-12-30-05-007000_nightly_train_42-1"
		ids  = "sky-managed-2026-03-01-12-30-05-007000_nightly_fetch_42-0\n" + id
		info = `{"cluster_name":"train-42","cloud":"aws","region":"us-east-1","zone":"us-east-1a"}`
	)
	want := map[string]string{
		"STEPS":          "30",
		"OUTLAST_JOB_ID": "42", "OUTLAST_ATTEMPT": "3", "OUTLAST_RECOVERIES": "2",
		"SKYPILOT_TASK_ID": id, "OUTLAST_TASK_ID": id,
		"SKYPILOT_TASK_IDS": ids, "OUTLAST_TASK_IDS": ids,
		"SKYPILOT_MANAGED_JOB_ID": "42", "OUTLAST_MANAGED_JOB_ID": "42",
		"SKYPILOT_JOB_RANK": "2", "OUTLAST_JOB_RANK": "2",
		"SKYPILOT_NUM_JOBS": "5", "OUTLAST_NUM_JOBS": "5",
		"SKYPILOT_NODE_RANK": "0", "OUTLAST_NODE_RANK": "0",
		"SKYPILOT_NODE_IPS": "127.0.0.1", "OUTLAST_NODE_IPS": "127.0.0.1",
		"SKYPILOT_NUM_NODES": "1", "OUTLAST_NUM_NODES": "1",
		"SKYPILOT_NUM_GPUS_PER_NODE": "0", "OUTLAST_NUM_GPUS_PER_NODE": "0",
		"SKYPILOT_CLUSTER_INFO": info, "OUTLAST_CLUSTER_INFO": info,
		"SKYPILOT_USER": "eve", "OUTLAST_USER": "eve",
		"SKYPILOT_SETUP_NODE_RANK": "0", "OUTLAST_SETUP_NODE_RANK": "0",
		"SKYPILOT_SETUP_NODE_IPS": "127.0.0.1", "OUTLAST_SETUP_NODE_IPS": "127.0.0.1",
		"SKYPILOT_SETUP_NUM_GPUS_PER_NODE": "0", "OUTLAST_SETUP_NUM_GPUS_PER_NODE": "0",
	}
	if diff := cmp.Diff(want, Environment(envInput())); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// TestEnvironmentOfNodes ensures that a node learns its rank and the addresses of all, and that a submission of one job
// counts as one.
func TestEnvironmentOfNodes(t *testing.T) {
	in := envInput()
	in.Rank, in.IPs, in.Request.Count, in.Request.Rank = 1, []string{"10.0.0.1", "10.0.0.2"}, 0, 0
	got := Environment(in)
	for name, want := range map[string]string{
		"SKYPILOT_NODE_RANK": "1", "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", "SKYPILOT_NUM_NODES": "2", "SKYPILOT_NUM_JOBS": "1",
	} {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
}

// TestEnvironmentOfAccelerators ensures that a run learns how many accelerators its machine has; a part of one is one.
func TestEnvironmentOfAccelerators(t *testing.T) {
	for count, want := range map[float64]string{0: "0", 0.5: "1", 1: "1", 8: "8"} {
		in := envInput()
		in.Offer.Accelerator, in.Offer.AcceleratorCount = "A100", count
		if env := Environment(in); env["SKYPILOT_NUM_GPUS_PER_NODE"] != want || env["OUTLAST_SETUP_NUM_GPUS_PER_NODE"] != want {
			t.Errorf("%g accelerators are told as %q", count, env["SKYPILOT_NUM_GPUS_PER_NODE"])
		}
	}
}

// TestEnvironmentIsStable ensures that the names a user's tools file things under are the same in every attempt.
func TestEnvironmentIsStable(t *testing.T) {
	first, later := envInput(), envInput()
	later.Attempt, later.Recoveries, later.Offer = 9, 8, job.Offer{Provider: "gcp"}
	a, b := Environment(first), Environment(later)
	for _, name := range []string{"SKYPILOT_TASK_ID", "SKYPILOT_TASK_IDS", "SKYPILOT_MANAGED_JOB_ID", "OUTLAST_JOB_ID"} {
		if a[name] == "" || a[name] != b[name] {
			t.Errorf("%s was %q and became %q", name, a[name], b[name])
		}
	}
}

// TestReserved ensures that exactly the variables that the program sets are reserved.
func TestReserved(t *testing.T) {
	in := envInput()
	in.Request.Tasks[1].Envs = nil
	for name := range Environment(in) {
		if !Reserved(name) {
			t.Errorf("%s is set, but not reserved", name)
		}
	}
	for _, name := range []string{"TASK_ID", "SKYPILOT_ATTEMPT", "SKYPILOT_JOB_ID", "OUTLAST_", "PATH", ""} {
		if Reserved(name) {
			t.Errorf("%s is reserved, but not set", name)
		}
	}
}

// TestTaskID ensures SkyPilot's form, in UTC whatever the machine's zone.
func TestTaskID(t *testing.T) {
	at := job.TimeOf(time.Date(2026, 3, 1, 1, 2, 3, 0, time.FixedZone("east", 2*60*60)))
	for _, tt := range []struct {
		task  string
		tasks int
		index int
		want  string
	}{
		{"train", 1, 0, "sky-managed-2026-02-28-23-02-03-000000_big job_7-0"},
		{"train", 2, 1, "sky-managed-2026-02-28-23-02-03-000000_big job_train_7-1"},
		{"", 2, 1, "sky-managed-2026-02-28-23-02-03-000000_big job_7-1"},
	} {
		if got := TaskID(at, "big job", tt.task, tt.tasks, 7, tt.index); got != tt.want {
			t.Errorf("TaskID = %s, want %s", got, tt.want)
		}
	}
}

// TestClusterInfoIsJSON ensures that a name can not break out of its string.
func TestClusterInfoIsJSON(t *testing.T) {
	in := envInput()
	in.Request.Tasks[1].Name = `a","cloud":"x` + "\n"
	var got map[string]string
	if err := json.Unmarshal([]byte(Environment(in)["SKYPILOT_CLUSTER_INFO"]), &got); err != nil || got["cloud"] != "aws" {
		t.Errorf("cluster info %v, error %v", got, err)
	}
}

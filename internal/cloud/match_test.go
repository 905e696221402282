package cloud_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// A match selects by deployment first, and never everything.
func TestMatchSelects(t *testing.T) {
	n := cloud.Node{ID: "n1", Identity: cloud.Identity{Deployment: "d", Job: 7, Nonce: "abc", Task: 1, Attempt: 2}}
	for _, c := range []struct {
		name  string
		match cloud.Match
		want  bool
	}{
		{"the attempt", cloud.Match{Deployment: "d", Job: 7, Task: 1, Attempt: 2}, true},
		{"every attempt of the job", cloud.Match{Deployment: "d", Job: 7}, true},
		{"the job, a task without an attempt", cloud.Match{Deployment: "d", Job: 7, Task: 5}, true},
		{"the attempt of the very job", cloud.Match{Deployment: "d", Job: 7, Nonce: "abc", Task: 1, Attempt: 2}, true},
		{"the attempt of another job of the same id", cloud.Match{Deployment: "d", Job: 7, Nonce: "abd", Task: 1, Attempt: 2}, false},
		{"the machine, for another job of the same id", cloud.Match{Deployment: "d", Job: 7, Nonce: "abd", NodeID: "n1"}, false},
		{"another attempt", cloud.Match{Deployment: "d", Job: 7, Task: 1, Attempt: 3}, false},
		{"the same attempt of another task", cloud.Match{Deployment: "d", Job: 7, Task: 0, Attempt: 2}, false},
		{"another job", cloud.Match{Deployment: "d", Job: 8}, false},
		{"the machine", cloud.Match{Deployment: "d", NodeID: "n1"}, true},
		{"the machine of the job", cloud.Match{Deployment: "d", Job: 7, NodeID: "n1"}, true},
		{"the machine of another job", cloud.Match{Deployment: "d", Job: 8, NodeID: "n1"}, false},
		{"another machine", cloud.Match{Deployment: "d", Job: 7, NodeID: "n2"}, false},
		{"another deployment", cloud.Match{Deployment: "e", Job: 7, Task: 1, Attempt: 2, NodeID: "n1"}, false},
		{"no deployment", cloud.Match{Job: 7}, false},
		{"only a deployment", cloud.Match{Deployment: "d"}, false},
		{"nothing", cloud.Match{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.match.Selects(n); got != c.want {
				t.Errorf("Selects = %v, want %v", got, c.want)
			}
		})
	}
}

// Whatever a match says, it never selects a machine of another deployment, and a named machine is the only one selected.
//
// skypilot #4143, #10742, #10750: names were cut and met, and a machine of somebody else was ended or taken over.
func TestMatchStaysWithinItsDeployment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b"})
		small := rapid.IntRange(0, 2)
		m := cloud.Match{
			Deployment: name.Draw(t, "deployment"), Job: job.ID(small.Draw(t, "job")), Task: small.Draw(t, "task"),
			Attempt: small.Draw(t, "attempt"), NodeID: name.Draw(t, "node"),
		}
		n := cloud.Node{ID: name.Draw(t, "its node"), Identity: cloud.Identity{
			Deployment: name.Draw(t, "its deployment"), Job: job.ID(small.Draw(t, "its job")),
			Task: small.Draw(t, "its task"), Attempt: small.Draw(t, "its attempt"),
		}}
		if !m.Selects(n) {
			return
		}
		if m.Deployment != n.Deployment || m.Deployment == "" {
			t.Fatalf("%+v selects %+v of another deployment", m, n)
		}
		if m.NodeID != "" && m.NodeID != n.ID {
			t.Fatalf("%+v selects the machine %q", m, n.ID)
		}
	})
}

package cloud_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// An error keeps its class and scope through wrapping, and one that nobody knows is transient.
func TestClassOf(t *testing.T) {
	cause := errors.New("zone is full")
	full := &cloud.Error{Op: "create", Class: job.Capacity, Scope: "zone", Err: cause}
	for _, c := range []struct {
		name                string
		err                 error
		class               job.Class
		capacity, permanent bool
	}{
		{"capacity", full, job.Capacity, true, false},
		{"wrapped", fmt.Errorf("job 3: %w", full), job.Capacity, true, false},
		{"denied", &cloud.Error{Class: job.Denied, Err: cause}, job.Denied, false, true},
		{"invalid", &cloud.Error{Class: job.Invalid, Err: cause}, job.Invalid, false, true},
		{"without a class", &cloud.Error{Err: cause}, job.Transient, false, false},
		{"unknown", cause, job.Transient, false, false},
		{"none", nil, job.Transient, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cloud.ClassOf(c.err); got != c.class {
				t.Errorf("ClassOf = %q, want %q", got, c.class)
			}
			if got := cloud.IsCapacity(c.err); got != c.capacity {
				t.Errorf("IsCapacity = %v, want %v", got, c.capacity)
			}
			if got := cloud.IsPermanent(c.err); got != c.permanent {
				t.Errorf("IsPermanent = %v, want %v", got, c.permanent)
			}
		})
	}
	if !errors.Is(fmt.Errorf("job 3: %w", full), cause) {
		t.Error("the error underneath is hidden")
	}
}

// A fault is what a record keeps of an error: class, scope and text, and nothing for no error.
func TestFaultOf(t *testing.T) {
	if f := cloud.FaultOf(nil); f != nil {
		t.Errorf("FaultOf(nil) = %+v", f)
	}
	err := fmt.Errorf("job 3: %w", &cloud.Error{Op: "create", Class: job.Capacity, Scope: "zone", Err: errors.New("full")})
	want := &job.Fault{Class: job.Capacity, Scope: "zone", Text: "job 3: create: full (capacity)"}
	if diff := cmp.Diff(want, cloud.FaultOf(err)); diff != "" {
		t.Errorf("FaultOf (-want +got):\n%s", diff)
	}
}

// A machine may still run code unless its provider says that it has ended.
//
// karpenter-provider-gcp #143, #176: a preempted machine was STOPPED, so that it "existed" and was waited for.
func TestStateEnded(t *testing.T) {
	for state, want := range map[cloud.State]bool{
		cloud.Booting: false, cloud.Running: false, cloud.Stopping: false,
		cloud.Stopped: true, cloud.Preempted: true, cloud.Terminated: true, "": false,
	} {
		if got := state.Ended(); got != want {
			t.Errorf("%q.Ended() = %v, want %v", state, got, want)
		}
	}
}

package agent

import (
	"errors"
	"os"
	"testing"
)

// Every combination of what can be found on a node has one meaning, and a free lock after a launch is never taken
// for a place to start again.
func TestJudge(t *testing.T) {
	t.Parallel()
	claim, launch := &claimRecord{Token: "t"}, &launchRecord{Token: "t"}
	setup, run := &runRecord{Stage: stageSetup, Started: 1}, &runRecord{Stage: stageRun, Started: 1}
	exit := &exitRecord{Exit: Exit{Code: 3}, Token: "t"}
	tests := []struct {
		name        string
		facts       facts
		held, alive bool
		want        State
	}{
		{"nothing", facts{}, false, false, Absent},
		{"somebody takes the lock", facts{}, true, false, Starting},
		{"a starter was killed", facts{claim: claim}, false, false, Absent},
		{"about to launch", facts{claim: claim}, true, false, Starting},
		{"launching", facts{claim: claim, launch: launch}, true, false, Starting},
		{"supervisor killed while launching, it runs", facts{claim: claim, launch: launch}, false, true, Unsupervised},
		{"supervisor killed while launching, nothing runs", facts{claim: claim, launch: launch}, false, false, Lost},
		{"setup", facts{claim: claim, launch: launch, run: setup}, true, false, Setup},
		{"run", facts{claim: claim, launch: launch, run: run}, true, false, Running},
		{"supervisor killed, it runs", facts{claim: claim, launch: launch, run: run}, false, true, Unsupervised},
		{"supervisor killed, nothing runs", facts{claim: claim, launch: launch, run: run}, false, false, Lost},
		{"ended, switch armed", facts{exit: exit}, true, false, Exited},
		{"ended", facts{exit: exit}, false, false, Exited},
		{"stopped before", facts{stop: true}, false, false, Exited},
		{"stopped after a claim", facts{stop: true, claim: claim}, false, false, Exited},
		{"being stopped", facts{stop: true, launch: launch, run: run}, true, false, Running},
		{"stopped, supervisor killed", facts{stop: true, launch: launch, run: run}, false, false, Lost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st, err := tt.facts.judge(tt.held, func() (bool, error) { return tt.alive, nil })
			if err != nil || st.State != tt.want {
				t.Errorf("state %s, want %s, error %v", st.State, tt.want, err)
			}
			if (st.State == Exited) != (st.Exit != nil) || st.Stopped != tt.facts.stop {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// What can not be found out is an error and not a verdict.
func TestJudgeNeedsProof(t *testing.T) {
	t.Parallel()
	f := facts{launch: &launchRecord{}}
	failure := errors.New("no /proc")
	if st, err := f.judge(false, func() (bool, error) { return false, failure }); !errors.Is(err, failure) {
		t.Errorf("status %+v, error %v", st, err)
	}
}

// A launch of an earlier boot is Lost, though its record be cut off or its process's number be taken again.
func TestEarlierBoot(t *testing.T) {
	t.Parallel()
	self, _ := readProcess(os.Getpid())
	run := runRecord{Stage: stageRun, PID: self.pid, Ticks: self.ticks, Boot: "earlier", Token: "t"}
	for name, launch := range map[string]any{
		"whole": launchRecord{Token: "t", Mark: "m", Boot: "earlier"}, "cut off": nil,
	} {
		t.Run(name, func(t *testing.T) {
			d := dir(t.TempDir())
			if err := d.create(fileLaunching, launch); err != nil {
				t.Fatal(err)
			}
			if err := d.replace(fileRun, run); err != nil {
				t.Fatal(err)
			}
			if st, err := d.look(); err != nil || st.State != Lost {
				t.Errorf("state %s, error %v", st.State, err)
			}
		})
	}
}

// A process that has the number of the recorded one, but started at another time, is somebody else's.
//
// skypilot #7847: after a reboot another process had the number, and was taken for the one that had died.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	self, _ := readProcess(os.Getpid())
	launch := launchRecord{Token: "t", Mark: "none carries this", Boot: bootID()}
	run := runRecord{PID: self.pid, Ticks: self.ticks}
	if left, err := launch.remains(&run); err != nil || len(left) == 0 {
		t.Errorf("the very process was not found: %v, error %v", left, err)
	}
	run.Ticks--
	if left, err := launch.remains(&run); err != nil || len(left) != 0 {
		t.Errorf("others were taken for it: %v, error %v", left, err)
	}
}

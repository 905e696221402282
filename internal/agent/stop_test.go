package agent

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A stop ends everything of the run, wherever it has gone, and the exit record says how.
func TestStop(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, run, grace string
		want             Exit
	}{
		{"a program", "echo up; exec sleep 1000", "10", Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}},
		{"a script", "echo up; sleep 1000; echo never", "10", Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}},
		{"a trap", "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done", "10", Exit{Stage: "run", Code: 7}},
		{"no grace", "trap '' TERM; echo up; sleep 1000", "0", Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}},
		{"deaf", "trap '' TERM; echo up; sleep 1000", "0.3", Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}},
		{"gone away", "setsid env -i sleep 1001 & (setsid sleep 1002 &); echo up; sleep 1000", "10",
			Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.start(StartRequest{Run: tt.run})
			n.awaitLog("up")
			mark := markOf(n.dir, "token")
			begin := time.Now()
			if st := n.stop(tt.grace); !st.Stopped {
				t.Errorf("status %+v", st)
			}
			if took := time.Since(begin); took > time.Second { // 100 ms on a computer that has nothing else to do
				t.Errorf("stop took %v", took)
			}
			st := n.awaitState(Exited)
			if diff := cmp.Diff(&tt.want, st.Exit); diff != "" || !st.Stopped {
				t.Errorf("stopped %v, exit (-want +got):\n%s", st.Stopped, diff)
			}
			if strings.Contains(string(st.Log), "never") {
				t.Error("the script went on after its child had ended")
			}
			eventually(t, "nothing is left, nor the supervisor", func() bool {
				all, err := processes()
				return err == nil && len(members(all, nobody, func(p process) bool { return carries(p.pid, mark) })) == 0
			})
		})
	}
}

// What a shell has left when it died of the TERM gets the whole grace to write its checkpoint, and one TERM only.
func TestStopLeavesTimeForCheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: `bash -c 'trap "echo term >> ../terms" TERM; echo up
		until [ -e ../terms ]; do sleep 0.01; done; sleep 2.2; echo saved'; echo never`})
	n.awaitLog("up")
	n.stop("15")
	st := n.awaitState(Exited)
	if st.Exit.Code != 143 || !strings.HasSuffix(string(st.Log), "saved\n") {
		t.Errorf("exit %+v, log %s", st.Exit, st.Log)
	}
	if terms, _ := os.ReadFile(n.dir.path("terms")); string(terms) != "term\n" {
		t.Errorf("it got %q", terms)
	}
}

// A stop before the start forbids the start.
func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if st := n.stop("10"); st.State != Exited || !st.Stopped {
		t.Errorf("status %+v", st)
	}
	st := n.start(StartRequest{Run: count})
	if st.State != Exited || !st.Stopped || st.Exit.Code != 143 || n.starts() != 0 {
		t.Errorf("status %+v, %d runs", st, n.starts())
	}
}

// A stop during setup ends it, and the run is not started, even if setup makes the best of it.
func TestStopDuringSetup(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Setup: "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", Run: count})
	n.awaitLog("up")
	n.stop("10")
	st := n.awaitState(Exited)
	if st.Exit.Code != 143 || !st.Stopped || n.starts() != 0 {
		t.Errorf("exit %+v, %d runs", st.Exit, n.starts())
	}
}

// A later stop shortens the grace, and does not lengthen it.
func TestStopAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: "trap '' TERM; echo up; sleep 1000"})
	n.awaitLog("up")
	n.stop("1000")
	n.stop("0")
	n.stop("1000")
	if st := n.awaitState(Exited); st.Exit.Code != 137 {
		t.Errorf("exit %+v", st.Exit)
	}
}

// A stop ends a run whose supervisor is dead, with TERM and then KILL.
func TestStopUnsupervised(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: `bash -c 'trap "echo heard; exit" TERM; echo up $$; while :; do sleep 0.01; done' &
		trap '' TERM; wait; sleep 1000`})
	n.awaitLog("up")
	killSupervisors(n.dir)
	n.awaitState(Unsupervised)
	if st := n.stop("0.3"); st.State != Unsupervised || !st.Stopped {
		t.Errorf("status %+v", st)
	}
	st := n.awaitState(Lost)
	if !st.Stopped || !strings.Contains(string(st.Log), "heard") {
		t.Errorf("status %+v, log %s", st, st.Log)
	}
}

// A stop after the end changes nothing.
func TestStopAfterEnd(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.finish(StartRequest{Run: "exit 4"})
	if st := n.stop("0"); st.State != Exited || st.Exit.Code != 4 || st.Stopped {
		t.Errorf("status %+v", st)
	}
}

// A stop at any moment of a start is never lost: the run ends, or never begins.
func TestStopRacesStart(t *testing.T) {
	t.Parallel()
	randomly(t, 25, func(t *testing.T, after time.Duration) {
		n := newNode(t)
		first, _ := n.startProcess(StartRequest{Run: "sleep 1000"})
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		n.stop("10")
		_ = first.Wait()
		if st := n.awaitState(Exited); st.Exit.Code != 143 || !st.Stopped {
			t.Errorf("stopped after %v: %+v", after, st.Exit)
		}
	})
}

// A grace is a number of seconds; what is not is refused, and a huge one is cut.
func TestSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "1.5": 1500 * time.Millisecond, "1e300": maxGrace, "+Inf": maxGrace,
	} {
		if got, err := seconds(text); err != nil || got != want {
			t.Errorf("%s: %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "NaN", "1s", "-Inf"} {
		if _, err := seconds(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// KILL comes at the time that was promised: never before a stop's grace is over because of anything else, never
// while a main process runs that nobody has stopped, and always some time after it has ended.
func TestKillAt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Unix(1_800_000_000, 0)
		moment := func(name string) time.Time {
			if rapid.Bool().Draw(t, "has "+name) {
				return begin.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, name)) * time.Millisecond)
			}
			return time.Time{}
		}
		e := ending{noticeAt: moment("notice"), mainEnded: moment("end")}
		wishes := rapid.SliceOfN(rapid.IntRange(0, 100_000), 0, 3).Draw(t, "stops")
		for _, wish := range wishes {
			e.stop(begin.Add(time.Duration(wish) * time.Millisecond))
		}
		at := e.killAt()
		switch {
		case len(wishes) > 0:
			for _, wish := range wishes {
				if at.After(begin.Add(time.Duration(wish) * time.Millisecond)) {
					t.Fatalf("later than a stop allows: %v", at)
				}
			}
		case e.mainEnded.IsZero():
			if !at.IsZero() {
				t.Fatalf("nobody asked for it: %v", at)
			}
		case at.Before(e.mainEnded.Add(leftoverGrace)) || at.Before(e.noticeAt):
			t.Fatalf("too early: %v", at)
		}
		if now := moment("now"); !now.IsZero() && e.killing(now) != (!at.IsZero() && !now.Before(at)) {
			t.Fatal("killing is not what killAt says")
		}
	})
}

package agent

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A borrowed host is not held by a run that nobody asks for any more.
func TestLeaseEndsRun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{LeaseSeconds: 1, Run: "sleep 1000"})
	eventually(t, "the run was ended", func() bool { return n.dir.has(fileExit) }) // without a poll
	st := n.poll()
	if st.Exit.Code != 143 || !strings.Contains(st.Exit.Text, "nobody asked") || st.Stopped {
		t.Errorf("status %+v", st)
	}
}

// Polls keep a run alive, and a machine on.
func TestPollsRenewLease(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{
		LeaseSeconds: 2, IdleSeconds: 1, PowerOff: []string{"touch", n.dir.path("off")}, Run: "sleep 2.2; exit 3",
	})
	if st := n.awaitState(Exited); st.Exit.Code != 3 {
		t.Errorf("exit %+v", st.Exit)
	}
	since := time.Now()
	eventually(t, "time has passed", func() bool {
		n.poll()
		return time.Since(since) > 1200*time.Millisecond
	})
	if n.dir.has("off") {
		t.Error("powered off although it was polled")
	}
	eventually(t, "powered off when nobody polls", func() bool { return n.dir.has("off") })
}

// Power off is for ended runs only, and is repeated if it fails.
//
// skypilot #4267: when the controller was gone, machines ran for ever.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	once := `if [ -e tried ]; then touch off; else touch tried; exit 1; fi`
	off := []string{"sh", "-c", "cd " + string(n.dir) + "; " + once}
	n.start(StartRequest{IdleSeconds: 1, PowerOff: off, Run: "sleep 1.2"})
	eventually(t, "the first try", func() bool {
		if n.dir.has("tried") && !n.dir.has(fileExit) {
			t.Fatal("powered off a running run")
		}
		return n.dir.has("tried")
	})
	eventually(t, "the second try", func() bool { return n.dir.has("off") })
}

// Silence is counted from the last change of the file's time, whatever that time is.
func TestSilence(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	l := newLease(begin)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	steps := []struct {
		touched time.Time
		now     int
		want    time.Duration
	}{
		{time.Time{}, 5, 5 * time.Second},
		{at(6), 7, 0},
		{at(6), 9, 2 * time.Second},
		{at(1_000_000), 10, 0}, // the node's clock was set
		{at(1_000_000), 13, 3 * time.Second},
		{at(8), 14, 0}, // and back
		{at(8), 15, time.Second},
	}
	for _, step := range steps {
		if got := l.silence(step.touched, at(step.now)); got != step.want {
			t.Errorf("at %d s: %v, want %v", step.now, got, step.want)
		}
	}
}

// A poll of what was never started makes nothing.
func TestPollMakesNothing(t *testing.T) {
	t.Parallel()
	n := &node{t: t, dir: dir(t.TempDir() + "/none"), program: program{Program{}}}
	if st := n.poll(); st.State != Absent {
		t.Errorf("status %+v", st)
	}
	if _, err := os.Stat(string(n.dir)); !os.IsNotExist(err) {
		t.Errorf("error %v", err)
	}
}

// A run that fills its disk at once can be polled: all that a poll needs is there when the run begins.
func TestLeaseIsThereFromTheBeginning(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Run: "sleep 1000"})
	if !n.dir.has(fileLease) {
		t.Error("the first poll has to make a file")
	}
}

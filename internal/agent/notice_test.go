package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// announce makes a notice appear in the provider's file.
func announce(t *testing.T, file string, left time.Duration) Notice {
	t.Helper()
	now := time.Now()
	n := Notice{At: now.UnixMilli(), Deadline: now.Add(left).UnixMilli()}
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// A notice reaches the user's code as a file and a TERM, and whoever polls; what a shell leaves behind when it dies
// of that TERM has until the deadline.
func TestNotice(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "notice")
	n.start(StartRequest{NoticeFile: file, Run: `bash -c 'trap "cat $OUTLAST_NOTICE_FILE" TERM; echo up
		until [ -e $OUTLAST_NOTICE_FILE ]; do sleep 0.01; done; sleep 2.2; echo saved'; echo never`})
	n.awaitLog("up")
	want := announce(t, file, 100*time.Second)
	st := n.await("the notice", func(st Status) bool { return st.Notice != nil })
	if *st.Notice != want {
		t.Errorf("notice %+v, want %+v", *st.Notice, want)
	}
	st = n.awaitState(Exited)
	if text := string(st.Log); !strings.Contains(text, `"seconds_left":9`) || !strings.HasSuffix(text, "saved\n") {
		t.Errorf("log %s", text)
	}
	if st.Exit.Signal != "SIGTERM" || st.Stopped || st.Notice == nil {
		t.Errorf("status %+v", st)
	}
}

// A notice that cannot be written down, as on a full disk, is told to the user's code all the same, once, and is written down
// when that can be done.
func TestNoticeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "notice")
	n.start(StartRequest{NoticeFile: file, Run: `trap 'echo told' TERM; mkdir $OUTLAST_NOTICE_FILE; echo up
		until [ -f $OUTLAST_NOTICE_FILE ]; do sleep 0.01; done`})
	n.awaitLog("up")
	announce(t, file, 100*time.Second)
	n.awaitLog("told")
	if err := os.Remove(n.dir.path(fileNotice)); err != nil {
		t.Fatal(err)
	}
	st := n.awaitState(Exited)
	if st.Notice == nil || st.Exit.Code != 0 || strings.Count(string(st.Log), "told") != 1 {
		t.Errorf("status %+v, log %q", st, st.Log)
	}
}

// Without a signal the file is all that the user's code gets. It also sees a notice that came before it began.
func TestNoticeWithoutTerm(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "not", "there", "yet", "notice") // looked for without being told
	n.start(StartRequest{
		NoticeFile: file, NoticeSignal: "none", Run: "until [ -e $OUTLAST_NOTICE_FILE ]; do sleep 0.01; done; exit 6",
	})
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	announce(t, file, time.Minute)
	if st := n.awaitState(Exited); st.Exit.Code != 6 || st.Notice == nil {
		t.Errorf("status %+v", st)
	}
}

// A notice that is half written is no notice yet, and one without times counts from now.
func TestParseNotice(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(10_000)
	tests := []struct {
		text string
		want userNotice
		ok   bool
	}{
		{`{"at":9000,"deadline":39500}`, userNotice{Notice{9000, 39500}, 29}, true},
		{`{}`, userNotice{Notice{10_000, 10_000}, 0}, true},
		{`{"at":9000}`, userNotice{Notice{9000, 9000}, 0}, true},
		{`{"at":90`, userNotice{}, false},
		{``, userNotice{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseNotice([]byte(tt.text), now); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %+v, %v", tt.text, got, ok)
		}
	}
}

// The user chooses the signal of a notice. The code may go on after it, and is not sent another one.
func TestNoticeSignal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"TERM", "INT", "HUP", "USR1", "USR2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			file := filepath.Join(t.TempDir(), "notice")
			n.start(StartRequest{NoticeFile: file, NoticeSignal: name, Run: `for s in TERM INT HUP USR1 USR2; do trap "echo got $s; got=1" $s; done
				echo up; until [ "$got" ]; do sleep 0.01; done; exit 5`})
			n.awaitLog("up")
			announce(t, file, time.Minute)
			if st := n.awaitState(Exited); !strings.HasSuffix(string(st.Log), "\ngot "+name+"\n") || st.Exit.Code != 5 {
				t.Errorf("exit %+v, log %q", st.Exit, st.Log)
			}
		})
	}
	if _, err := newNode(t).command(request(t, StartRequest{NoticeSignal: "KILL"}), "start", "/nonexistent"); err == nil {
		t.Error("a signal that kills was accepted")
	}
}

// The script for a notice runs beside the user's code, with its environment, and into its log. It keeps nobody from ending,
// and goes on when the code has ended, until the machine goes.
func TestNoticeRun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "notice")
	n.start(StartRequest{
		NoticeFile: file, NoticeSignal: "none", Secrets: map[string]string{"KEY": "geheim"},
		NoticeRun: `echo "saving with ${#KEY}"; [ -e "$OUTLAST_NOTICE_FILE" ] && touch saving; until [ -e ended ]; do sleep 0.01; done; sleep 2.2; echo saved`,
		Run:       "echo up; until [ -e saving ]; do sleep 0.01; done; echo bye; touch ended",
	})
	n.awaitLog("up")
	announce(t, file, 100*time.Second)
	if st := n.awaitState(Exited); string(st.Log) != "up\nsaving with 6\nbye\nsaved\n" || st.Exit.Code != 0 {
		t.Errorf("exit %+v, log %q", st.Exit, st.Log)
	}
}

// A script for a notice that does not end is killed when the machine would go, or with the run.
func TestNoticeRunIsKilled(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]time.Duration{"at the deadline": 2 * time.Second, "by a stop": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			file := filepath.Join(t.TempDir(), "notice")
			n.start(StartRequest{
				NoticeFile: file, NoticeSignal: "none", NoticeRun: `trap "" TERM; echo pid $$; while :; do sleep 1; done`,
				Run: "echo up; until [ -e $OUTLAST_NOTICE_FILE ]; do sleep 0.01; done",
			})
			n.awaitLog("up")
			announce(t, file, left)
			st := n.awaitLog("pid ")
			if left > time.Minute {
				n.stop("0")
			}
			n.awaitState(Exited)
			var pid int
			if _, err := fmt.Sscanf(strings.SplitAfter(string(st.Log), "pid ")[1], "%d", &pid); err != nil || alive(pid) {
				t.Errorf("process %d lives, %v", pid, err)
			}
		})
	}
}

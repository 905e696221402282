package agent

import (
	"encoding/json"
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

// With NoTerm the file is all that the user's code gets. It also sees a notice that came before it began.
func TestNoticeWithoutTerm(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "not", "there", "yet", "notice") // looked for without being told
	n.start(StartRequest{
		NoticeFile: file, NoTerm: true, Run: "until [ -e $OUTLAST_NOTICE_FILE ]; do sleep 0.01; done; exit 6",
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

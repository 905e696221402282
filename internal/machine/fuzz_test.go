package machine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/machine"
)

// said is a node that answers whatever it is asked with the same bytes.
type said []byte

func (s said) Run(_ context.Context, _ []string, _ io.Reader, stdout io.Writer) error {
	_, err := stdout.Write(s)
	return err
}

func (said) Close() error { return nil }

// FuzzAnswer ensures that whatever a node says, a client takes a status that makes sense, with no more of the log than was
// asked for, or nothing; and that what the agent really says is understood, whatever a login shell has printed before it.
func FuzzAnswer(f *testing.F) {
	for _, line := range []string{
		`{"state":"running","log_size":5,"log_offset":0,"log":"aGVsbG8="}` + "\n", `{"state":"exited","exit":{"stage":"run","code":137,"signal":"SIGKILL","oom":true},"log_size":0,"log_offset":0}` + "\n",
		"Last login: today\n" + `{"state":"absent","log_size":0,"log_offset":0}` + "\n", `{"state":"running","log_size":-1}` + "\n",
		`{"state":"running","log_size":1,"log_offset":2}` + "\n", `{"state":"running"`, "", "\n", "null\n", "[]\n", "{}\n", `{"state":7}` + "\n",
		`{"state":"running","log_size":9,"log_offset":0,"log_gap":{"from":9,"to":1},"log_marks":[{"kind":1,"offset":-1,"value":3}]}` + "\n", "\x1b[2J\x00\xff\n",
		`{"state":"running","log_size":20,"log_offset":0,"log":"aGVsbG8gaGVsbG8gaGVsbG8="}` + "\n", `{"sha256":"` + "x" + `"}` + "\n",
	} {
		f.Add([]byte(line))
	}
	const most = 10
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := machine.NewClient(said(answer), []string{"agent"})
		st, err := c.Poll(t.Context(), "/x", 0, most)
		switch {
		case err == nil && (st.State == "" || st.LogOffset < 0 || st.LogOffset > st.LogSize || len(st.Log) > most):
			t.Errorf("taken from %q: %+v", answer, st)
		case err == nil && !bytes.HasSuffix(answer, []byte("\n")):
			t.Errorf("taken from a line that was cut off: %q", answer)
		case err != nil && st.State != "":
			t.Errorf("both %+v and the error %v", st, err)
		}
		if err := c.Unpack(t.Context(), "/x", "sum", bytes.NewReader(nil)); err == nil && !bytes.Contains(answer, []byte("sum")) {
			t.Errorf("%q is taken for what was unpacked", answer)
		}

		want := agent.Status{State: agent.Running, LogSize: int64(len(answer)), Log: answer[:min(most, len(answer))]}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		noise := append(bytes.Clone(answer[:min(len(answer), 1000)]), '\n')
		c = machine.NewClient(said(append(append(noise, line...), '\n')), []string{"agent"})
		if got, err := c.Poll(t.Context(), "/x", 0, most); err != nil || got.LogSize != want.LogSize || !bytes.Equal(got.Log, want.Log) {
			t.Errorf("after %q: %+v, %v, want %+v", noise, got, err, want)
		}
	})
}

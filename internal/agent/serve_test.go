package agent

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// Each line of serve gets one line, in order, and a bad one does not end it.
func TestServe(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.finish(StartRequest{Run: "echo hello; exit 2"})
	poll, err := json.Marshal([]string{"poll", string(n.dir), "1", "3"})
	if err != nil {
		t.Fatal(err)
	}
	in := strings.Join([]string{
		string(poll), `["version"]`, `nonsense`, `[]`, `["start","/x"]`, `["poll","relative","0","1"]`, `["serve"]`,
		`["supervise","/x"]`, string(poll),
	}, "\n")
	var out bytes.Buffer
	if code := n.Main([]string{"serve"}, strings.NewReader(in), &out, io.Discard); code != 0 {
		t.Fatalf("code %d", code)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 9 {
		t.Fatalf("%d answers:\n%s", len(lines), out.String())
	}
	for _, i := range []int{0, 8} {
		var st Status
		if err := json.Unmarshal([]byte(lines[i]), &st); err != nil || st.State != Exited || string(st.Log) != "ell" {
			t.Errorf("answer %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[1], `"protocol":1`) {
		t.Errorf("version: %s", lines[1])
	}
	for _, line := range lines[2:8] {
		var no Refusal
		if err := json.Unmarshal([]byte(line), &no); err != nil || no.Error == "" {
			t.Errorf("answer %s", line)
		}
	}
}

// A line without an end is not read into memory for ever.
func TestServeLongLine(t *testing.T) {
	t.Parallel()
	var complaint bytes.Buffer
	endless := io.LimitReader(zeros{}, 1<<30)
	if code := (Program{}).Main([]string{"serve"}, endless, io.Discard, &complaint); code != exitRefused {
		t.Errorf("code %d: %s", code, complaint.String())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// Arguments that make no command are told so with a code of their own.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"poll"}, {"poll", "/x"}, {"stop", "/x"}, {"start"}, {"start", "/x", "y"}, {"unpack", "/x"},
		{"nonsense", "/x"}, {"serve", "/x"}, {"version", "/x"},
	} {
		var out, complaint bytes.Buffer
		code := (Program{}).Main(args, strings.NewReader(""), &out, &complaint)
		if code != exitUsage || out.Len() > 0 || !strings.HasPrefix(complaint.String(), "usage:") {
			t.Errorf("%q: code %d, %s %s", args, code, out.String(), complaint.String())
		}
	}
	for _, args := range [][]string{
		{"poll", "x", "0", "1"}, {"poll", "/x", "-1", "1"}, {"poll", "/x", "0", "a"}, {"stop", "/x", "soon"},
		{"supervise", "/x"}, {"unpack", "/x", "zz"},
	} {
		var complaint bytes.Buffer
		code := (Program{}).Main(args, strings.NewReader(""), io.Discard, &complaint)
		if code != exitRefused || complaint.Len() == 0 {
			t.Errorf("%q: code %d", args, code)
		}
	}
}

// Whatever a line holds, it gets exactly one line in return.
func FuzzServeLine(f *testing.F) {
	for _, line := range []string{
		`["version"]`, `["poll","/none","0","10"]`, `["poll","/none","9223372036854775807","-1"]`, `[""]`, `{}`,
		"[\"poll\",\"/\\u0000\",\"0\",\"1\"]",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if args, err := parseLine(line); err == nil && (args[0] == "stop" || len(args) > 1 && args[1] != "/none") {
			t.Skip("would look at, or end, something of this computer")
		}
		text, err := json.Marshal((Program{}).serveLine(line))
		if err != nil || bytes.ContainsRune(text, '\n') {
			t.Errorf("answer %s, error %v", text, err)
		}
	})
}

// A request is taken whole and valid or not at all, and an error does not repeat it.
func FuzzStartRequest(f *testing.F) {
	for _, text := range []string{
		`{"token":"t","run":"true"}`, `{"token":"t","secrets":{"A":"s3cretvalue"},"env":{"B":"c"}}`,
		`{"token":"t","secrets":{"A":12345678}}`, `{"token":`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		req, err := readRequest(bytes.NewReader(text))
		if err == nil {
			if req.Token == "" || req.validate() != nil {
				t.Errorf("an invalid request was taken: %q", text)
			}
			return
		}
		for _, value := range req.Secrets {
			if len(value) > 8 && strings.Contains(err.Error(), value) {
				t.Errorf("a secret is in the error %q", err)
			}
		}
	})
}

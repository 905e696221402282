package sim

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
)

// Ensure that scripts are played as they are written, in the forms that only this provider knows as well. What shells know too
// is compared with the real agent.
func TestCompile(t *testing.T) {
	attempt := func(n string) map[string]string { return map[string]string{"OUTLAST_ATTEMPT": n} }
	for _, tc := range []struct {
		name  string
		req   agent.StartRequest
		code  int
		total time.Duration // less the moments that stages take
		text  string
		stage string
	}{
		{"nothing", agent.StartRequest{}, 0, 0, "", "run"},
		{"exit until, at first", agent.StartRequest{Run: "exit 42 until 3", Env: attempt("2")}, 42, 0, "", "run"},
		{"exit until, at last", agent.StartRequest{Run: "exit 42 until 3\necho done", Env: attempt("3")}, 0, 0, "done\n", "run"},
		{"times add up", agent.StartRequest{Setup: "sleep 1.25", Run: "sleep 2 # two\necho a\nsleep 0.5"}, 0, 3750 * time.Millisecond, "a\n", "run"},
		{"for ever", agent.StartRequest{Run: "echo a\nsleep infinity\necho b"}, 0, -1, "a\n", "run"},
		{"a setup for ever", agent.StartRequest{Setup: "sleep inf", Run: "echo b"}, 0, -1, "", "setup"},
		{"no time", agent.StartRequest{Run: "sleep soon\necho b"}, 1, 0, "sleep: invalid time interval \"soon\"\n", "run"},
		{"no number", agent.StartRequest{Run: "exit now"}, 2, 0, "", "run"},
		{"unknown", agent.StartRequest{Run: "echo a\npython train.py\necho b"}, 127, 0, "a\n\"python\": the sim provider only plays echo, sleep and exit\n", "run"},
		{"a setup that fails", agent.StartRequest{Setup: "exit 7", Run: "echo b"}, 7, 0, "", "setup"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := compile(tc.req)
			text := ""
			for _, l := range s.lines {
				text += l.Text
			}
			total := s.total
			for _, script := range []string{tc.req.Setup, tc.req.Run} {
				if script != "" && total >= moment && (script != tc.req.Run || s.stage != "setup") {
					total -= moment
				}
			}
			if s.code != tc.code || total != tc.total || text != tc.text || s.stage != tc.stage {
				t.Errorf("code %d, %s, %q, ends in %s; want %d, %s, %q, %s", s.code, total, text, s.stage, tc.code, tc.total, tc.text, tc.stage)
			}
		})
	}
}

// Ensure that a script that prints without end, by itself or by its variables, takes bounded room.
func TestCompileIsBounded(t *testing.T) {
	big := map[string]string{"BIG": strings.Repeat("x", 100_000)}
	for name, run := range map[string]string{
		"many lines":     strings.Repeat("echo a\n", 1_000_000),
		"many variables": strings.Repeat("echo $BIG\n", 10_000),
		"in one line":    "echo " + strings.Repeat("$BIG", 10_000) + "\necho b\necho c",
	} {
		s := compile(agent.StartRequest{Run: run, Env: big})
		text, err := json.Marshal(s.lines)
		if err != nil || len(text) > 4*mostPrinted {
			t.Errorf("%s: %d bytes, error %v", name, len(text), err)
		}
		if name != "in one line" && s.code != codeNotExecutable {
			t.Errorf("%s: code %d", name, s.code)
		}
	}
}

// FuzzCompile ensures that any script is played in order of time, in bounded room, without the value of a secret.
func FuzzCompile(f *testing.F) {
	for _, script := range []string{
		"echo a\nsleep 1\nexit 3", "exit 1 until 2", `[ "$OUTLAST_ATTEMPT" -ge 3 ] || exit 42`, "trap '' TERM", "echo '$KEY' \"$KEY\" ${KEY} $KEY$", "sleep 1e300", "sleep -1",
		"exit 99999999999999999999", "echo \"", "echo # a", "sleep NaN", "\x00\xff", "sleep infinity\nsleep 1",
	} {
		f.Add(script)
	}
	const secret = "\x01geheim\x02"
	f.Fuzz(func(t *testing.T, script string) {
		if strings.Contains(script, secret) {
			return
		}
		s := compile(agent.StartRequest{Setup: "echo up", Run: script, Env: map[string]string{"OUTLAST_ATTEMPT": "1"}, Secrets: map[string]string{"KEY": secret}})
		if s.code < 0 || s.code > 255 {
			t.Errorf("code %d", s.code)
		}
		last, size := int64(0), 0
		for _, l := range s.lines {
			if l.At < last || s.total >= 0 && l.At > s.total.Milliseconds() {
				t.Errorf("%+v after %d ms of %s", l, last, s.total)
			}
			last, size = l.At, size+len(l.Text)
			if strings.Contains(l.Text, secret) {
				t.Errorf("%q tells the secret", l.Text)
			}
		}
		if size > 2*mostPrinted+len(script) {
			t.Errorf("it prints %d bytes", size)
		}
	})
}

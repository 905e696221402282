package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The exit record says exactly how the user's code ended.
//
// skypilot #8928: a non-zero exit was reported as SUCCEEDED.
func TestExit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		setup, run string
		want       Exit
	}{
		{"success", "", "true", Exit{Stage: "run"}},
		{"nothing to run", "", "", Exit{Stage: "run"}},
		{"setup and run", "echo a > f", "test $(cat f) = a", Exit{Stage: "run"}},
		{"failure", "", "exit 1", Exit{Stage: "run", Code: 1}},
		{"code 2", "", "exit 2", Exit{Stage: "run", Code: 2}},
		{"not executable", "", "/etc/passwd", Exit{Stage: "run", Code: 126}},
		{"not found", "", "/no/such/program", Exit{Stage: "run", Code: 127}},
		{"code as if killed", "", "exit 137", Exit{Stage: "run", Code: 137}},
		{"terminated", "", "kill -TERM $$", Exit{Stage: "run", Code: 143, Signal: "SIGTERM"}},
		{"killed", "", "kill -KILL $$", Exit{Stage: "run", Code: 137, Signal: "SIGKILL"}},
		{"crashed", "", "kill -SEGV $$", Exit{Stage: "run", Code: 139, Signal: "SIGSEGV"}},
		{"failing setup", "exit 3", "echo never > ran", Exit{Stage: "setup", Code: 3}},
		{"script like an option", "", "-x", Exit{Stage: "run", Code: 127}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			st := n.finish(StartRequest{Setup: tt.setup, Run: tt.run})
			if diff := cmp.Diff(&tt.want, st.Exit); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			if st.Stopped || st.Token != "token" || st.Started == 0 || st.Ended < st.Started {
				t.Errorf("status %+v", st)
			}
			if _, err := os.Stat(n.dir.path("workdir/ran")); err == nil {
				t.Error("run was started after a failed setup")
			}
		})
	}
}

// A shell that is not there is an exit with a reason, not a run that hangs or vanishes.
func TestNoShell(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	st := newNode(t).finish(StartRequest{Run: "true"})
	want := &Exit{Stage: "run", Code: 127, Text: "neither bash nor sh is on the node's PATH"}
	if diff := cmp.Diff(want, st.Exit); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
}

// A node without bash runs scripts with sh.
func TestShellFallsBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(folder, "sh")); err != nil {
		t.Fatal(err)
	}
	shell, err := findShell([]string{"PATH=relative:" + folder})
	if err != nil || shell != filepath.Join(folder, "sh") {
		t.Errorf("shell %q, error %v", shell, err)
	}
}

// The user's code sees the node's basics, its own variables and secrets, and nothing else of whoever started it;
// it runs in the work directory, in a session of its own, without input, and with the usual signals.
func TestEnvironment(t *testing.T) {
	t.Setenv("OUTLAST_REDIS_PASSWORD", "of the worker")
	t.Setenv("LANG", "C.UTF-8")
	n := newNode(t)
	st := n.finish(StartRequest{
		Env:     map[string]string{"A": "a 'b' $(c)\n\"d\"", "LANG": "job"},
		Secrets: map[string]string{"S": "geheim"},
		Run: `env -0 | tr '\0\n' '\n ' | grep -v -e ^_= -e ^SHLVL= -e ^PWD= | sort
			echo "cwd=$PWD input=$(wc -c)"
			echo "ignored=$((0x$(grep SigIgn /proc/self/status | cut -f 2) & 0x7fffffff))" # 32 and 33 are the C library's
			test "$(ps -o sid= -p $$ | tr -d ' ')" = $$ && echo "own session"`,
	})
	text := string(st.Log)
	for _, want := range []string{
		"A=a 'b' $(c) \"d\"\n", "LANG=job\n", "S=geheim\n", "PATH=",
		"OUTLAST_NOTICE_FILE=" + n.dir.path("notice.json") + "\n",
		"OUTLAST_RUN=" + markOf(n.dir, "token") + "\n", "cwd=" + n.dir.path("workdir") + " input=0\n",
		"ignored=0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "of the worker") {
		t.Errorf("the worker's environment has leaked:\n%s", text)
	}
}

// Secret values are in no file of the attempt and in no argument of its processes.
func TestSecretsStayOffDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{Secrets: map[string]string{"S": "very-secret-value"}, Run: "echo up; sleep 100"})
	n.awaitLog("up")
	err := filepath.WalkDir(string(n.dir), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "very-secret-value") {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	argv, err := os.ReadFile("/proc/" + strconv.Itoa(n.supervisor().pid) + "/cmdline")
	if err != nil || strings.Contains(string(argv), "very-secret-value") {
		t.Errorf("the supervisor's arguments are %q, error %v", argv, err)
	}
}

// A run leaves no process behind: not a background job, not a daemon in a session of its own, not one that has
// hidden its environment. The exit code is that of the main process all the same.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	st := n.finish(StartRequest{Run: `
		sleep 1000 & echo pid $!
		setsid bash -c 'sleep 1001 & echo pid $!; echo pid $$; wait' &
		(env -i setsid sleep 1002 & echo pid $!) 
		until [ "$(grep -c pid ../out.log)" = 4 ]; do :; done
		exit 5`})
	if st.Exit.Code != 5 || strings.Count(string(st.Log), "pid ") != 4 {
		t.Fatalf("exit %+v, log %s", st.Exit, st.Log)
	}
	for line := range strings.Lines(string(st.Log)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid "))); err == nil && alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// Services that setup has started are there for the run.
func TestSetupServicesLive(t *testing.T) {
	t.Parallel()
	st := newNode(t).finish(StartRequest{Setup: "sleep 1000 & echo $! > pid", Run: "kill -0 $(cat pid)"})
	if st.Exit.Code != 0 {
		t.Errorf("exit %+v, log %s", st.Exit, st.Log)
	}
}

// Processes that do not heed TERM are killed when their grace is over, also after a run that ended by itself.
func TestStubbornLeftover(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	st := n.finish(StartRequest{Run: `
		bash -c 'trap "" TERM; echo armed; while :; do sleep 1; done' &
		until grep -q armed ../out.log; do :; done
		echo $! > pid`})
	text, _ := os.ReadFile(n.dir.path("workdir/pid"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || alive(pid) {
		t.Errorf("process %d is left, error %v", pid, err)
	}
	if took := time.Duration(st.Ended-st.Started) * time.Millisecond; took < leftoverGrace {
		t.Errorf("it got %v", took)
	}
}

// The log can be read in parts from any offset, and is whole when the run has ended.
func TestLog(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.finish(StartRequest{Run: "for i in $(seq 20000); do echo line $i; done; echo end >&2"})
	var text strings.Builder
	for {
		st, err := n.command(nil, "poll", string(n.dir), strconv.Itoa(text.Len()), "10000")
		if err != nil {
			t.Fatal(err)
		}
		if st.LogOffset != int64(text.Len()) || len(st.Log) > 10000 {
			t.Fatalf("offset %d, %d bytes", st.LogOffset, len(st.Log))
		}
		text.Write(st.Log)
		if len(st.Log) == 0 {
			break
		}
	}
	if got := text.String(); strings.Count(got, "\n") != 20001 || !strings.HasSuffix(got, "line 20000\nend\n") {
		t.Errorf("the log has %d lines", strings.Count(got, "\n"))
	}
	st, err := n.command(nil, "poll", string(n.dir), "99999999", "10")
	if err != nil || len(st.Log) != 0 || st.LogOffset != st.LogSize {
		t.Errorf("beyond the end: %+v, error %v", st, err)
	}
}

// The process and the exit of a run are recorded when its disk is full, be it by its setup or by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	folder := mountSmall(t)
	n := newNode(t)
	n.dir = dir(filepath.Join(folder, "attempt"))
	n.start(StartRequest{Setup: "cat /dev/zero > fill; true", Run: "cat /dev/zero > more; exit 9"})
	eventually(t, "the run has ended", func() bool { return n.dir.has(fileExit) })
	var run runRecord
	if !n.dir.read(fileRun, &run) || run.Stage != stageRun {
		t.Errorf("run record %+v", run)
	}
	st, err := n.dir.look()
	if err != nil || st.Exit == nil || st.Exit.Code != 9 {
		t.Errorf("status %+v, exit %+v, error %v", st, st.Exit, err)
	}
}

package hook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const ample = 30 * time.Second // for what ends by itself

// TestCallback ensures what a callback finds: SkyPilot's variables with ours, those of its task, nothing of the worker, and a
// folder of its own that is gone afterwards.
func TestCallback(t *testing.T) {
	t.Setenv("OF_THE_WORKER", "must not be seen")
	out := filepath.Join(t.TempDir(), "out")
	own := failed().Variables("sky-7", "sky-6\nsky-7")
	if err := Callback(t.Context(), `env > "$OUT"; pwd >> "$OUT"; touch here; ls >> "$OUT"`, map[string]string{"OUT": out, "MODEL": "x y"}, own, ample); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	has := map[string]bool{}
	folder := ""
	for _, l := range lines {
		has[l] = true
		if strings.HasPrefix(l, "HOME=") {
			folder = strings.TrimPrefix(l, "HOME=")
		}
	}
	for _, want := range []string{
		"SKYPILOT_TASK_ID=sky-7", "TASK_ID=1", "JOB_ID=7", "JOB_STATUS=FAILED", "CLUSTER_NAME=vm-1", "TASK_NAME=b", "EVENT_TYPE=Spot",
		"OUTLAST_EVENT=FAILED", "OUTLAST_STATUS=FAILED", "OUTLAST_CAUSE=user_exit", "OUTLAST_ATTEMPT=2", "OUTLAST_JOB_NAME=train",
		"OUTLAST_TEXT=job 7 train, task 2 of 2, has failed: the user's code ended with exit code 1", "MODEL=x y", folder, "here",
	} {
		if !has[want] {
			t.Errorf("there is no %q in\n%s", want, b)
		}
	}
	if strings.Contains(string(b), "must not be seen") {
		t.Error("it sees the environment of the worker")
	}
	if _, err := os.Stat(folder); folder == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder %q is still there: %v", folder, err)
	}
}

// TestCallbackThatFails ensures that a failure tells the exit code and the last line, safely.
func TestCallbackThatFails(t *testing.T) {
	t.Parallel()
	err := Callback(t.Context(), `echo one; printf '\033[31mtwo\n'; exit 3`, nil, nil, ample)
	if err == nil || err.Error() != `the callback ended with exit status 3: \x1b[31mtwo` {
		t.Errorf("%v", err)
	}
}

// TestCallbackLeavesNothing ensures that a callback that hangs, ignores TERM and forks away into a session of its own is ended
// at its limit with all its processes, and that what a callback which ends well leaves behind ends, too.
func TestCallbackLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hangs, deaf, forks away": `trap '' TERM; setsid bash -c 'trap "" TERM; echo $$ > "$OUT"; while :; do sleep 0.05; done' & while :; do sleep 0.05; done`,
		"leaves one behind":       `setsid bash -c 'echo $$ > "$OUT"; while :; do sleep 0.05; done' & until [ -s "$OUT" ]; do sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "pid")
			limit := ample
			ctx, done := context.WithCancel(t.Context())
			defer done()
			hangs := strings.HasPrefix(name, "hangs")
			if hangs { // until it is there; then its time is up
				go func() {
					for ctx.Err() == nil {
						if b, err := os.ReadFile(out); err == nil && len(b) > 1 {
							done()
						}
						select {
						case <-ctx.Done():
						case <-time.After(5 * time.Millisecond):
						}
					}
				}()
			}
			err := Callback(ctx, script, map[string]string{"OUT": out}, nil, limit)
			if hangs != (err != nil) {
				t.Errorf("it ended with %v", err)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			if gone := gone(pid); !gone {
				t.Errorf("process %d is still there", pid)
			}
		})
	}
}

// gone reports whether a process that was killed has ended: it may take a moment, or be waited for by nobody.
func gone(pid int) bool {
	end := time.NewTimer(ample)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") || syscall.Kill(pid, 0) != nil {
			return true
		}
		select {
		case <-end.C:
			return false
		case <-tick.C:
		}
	}
}

// TestCallbackLimit ensures that the time of a callback ends, and that this is what is said.
func TestCallbackLimit(t *testing.T) {
	t.Parallel()
	err := Callback(t.Context(), `sleep 1000`, nil, nil, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "longer than 200ms and was ended") {
		t.Errorf("%v", err)
	}
}

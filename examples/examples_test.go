// Package examples ensures that the job files here do what they say.
package examples

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outlast-dev/outlast/internal/spec"
)

// TestExamplesParse ensures that every example is a job file, and that the list here knows it. That they run is ensured by
// TestExamples of the worker.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found examples %v, error %v", files, err)
	}
	list, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"CHAT_URL": "https://chat.example.com/hooks/1"}
	for _, f := range files {
		if _, err := spec.ParseFile(f, spec.Options{Secret: given}); err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(list), "]("+f+")") {
			t.Errorf("README.md does not list %s", f)
		}
	}
}

// bash prepares the run section of an example as a process of its own.
func bash(t *testing.T, file string, env map[string]string) *exec.Cmd {
	t.Helper()
	j, err := spec.ParseFile(file, spec.Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", j.Request.Tasks[0].Run)
	cmd.Env = os.Environ()
	for name, value := range j.Request.Tasks[0].Envs {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// TestTrainGoesOnWhereItWas ensures that the training loop saves and ends when told to, and that the next attempt does
// every step that is left and none twice.
func TestTrainGoesOnWhereItWas(t *testing.T) {
	env := map[string]string{"CHECKPOINT_DIR": t.TempDir(), "SECONDS_PER_STEP": "0.02"}
	first := bash(t, "train.yaml", env)
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = first.Start(); err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]bool)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		steps[lines.Text()] = true
		if lines.Text() == "step 3 of 30" {
			if err = first.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err = first.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Fatalf("after TERM the loop ended with %v, want exit code 143", err)
	}
	if steps["step 30 of 30"] {
		t.Fatal("TERM did not end the loop")
	}

	rest, err := bash(t, "train.yaml", env).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(rest), "resumed from step ") || !strings.HasSuffix(string(rest), "step 30 of 30\ndone\n") {
		t.Errorf("the second attempt said:\n%s", rest)
	}
	for line := range strings.Lines(string(rest)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "step ") {
			if steps[line] {
				t.Errorf("%q was done twice", line)
			}
			steps[line] = true
		}
	}
	count := 0
	for line := range steps {
		if strings.HasPrefix(line, "step ") {
			count++
		}
	}
	if count != 30 {
		t.Errorf("%d steps were done, want 30", count)
	}
}

// TestRetriesSucceedsAtTheThirdTry ensures the exit codes that the example's job_recovery speaks of.
func TestRetriesSucceedsAtTheThirdTry(t *testing.T) {
	env := map[string]string{"STATE_DIR": t.TempDir()}
	for try, want := range []int{33, 33, 0} {
		cmd := bash(t, "retries.yaml", env)
		cmd.Stderr = io.Discard
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("try %d ended with %v, want exit code %d", try+1, err, want)
		}
	}
}

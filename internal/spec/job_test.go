package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// mustParse returns the job of a file that has nothing wrong with it.
func mustParse(t *testing.T, text string, opt Options) Job {
	t.Helper()
	j, err := Parse("train.yaml", []byte(text), opt)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return j
}

// problems returns what Parse says of a faulty file, one line for each problem.
func problems(t *testing.T, text string, opt Options) []string {
	t.Helper()
	j, err := Parse("t.yaml", []byte(text), opt)
	if err == nil {
		return nil
	}
	var all Errors
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("error %T is not a list of problems: %v", err, err)
	}
	if diff := cmp.Diff(Job{}, j); diff != "" {
		t.Errorf("a faulty file gave a job:\n%s", diff)
	}
	return strings.Split(err.Error(), "\n")
}

// TestParseTask ensures that every field of a task arrives where it belongs.
func TestParseTask(t *testing.T) {
	got := mustParse(t, `
name: train
workdir: code
num_nodes: 1
resources:
  infra: AWS/us-east-1/*
  cpus: 4+
  memory: 16
  priority: 7
  job_recovery:
    strategy: failover
    max_restarts_on_errors: 3
    recover_on_exit_codes: [33, 32, 33]
  any_of:
    - use_spot: true
    - use_spot: false
      infra: "*"
      cpus: 8
envs:
  STEPS: 30
  RATE: 1.10
  ON: true
  DEBUG:
secrets:
  TOKEN: abc
setup: pip install x
run: |
  # train
  python train.py

  echo done
`, Options{Env: map[string]string{"DEBUG": "1", "EXTRA": ""}, Secret: map[string]string{"KEY": "k"}, Dir: "/home/u", User: "eve"})
	wide := job.Quantity{N: 4, AtLeast: true}
	memory := job.Quantity{N: 16}
	want := Job{
		Request: job.Request{
			Name: "train", Priority: 7, User: "eve",
			Tasks: []job.TaskRequest{{
				Name: "train",
				Resources: job.Resources{Any: []job.Want{
					{Provider: "aws", Region: "us-east-1", CPUs: wide, MemoryGB: memory, UseSpot: true},
					{CPUs: job.Quantity{N: 8}, MemoryGB: memory},
				}},
				Recovery: job.Recovery{Strategy: job.Failover, MaxRestartsOnErrors: 3, RecoverOnExitCodes: []int{32, 33}},
				Envs:     map[string]string{"STEPS": "30", "RATE": "1.10", "ON": "true", "DEBUG": "1", "EXTRA": ""},
				Secrets:  []string{"KEY", "TOKEN"},
				Setup:    "pip install x",
				Run:      "# train\npython train.py\n\necho done\n",
			}},
		},
		Secrets:  []map[string]string{{"TOKEN": "abc", "KEY": "k"}},
		Workdirs: []string{"/home/u/code"},
		Mounts:   [][]string{nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
}

// TestParseChain ensures that a header names the job, that tasks without a name get one, and that one priority in any
// of them is that of the job.
func TestParseChain(t *testing.T) {
	got := mustParse(t, "name: nightly\nexecution: serial\n---\nname: fetch\nrun: a\n---\n# empty documents are skipped\n---\nrun: b\nresources: {priority: -3}\n", Options{})
	if got.Request.Name != "nightly" || got.Request.Priority != -3 || len(got.Secrets) != 2 || len(got.Workdirs) != 2 {
		t.Errorf("job %+v", got)
	}
	var names []string
	for _, task := range got.Request.Tasks {
		names = append(names, task.Name+"="+task.Run)
	}
	if diff := cmp.Diff([]string{"fetch=a", "nightly-1=b"}, names); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

// TestJobName ensures where a job has its name from.
func TestJobName(t *testing.T) {
	for _, tt := range []struct {
		name, text, file, option string
		want, wantTask           string
	}{
		{"the task's", "name: a\nrun: x", "f.yaml", "", "a", "a"},
		{"the file's", "run: x", "/some/where/f.yaml", "", "f", "f"},
		{"the option's", "name: a\nrun: x", "f.yaml", "b", "b", "b"},
		{"standard input has none", "run: x", "-", "", "job", "job"},
		{"a file with a name that can not be shown has none", "run: x", "\x1b[31m.yaml", "", "job", "job"},
		{"a chain without a header is called as its file", "name: a\nrun: x\n---\nname: b\nrun: y", "f.yaml", "", "f", "a"},
		{"the option renames the job, not the tasks of a chain", "name: h\n---\nname: a\nrun: x\n---\nrun: y", "f.yaml", "b", "b", "a"},
		{"only a name is a task that does nothing", "name: a", "f.yaml", "", "a", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, err := Parse(tt.file, []byte(tt.text), Options{Name: tt.option})
			if err != nil {
				t.Fatal(err)
			}
			if j.Request.Name != tt.want || j.Request.Tasks[0].Name != tt.wantTask {
				t.Errorf("job %q with task %q, want %q with %q", j.Request.Name, j.Request.Tasks[0].Name, tt.want, tt.wantTask)
			}
		})
	}
}

// TestQuantities ensures SkyPilot's ways to write amounts.
func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		field, text string
		want        job.Quantity
	}{
		{"cpus", "4", job.Quantity{N: 4}},
		{"cpus", "0.5", job.Quantity{N: 0.5}},
		{"cpus", `"4+"`, job.Quantity{N: 4, AtLeast: true}},
		{"memory", "16", job.Quantity{N: 16}},
		{"memory", "16+", job.Quantity{N: 16, AtLeast: true}},
		{"memory", "16GB+", job.Quantity{N: 16, AtLeast: true}},
		{"memory", "16 gb", job.Quantity{N: 16}},
		{"memory", "512MB", job.Quantity{N: 0.5}},
		{"memory", "1T", job.Quantity{N: 1024}},
	} {
		j := mustParse(t, "resources: {"+tt.field+": "+tt.text+"}", Options{})
		w := j.Request.Tasks[0].Resources.Any[0]
		if got := map[string]job.Quantity{"cpus": w.CPUs, "memory": w.MemoryGB}[tt.field]; got != tt.want {
			t.Errorf("%s: %s is %+v, want %+v", tt.field, tt.text, got, tt.want)
		}
	}
}

// TestRecoveryForms ensures that a strategy may be written alone, and one exit code without a list.
func TestRecoveryForms(t *testing.T) {
	for text, want := range map[string]job.Recovery{
		"EAGER_NEXT_REGION":                {Strategy: job.EagerNextRegion},
		"never":                            {Strategy: job.Never},
		"{recover_on_exit_codes: 33}":      {RecoverOnExitCodes: []int{33}},
		"{strategy: ~}":                    {},
		"{max_restarts_on_errors: 2}":      {MaxRestartsOnErrors: 2},
		"{recover_on_exit_codes: [255,0]}": {RecoverOnExitCodes: []int{0, 255}},
	} {
		j := mustParse(t, "resources: {job_recovery: "+text+"}", Options{})
		if diff := cmp.Diff(want, j.Request.Tasks[0].Recovery); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestOrderedResources ensures that ordered entries keep their order and the defaults of what is written outside.
func TestOrderedResources(t *testing.T) {
	j := mustParse(t, "resources:\n  cpus: 2\n  ordered:\n  - infra: local/b\n  - infra: local/a\n    use_spot: yes\n  -\n", Options{})
	two := job.Quantity{N: 2}
	want := job.Resources{Ordered: true, Any: []job.Want{
		{Provider: "local", Region: "b", CPUs: two}, {Provider: "local", Region: "a", CPUs: two, UseSpot: true}, {CPUs: two},
	}}
	if diff := cmp.Diff(want, j.Request.Tasks[0].Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestAnchors ensures that anchors, aliases and merge keys work as YAML has them: what is written wins over what is merged.
func TestAnchors(t *testing.T) {
	j := mustParse(t, "resources:\n  any_of:\n  - &base {cpus: 2, use_spot: true}\n  - <<: *base\n    cpus: 4\n  - *base\n", Options{})
	want := []job.Want{
		{CPUs: job.Quantity{N: 2}, UseSpot: true}, {CPUs: job.Quantity{N: 4}, UseSpot: true}, // the third is the first again
	}
	if diff := cmp.Diff(want, j.Request.Tasks[0].Resources.Any); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestSameFileElsewhere ensures that a byte order mark and the line ends of other systems change nothing.
func TestSameFileElsewhere(t *testing.T) {
	text := "name: a\nrun: |\n  one\n  two\n"
	want := mustParse(t, text, Options{})
	for name, other := range map[string]string{
		"byte order mark": "\ufeff" + text,
		"CRLF":            strings.ReplaceAll(text, "\n", "\r\n"),
		"CR":              strings.ReplaceAll(text, "\n", "\r"),
		"no last newline": strings.TrimSuffix(text, "\n"),
		"directive":       "%YAML 1.1\n---\n" + text,
		"tagged":          "name: !!str a\nrun: |\n  one\n  two\n",
	} {
		if diff := cmp.Diff(want, mustParse(t, other, Options{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPriorityOption ensures that the command line's priority wins.
func TestPriorityOption(t *testing.T) {
	five := Override{Flag: "--priority", Field: "resources.priority", Values: []string{"5"}}
	if got := mustParse(t, "resources: {priority: 9}", Options{Overrides: []Override{five}}).Request.Priority; got != 5 {
		t.Errorf("priority %d, want 5", got)
	}
}

// TestParseFile ensures that workdirs are looked for beside the file, and that a missing one is a problem of its line.
func TestParseFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(file, []byte("run: x\nworkdir: code\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ParseFile(file, Options{})
	if want := file + `:2:10: workdir: "code" is not a folder (it must be a local folder)`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err = os.Mkdir(filepath.Join(dir, "code"), 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := ParseFile(file, Options{})
	if err != nil || j.Workdirs[0] != filepath.Join(dir, "code") {
		t.Errorf("workdirs %v, error %v", j.Workdirs, err)
	}
	if _, err := ParseFile(filepath.Join(dir, "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v for a file that is not there", err)
	}
}

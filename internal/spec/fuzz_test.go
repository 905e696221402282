package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// FuzzParse ensures that no file makes Parse panic, that what it accepts keeps the promises of a [job.Request], and
// that what it says of the rest is fit for a terminal.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{
		"", "---\n---\n", "a: &x [*x]", "<<: *a", "? [a]\n: b", "resources: {any_of: [&a {cpus: 1}, *a], priority: 5}",
		"envs: {A: \"\\0\"}\nsecrets:\n  B:", "run: |2-\n   x\n", "%YAML 1.1\n---\nname: !!str 5\n...\n", "resources:\n\tcpus: 1\n",
		"\ufeffname: a\r\nrun: >+\r\n x\r\n", "resources: {memory: 5XB, infra: a/b/c/d, job_recovery: {recover_on_exit_codes: [0, 999]}}",
		"resources: {accelerators: {A100:8, V100}, image_id: {a: b, c: d}, ports: [1-2, 3], labels: {a: 1}, disk_size: 1TB}",
		"envs: {B: b}\nfile_mounts: {~/x: $B/y, /z: {name: $B, store: s3, mode: COPY}}\nstorage_mounts: {a: gs://b/c}",
		"webhooks: [{url_secret: U, events: [failed]}, 'http://x/']\nsecrets: {U: hunter2}\nlog_retention: 30d\non_notice: {signal: INT}\nmax_wait: 1d2h",
		"name: a\nexecution: serial\nredact_secrets: no\n---\nnum_nodes: 3\nconfig: {kubernetes: 1}\ngrace: 5s\n---\nevent_callback: x",
	} {
		f.Add([]byte(s))
	}
	for _, s := range secretFiles {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Parse("f.yaml", data, Options{})
		if err == nil {
			checkJob(t, j)
			return
		}
		var all Errors
		if !errors.As(err, &all) || len(all) == 0 || len(all) > maxProblems+1 {
			t.Fatalf("error %T", err)
		}
		shown := err.Error()
		for _, p := range all {
			shown += "\n" + p.Frame
		}
		for _, r := range shown {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("a problem contains %U: %q", r, shown)
			}
		}
	})
}

// checkJob fails unless j is as package job promises.
func checkJob(t *testing.T, j Job) {
	t.Helper()
	r := j.Request
	if r.Name == "" || utf8.RuneCountInString(r.Name) > maxName || r.Priority < job.MinPriority || r.Priority > job.MaxPriority {
		t.Fatalf("name %q, priority %d", r.Name, r.Priority)
	}
	if len(r.Tasks) == 0 || len(j.Secrets) != len(r.Tasks) || len(j.Workdirs) != len(r.Tasks) || len(j.Mounts) != len(r.Tasks) {
		t.Fatalf("%d tasks, %d secrets, %d workdirs", len(r.Tasks), len(j.Secrets), len(j.Workdirs))
	}
	names := make(map[string]bool)
	for i, task := range r.Tasks {
		if names[task.Name] || task.Name == "" {
			t.Fatalf("task name %q is empty or there twice", task.Name)
		}
		names[task.Name] = true
		if len(task.Files) != len(j.Mounts[i]) || task.Nodes < 0 || task.MaxDuration < 0 || task.MaxWait < 0 || task.Grace < 0 {
			t.Fatalf("task %+v, mounts %q", task, j.Mounts[i])
		}
		for k, m := range task.Files {
			if m.Path == "" || strings.Contains(m.Path, "..") && strings.HasPrefix(m.Path, "..") || (m.Source == "") == (j.Mounts[i][k] == "") {
				t.Fatalf("mount %+v of %q", m, j.Mounts[i][k])
			}
		}
		if len(task.Resources.Any) == 0 || len(task.Secrets) != len(j.Secrets[i]) || strings.Contains(task.Run+task.Setup, "\x00") {
			t.Fatalf("task %+v", task)
		}
		for name := range task.Envs {
			if _, secret := j.Secrets[i][name]; secret || !variableName.MatchString(name) || Reserved(name) {
				t.Fatalf("env %q", name)
			}
		}
	}
}

// TestScriptsArriveUnchanged ensures that a script in a literal block reaches the job byte by byte: comments, empty
// lines, blanks at the end, quotes and what looks like YAML included.
func TestScriptsArriveUnchanged(t *testing.T) {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "# comment", "echo \"a: b\"", "a: &x [1", "- x", "--- not a document", "if true; then", "  indented", "cat <<'EOF'", "EOF", "x\t\ty ",
			"%YAML", "'", "\"", "key: |", "? a", "<<: *b", "{", "@", "`date`", "a # b", "\\", "é ü 漢",
		}),
		rapid.StringMatching(`[ -~]{0,20}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 8).Draw(t, "lines")
		lines[0] = "set -e" // the first line gives the block its indentation
		lines = append(lines, "exit 0")
		text := "run: |\n  " + strings.Join(lines, "\n  ") + "\nname: after\n"
		j, err := Parse("f.yaml", []byte(text), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", j.Request.Tasks[0].Run); diff != "" || j.Request.Name != "after" {
			t.Fatalf("script (-want +got):\n%s", diff)
		}
	})
}

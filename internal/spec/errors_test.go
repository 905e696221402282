package spec

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestProblems has one row for each thing that can be wrong, with its place and its advice.
func TestProblems(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	for _, tt := range []struct {
		name, text string
		want       []string // each a part of one line
	}{
		{"empty file", "", []string{"t.yaml: has no task"}},
		{"only comments", "# nothing\n", []string{"t.yaml: has no task"}},
		{"only empty documents", "---\n---\n", []string{"has no task"}},
		{"header without tasks", "name: a\nexecution: serial\n", []string{"has no task"}},
		{"not a mapping", "just text", []string{"t.yaml:1:1: task: is \"just text\" (it must be a mapping"}},
		{"a list", "- run: x", []string{"t.yaml:1:1: task: is a list"}},
		{"slip", "runn: x", []string{"t.yaml:1:1: runn: is not a field of a job file (did you mean run?)"}},
		{"wrong place", "use_spot: true", []string{"t.yaml:1:1: use_spot: is not a field of a job file (it belongs under resources)"}},
		{"wrong place and not served", "priority_class: A100", []string{"(SkyPilot knows it under resources, but it is not supported: it is a class of Kubernetes"}},
		{"no idea", "zzzzzzzz: x", []string{"(fields here are api_server_access, config, envs, event_callback, "}},
		{"known", "volumes: {/data: x}\nservice: {replicas: 2}\npool: {workers: 1}\ninputs: {s3://a: much}", []string{
			"t.yaml:1:1: volumes: is known but not supported (bring files with file_mounts", "t.yaml:2:1: service: is known but not supported",
			"t.yaml:3:1: pool: is known", "t.yaml:4:18: inputs.s3://a: is \"much\" (write how many GB"}},
		{"known resources", "resources:\n  priority_class: high\n  volumes: []", []string{
			"t.yaml:2:3: resources.priority_class: is known but not supported (it is a class of Kubernetes: write priority: and a number)", "resources.volumes: is known"}},
		{"twice", "run: a\nrun: b", []string{"t.yaml:2:1: run: is given twice, first in line 1"}},
		{"syntax in two documents", "run: [a\n---\nrunn: x\n---\nrun: a: b", []string{"t.yaml:1:6: is not YAML", "t.yaml:3:1: runn: is not", "t.yaml:5:6: is not YAML: mapping value is not allowed in this context"}},
		{"tab", "resources:\n\tcpus: 1", []string{"t.yaml:2:1: is indented with a tab (YAML wants spaces)"}},
		{"syntax", "run: [a", []string{"t.yaml:1:6: is not YAML: sequence end token ']' not found"}},
		{"bare star", "resources:\n  infra: *\n", []string{`write it in quotes if any place is meant: infra: "*"`}},
		{"bare star with region", "resources:\n  infra: */east", []string{`t.yaml:2:10: resources.infra: */east refers to nothing (write it in quotes`}},
		{"alias of itself", "resources: &a\n  any_of: [*a]", []string{"t.yaml:2:12: resources.any_of[0]: *a is inside of what it refers to"}},
		{"merge of a scalar", "<<: 5\nrun: x", []string{"t.yaml:1:1: << merges an integer (it must name a mapping)"}},
		{"tag", "run: !!binary aGk=", []string{`t.yaml:1:6: run: has the YAML tag "!!binary"`}},
		{"latin1", "run: caf\xe9", []string{"t.yaml:1:9: is not UTF-8 text"}},
		{"binary", "\x7fELF\x00", []string{"t.yaml:1:1: is not text: it has the control character U+007F"}},
		{"NUL by escape", `run: "a\0b"` + "\nenvs: {A: \"\\0\"}", []string{"run: contains a NUL character", "envs.A: has a value with a NUL character"}},
		{"number for a name", "name: 5", []string{"t.yaml:1:7: name: is an integer (write it in quotes"}},
		{"long name", "name: " + long, []string{"name: is longer than 256 characters"}},
		{"unprintable name", `name: "a\e[31m"`, []string{`name: "a\x1b[31m" has characters that can not be printed`}},
		{"same name", "name: a\nrun: x\n---\nname: a\nrun: y", []string{`t.yaml:4:7: name: "a" is also the task in line 1`}},
		{"parallel", "name: a\nexecution: parallel\n---\nrun: x", []string{"t.yaml:2:12: execution: parallel is known but not supported"}},
		{"execution of a task", "execution: serial\nrun: x", []string{"execution: is known but not supported (it belongs into a first document"}},
		{"any_of and ordered", "resources: {any_of: [{}], ordered: [{}]}", []string{"resources.ordered: is given together with any_of"}},
		{"empty any_of", "resources: {any_of: []}", []string{"resources.any_of: is a list without entries (it is a list of resources"}},
		{"any_of in any_of", "resources: {any_of: [{any_of: [{}]}]}", []string{"resources.any_of[0].any_of: is known but not supported (it stands directly under resources)"}},
		{"different recovery", "resources:\n  any_of:\n  - job_recovery: FAILOVER\n  - job_recovery: NEVER", []string{"t.yaml:4:19: resources.any_of[1].job_recovery: differs"}},
		{"recovery of one entry", "resources:\n  any_of:\n  - job_recovery: FAILOVER\n  - {}", []string{"resources.any_of[1].job_recovery: differs"}},
		{"different priority", "resources: {priority: 1}\n---\nresources: {priority: 2}", []string{"t.yaml:3:23: resources.priority: is 2, but 1 in line 1"}},
		{"priority range", "resources: {priority: 1001}", []string{"resources.priority: is \"1001\" (it must be an integer from -1000 to 1000)"}},
		{"priority text", "resources: {priority: '5'}", []string{"resources.priority: is \"5\" (it must be an integer"}},
		{"strategy slip", "resources: {job_recovery: FAILOVR}", []string{`resources.job_recovery: is "FAILOVR" (did you mean FAILOVER?)`}},
		{"strategy unknown", "resources: {job_recovery: {strategy: x, max_restart: 1}}", []string{"(strategies are EAGER_NEXT_REGION, FAILOVER, NEVER)", "job_recovery.max_restart: is not a field of a job file (did you mean max_restarts_on_errors?)"}},
		{"restarts", "resources: {job_recovery: {max_restarts_on_errors: -1}}", []string{"it must be an integer from 0 to 2147483647"}},
		{"exit code", "resources: {job_recovery: {recover_on_exit_codes: [1, 256]}}", []string{"recover_on_exit_codes[1]: is \"256\" (it must be an integer from 0 to 255)"}},
		{"cpus", "resources: {cpus: -1}", []string{`resources.cpus: is "-1"`}},
		{"cpus zero", "resources: {cpus: 0}", []string{`resources.cpus: is "0" (it must be more than 0)`}},
		{"cpus infinite", "resources: {cpus: .inf, memory: .nan}", []string{`resources.cpus: is ".inf"`, `resources.memory: is ".nan"`}},
		{"memory unit", "resources: {memory: 5XB}", []string{`resources.memory: has the unit "XB"`}},
		{"infra parts", "resources: {infra: a/b/c/d}", []string{"has more than three parts"}},
		{"infra characters", `resources: {infra: "aws/$(reboot)"}`, []string{`resources.infra: "aws/$(reboot)" is not a place`}},
		{"git workdir", "workdir: {url: x}", []string{"workdir: is a git repository, which is known but not supported"}},
		{"remote workdir", "workdir: s3://bucket", []string{"workdir: is the address of something remote"}},
		{"required env", "envs: {A: }", []string{"t.yaml:1:8: envs.A: has no value (give one with --env A=...)"}},
		{"required secret", "secrets:\n  A:", []string{"t.yaml:2:3: secrets.A: has no value (give one with --secret A=...)"}},
		{"env name", "envs: {1A: x, B-C: y, D=E: z}", []string{"envs.1A: is not the name of a variable", "envs.B-C: is not the name", "envs.D=E: is not the name"}},
		{"env value", "envs: {A: [1]}", []string{"envs.A: is a list (it must be text, a number or a boolean)"}},
		{"reserved env", "envs: {SKYPILOT_TASK_ID: x, OUTLAST_ATTEMPT: 1}", []string{"envs.SKYPILOT_TASK_ID: is set by Outlast itself", "envs.OUTLAST_ATTEMPT: is set by"}},
		{"env and secret", "envs: {A: x}\nsecrets: {A: y}", []string{"t.yaml:2:11: secrets.A: is also among envs"}},
		{"long env", "envs: {A: " + strings.Repeat("x", 128<<10) + "}", []string{"envs.A: has a value longer than an environment variable may be"}},
		{"too many tasks", strings.Repeat("---\nrun: x\n", maxTasks+1), []string{"has 61 tasks (a job has at most 60)"}},
		{"too large", strings.Repeat("#", maxBytes+1), []string{"t.yaml: is larger than 1048576 bytes"}},
		{"too many tokens", "envs:\n" + strings.Repeat(" - a\n", maxTokens), []string{"has more than 20000 YAML tokens"}},
		{"too deep", "envs: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), []string{"envs: is a list", "is nested more than 32 deep"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := problems(t, tt.text, Options{})
			if len(got) != len(tt.want) {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
			for i, part := range tt.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("problem %q\ndoes not contain %q", got[i], part)
				}
			}
		})
	}
}

// TestOptionProblems ensures that what is wrong with the command line is said without a place in the file.
func TestOptionProblems(t *testing.T) {
	high := Override{Flag: "--priority", Field: "resources.priority", Values: []string{"1001"}}
	got := problems(t, "run: x", Options{
		Name: "a\nb", Overrides: []Override{high},
		Env: map[string]string{"A B": "1", "X": "\x00"}, Secret: map[string]string{"\x1b[31m": "s", "OK": "\xff"},
	})
	slices.Sort(got)
	want := []string{
		`--env "A B": is not the name of a variable: letters, digits and _ only, not starting with a digit`,
		`--env X: has a value with a NUL character, which no program can be given`,
		`--name: "a\nb" has characters that can not be printed`,
		`--priority: is "1001" (it must be an integer from -1000 to 1000)`,
		`--secret "\x1b[31m": is not the name of a variable: letters, digits and _ only, not starting with a digit`,
		`--secret OK: has a value that is not UTF-8 text`,
	}
	// A name with a blank is harmless on a terminal and stays as it is.
	want[0] = strings.Replace(want[0], `"A B"`, "A B", 1)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestSecretsStaySecret ensures that no error shows a value of envs or secrets, whatever is wrong around it (G12).
func TestSecretsStaySecret(t *testing.T) {
	for _, text := range []string{
		"secrets: {A: hunter2, A: hunter2}",
		"secrets: {A-B: hunter2}",
		"secrets: {A: [hunter2]}",
		"secrets: {A: {b: hunter2}}",
		"secrets: {A: \"hunter2\\0\"}",
		"secrets: {A: !x hunter2}",
		"secrets:\n  A: hunter2\n B: 1",
		"secrets:\n  A: \"hunter2",
		"secrets:\n  A: 'hunter2\n",
		"secrets:\n  A: hunter2: x",
		"secrets:\n\tA: hunter2",
		"secrets: {A: hunter2}\nenvs: {A: hunter2}",
		"secrets:\n  A: \"hunter2\\q\"",
		"secrets: {A: @hunter2}",
		"secrets: {A: %hunter2}",
		"secrets: {A: `hunter2`}",
	} {
		got := problems(t, text, Options{})
		if len(got) == 0 {
			t.Errorf("%q is accepted", text)
		}
		if all := strings.Join(got, "\n"); strings.Contains(all, "hunter2") {
			t.Errorf("%q shows the secret:\n%s", text, all)
		}
	}
}

// TestReportIsBounded ensures that a file with thousands of faults does not fill the terminal.
func TestReportIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "x%d: 1\n", i)
	}
	got := problems(t, b.String(), Options{})
	if len(got) != maxProblems+1 || got[maxProblems] != "t.yaml: and 2900 more problems" {
		t.Errorf("%d problems, the last %q", len(got), got[len(got)-1])
	}
}

// processorTime is what this process has used of the processor. Unlike the time of the clock, it does not grow because the
// machine is busy with something else.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestBombs ensures that files made to be expensive are refused, or read, in little time and memory.
func TestBombs(t *testing.T) {
	var laughs, merges strings.Builder
	laughs.WriteString("a: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 30 {
		fmt.Fprintf(&laughs, "b%d: &a%d [%s]\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	merges.WriteString("m0: &m0 {k: 1}\n")
	for i := range 500 {
		fmt.Fprintf(&merges, "m%d: &m%d {<<: *m%d, k%d: 1}\n", i+1, i+1, i, i)
	}
	for name, text := range map[string]string{
		"billion laughs":   laughs.String(),
		"merges of merges": merges.String(),
		"quotes":           strings.Repeat(`"`, maxBytes),
		"empty strings":    strings.Repeat(`"" `, maxTokens),
		"flow":             strings.Repeat("[", maxTokens-1),
		"sequences":        strings.Repeat("- ", maxTokens-1),
		"keys":             strings.Repeat("? ", maxTokens-1),
		"anchors":          strings.Repeat("&a ", maxTokens/2-1),
		"tags":             strings.Repeat("!!str ", maxTokens/2),
		"colons":           strings.Repeat(":", maxBytes),
		"exclamations":     strings.Repeat("!", maxBytes),
		"small maps":       strings.Repeat("a: 1\n", maxTokens/4),
		"documents":        strings.Repeat("---\na: 1\n", maxTokens/4),
		"blanks":           strings.Repeat(" ", maxBytes),
	} {
		t.Run(name, func(t *testing.T) {
			began := processorTime(t)
			if got := problems(t, text, Options{}); len(got) == 0 {
				t.Error("is accepted")
			}
			if took := processorTime(t) - began; took > 20*time.Second { // a second or less, a few with -race
				t.Errorf("took %v", took)
			}
		})
	}
}

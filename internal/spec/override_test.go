package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

func given(name, field string, values ...string) Override {
	return Override{Flag: "--" + name, Field: field, Values: values}
}

// TestOverrides ensures that a flag is the last word: over the field, over the older spellings of it, over every entry
// of any_of and ordered, and in every task of a chain.
func TestOverrides(t *testing.T) {
	two, four := job.Quantity{N: 2}, job.Quantity{N: 4, AtLeast: true}
	for _, tt := range []struct {
		name, text string
		flags      []Override
		want       [][]job.Want // per task
	}{
		{"nothing in the file", "run: x", []Override{given("cpus", "resources.cpus", "4+"), given("infra", "resources.infra", "local/b")},
			[][]job.Want{{{CPUs: four, Provider: "local", Region: "b"}}}},
		{"over the file", "resources: {cpus: 2, use_spot: true}", []Override{given("cpus", "resources.cpus", "4+"), given("no-use-spot", "resources.use_spot", "false")},
			[][]job.Want{{{CPUs: four}}}},
		{"none takes the field out", "resources: {cpus: 2, any_of: [{memory: 1}, {cpus: 4+}]}", []Override{given("cpus", "resources.cpus", "none")},
			[][]job.Want{{{MemoryGB: job.Quantity{N: 1}}, {}}}},
		{"over every entry", "resources: {any_of: [{cpus: 2, infra: a}, {infra: b}, ~]}", []Override{given("cpus", "resources.cpus", "4+")},
			[][]job.Want{{{Provider: "a", CPUs: four}, {Provider: "b", CPUs: four}, {CPUs: four}}}},
		{"in every task", "run: a\n---\nrun: b\nresources: {memory: 2}", []Override{given("cpus", "resources.cpus", "2")},
			[][]job.Want{{{CPUs: two}}, {{CPUs: two, MemoryGB: job.Quantity{N: 2}}}}},
		{"a shared part of the file is left alone", "resources: {any_of: [&a {cpus: 1, memory: 1}, {<<: *a, memory: 2}]}", []Override{given("cpus", "resources.cpus", "2")},
			[][]job.Want{{{CPUs: two, MemoryGB: job.Quantity{N: 1}}, {CPUs: two, MemoryGB: job.Quantity{N: 2}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got [][]job.Want
			for _, task := range mustParse(t, tt.text, Options{Overrides: tt.flags}).Request.Tasks {
				got = append(got, task.Resources.Any)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverrideProblems ensures that a flag is checked as its field is, and named in the error.
func TestOverrideProblems(t *testing.T) {
	for want, o := range map[string]Override{
		`--cpus: is "many" (write a number of CPUs`:              given("cpus", "resources.cpus", "many"),
		`--infra: "a/b/c/d" has more than three parts`:           given("infra", "resources.infra", "a/b/c/d"),
		`--job-recovery: is "FAILOVR" (did you mean FAILOVER?)`:  given("job-recovery", "resources.job_recovery", "FAILOVR"),
		`--workdir: "nowhere" is not a folder (it must be a loc`: given("workdir", "workdir", "nowhere"),
	} {
		got := problems(t, "run: x\n---\nrun: y", Options{Overrides: []Override{o}, Look: os.Stat})
		if len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("problems %q, want %q", got, want)
		}
	}
}

// TestWorkdirOption ensures that a folder of the command line is looked for from here, not from where the file is.
func TestWorkdirOption(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("sub", "code"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("sub", "t.yaml"), []byte("workdir: code\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := ParseFile(filepath.Join("sub", "t.yaml"), Options{Overrides: []Override{given("workdir", "workdir", "sub")}})
	if err != nil || j.Workdirs[0] != "sub" {
		t.Errorf("workdirs %v, error %v", j.Workdirs, err)
	}
	if j, err = FromCommand([]string{"ls"}, Options{Overrides: []Override{given("workdir", "workdir", "sub")}, Look: os.Stat}); err != nil || j.Workdirs[0] != "sub" {
		t.Errorf("workdirs %v, error %v", j.Workdirs, err)
	}
}

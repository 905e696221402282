package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/spec"
)

// Ensure that the plan follows from the seed, and that each fault comes sooner or later.
func TestPlanFollowsFromTheSeed(t *testing.T) {
	var table []*fault
	for i := range faults {
		table = append(table, &faults[i])
	}
	plan := planned(7, time.Hour, time.Second, table)
	if !reflect.DeepEqual(plan, planned(7, time.Hour, time.Second, table)) {
		t.Error("one seed, two plans")
	}
	if reflect.DeepEqual(plan, planned(8, time.Hour, time.Second, table)) {
		t.Error("two seeds, one plan")
	}
	came := map[string]bool{}
	for _, b := range plan {
		came[b.fault.name] = true
	}
	for _, f := range faults {
		if !came[f.name] {
			t.Errorf("%s never came in an hour", f.name)
		}
	}
}

// Ensure that what is submitted follows from the seed, that each kind comes, and that each knows its right endings.
func TestLoadFollowsFromTheSeed(t *testing.T) {
	throws := func() (all []order) {
		d := newDice(3, "load")
		for n := range 500 {
			all = append(all, throw(d, sizes["ci"].pace, []string{local, simul}, nil, n))
		}
		return all
	}
	all := throws()
	if !reflect.DeepEqual(all, throws()) {
		t.Error("one seed, two loads")
	}
	came := map[string]bool{}
	for _, o := range all {
		came[o.Kind] = true
		if len(o.Expect) == 0 || len(o.Expect) != len(o.Causes) || o.Tasks == 0 || o.count == 0 {
			t.Errorf("%+v does not say what must become of it", o)
		}
		for _, s := range o.Expect {
			if !final(s) {
				t.Errorf("%s of kind %q is to end as %q", o.Key, o.Kind, s)
			}
		}
	}
	for _, k := range kinds {
		if !came[k.name] {
			t.Errorf("kind %q never came", k.name)
		}
	}
}

// Ensure that the job file of each kind is right, with either provider.
func TestJobFilesAreRight(t *testing.T) {
	for _, k := range kinds {
		for _, provider := range []string{local, simul} {
			d := newDice(1, k.name+provider)
			for n := range 20 {
				o := throw(d, sizes["ci"].pace, []string{provider}, []string{k.name}, n)
				_, err := spec.Parse("job.yaml", []byte(o.file("/shared")), spec.Options{Secret: map[string]string{secretName: "s"}})
				if err != nil {
					t.Errorf("%s on %s: %v\n%s", k.name, provider, err, o.file("/shared"))
				}
			}
		}
	}
}

// Ensure that a gap without a driver counts from when somebody could have driven.
func TestLongestGap(t *testing.T) {
	at := func(s int) history.Time { return history.Time(1_000_000 + 1000*s) }
	sample := func(s, overdue int) history.Sample {
		return history.Sample{At: at(s), Overdue: time.Duration(overdue) * time.Second}
	}
	h := history.History{
		Run: history.Run{Began: at(0)},
		Faults: []history.Fault{
			{At: at(10), Healed: at(20), Stops: stopsAll},
			{At: at(40), Stops: stopsOne},
			{At: at(50), Stops: stopsAll}, // never healed
		},
	}
	for _, c := range []struct {
		name    string
		samples []history.Sample
		want    time.Duration
	}{
		{"nothing was overdue", []history.Sample{sample(5, 0)}, 0},
		{"before the fault", []history.Sample{sample(5, 3)}, 3 * time.Second},
		{"while nobody could", []history.Sample{sample(15, 5)}, 0},
		{"since somebody could", []history.Sample{sample(22, 9)}, 2 * time.Second},
		{"after the fault", []history.Sample{sample(30, 4), sample(31, 5)}, 5 * time.Second},
		{"one worker less", []history.Sample{sample(45, 6)}, 6 * time.Second},
		{"a fault without an end", []history.Sample{sample(70, 15)}, 0},
	} {
		h.Samples = c.samples
		if got := longestGap(h); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Ensure that code on a local machine leaves its traces, and that a second one that runs beside it says so.
func TestWitness(t *testing.T) {
	dir := t.TempDir()
	run := func(script, attempt string) *exec.Cmd {
		cmd := exec.Command("bash", "-c", witnessed([]step{echo("hello"), sleep(2 * beat)})+script)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SHARED=" + dir, "OUTLAST_JOB_ID=7", "TASK=0", "OUTLAST_ATTEMPT=" + attempt}
		return cmd
	}
	traces := func() (ops []string) {
		text, err := os.ReadFile(filepath.Join(dir, "7.trace"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) != 6 || f[1] != "7" || len(f[5]) != len("1700000000000") {
				t.Errorf("a trace is %q", line)
			}
			ops = append(ops, f[0]+" "+f[3])
		}
		return ops
	}
	if out, err := run("", "1").CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Fatalf("%s, %v", out, err)
	}
	if got, want := strings.Join(traces(), ", "), "start 1, beat 1, beat 1, end 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	first := run("\necho ready; read -r", "2")
	wait, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	if out, err := run("", "3").CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	_ = wait.Close()
	_ = first.Wait()
	if all := traces(); !contains(all, "double 3") || contains(all, "double 2") || contains(all, "double 1") {
		t.Errorf("got %v", all)
	}
}

func contains(all []string, one string) bool { return strings.Contains(strings.Join(all, "\n"), one) }

// Ensure that a secret is found wherever it lies in a file, also over the edge between two pieces, and in whatever form.
func TestSearchFindsTheSecret(t *testing.T) {
	secret := secretValue + "0123456789abcdef"
	for _, d := range disguises(secret) {
		for _, before := range []int{0, 1, 1<<20 - 10, 1<<20 + 300} {
			r := &round{dir: t.TempDir(), out: history.NewWriter(t.TempDir())}
			r.run.Secret = secret
			text := strings.Repeat("x", before) + string(d.text) + strings.Repeat("y", 1<<20)
			if err := os.WriteFile(filepath.Join(r.dir, "log"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := r.search(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.out.Close(); err != nil {
				t.Fatal(err)
			}
			h, err := history.Read(r.out.Dir())
			if err != nil || len(h.Leaks) == 0 || h.Leaks[0].As != d.name || len(h.Searched) != 1 || h.Searched[0].Bytes != int64(len(text)) {
				t.Errorf("%s after %d bytes: %+v, %+v, %v", d.name, before, h.Leaks, h.Searched, err)
			}
		}
	}
}

// Ensure that faults, kinds and rounds that do not exist are refused by name, and that rounds share the time.
func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"-faults", "rain"}, {"-kinds", "odd"}, {"-rounds", "square"}, {"-size", "huge"}, {"more"}} {
		if _, err := readOptions(args); err == nil || !strings.Contains(err.Error(), args[len(args)-1]) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, lasts := range []time.Duration{time.Minute, 3 * time.Minute, 30 * time.Minute} {
		o, err := readOptions([]string{"-for", lasts.String()})
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		kinds := map[string]bool{}
		for _, p := range rounds(o) {
			sum += p.lasts
			kinds[p.kind] = true
			if p.lasts > longest {
				t.Errorf("a round of %s", p.lasts)
			}
		}
		if len(kinds) != 2 || sum > lasts || sum < lasts/2 || o.seed == 0 {
			t.Errorf("%s: rounds %v", lasts, rounds(o))
		}
	}
}

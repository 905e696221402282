package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// file writes a job file and submits it, with flags before it.
func (f *fleet) file(text string, flags ...string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	r := f.enqueue(append(append([]string{"launch", "-d", "--env", "SHARED=" + f.shared}, flags...), path)...)
	if r.code != 0 {
		f.t.Fatalf("launch: %+v", r)
	}
	return strings.TrimSpace(r.out)
}

// chain is a job file of several tasks, each with a setup and a run.
func chain(tasks ...[2]string) string {
	text := "name: chain\n"
	for i, t := range tasks {
		text += fmt.Sprintf("---\nname: t%d\nenvs: {SHARED: null}\nsetup: |\n  %s\nrun: |\n  %s\n", i, t[0], t[1])
	}
	return text
}

// statuses are those of a job's tasks.
func (a account) statuses() string {
	var all []string
	for _, t := range a.Tasks {
		all = append(all, t.Status)
	}
	return strings.Join(all, " ")
}

// nothingRuns waits until no machine is left that may run code.
func (f *fleet) nothingRuns() {
	f.t.Helper()
	var out string
	f.eventually("no machine to be left", func() bool {
		r := f.enqueue("machines", "-o", "json")
		out = r.out
		return r.code == 0 && !regexp.MustCompile(`"state":"(pending|booting|running|stopping)"`).MatchString(out)
	}, func() string { return out })
}

// read is a file that user code has left, by lines.
func (f *fleet) read(name string) []string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.shared, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Ensure that of two jobs one can be cancelled while the other runs on, and that both can be looked at meanwhile.
func TestSmokeTwoJobs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	one, two := f.launch("echo first; "+waits, "-n", "one"), f.launch("echo second; "+waits, "-n", "two")
	f.await(one, "RUNNING")
	f.await(two, "RUNNING")
	if r := f.enqueue("cancel", one); r.code != 0 {
		t.Fatalf("cancel: %+v", r)
	}
	f.await(one, "CANCELLED")
	if a, text := f.show(two); a.Status != "RUNNING" {
		t.Errorf("the other job is %s", text)
	}
	if r := f.enqueue("queue"); !strings.Contains(r.out, "two") || strings.Contains(r.out, " one ") {
		t.Errorf("the queue: %+v", r)
	}
	if r := f.enqueue("queue", "-a"); !strings.Contains(r.out, "one") || !strings.Contains(r.out, "CANCELLED") {
		t.Errorf("the whole queue: %+v", r)
	}
	if r := f.enqueue("logs", one); r.out != "first\n" || r.code != 103 {
		t.Errorf("the log of the cancelled job: %+v", r)
	}
	f.eventually("the log of the other job", func() bool { return f.enqueue("logs", two).out == "second\n" })
	f.leave("go")
	f.await(two, "SUCCEEDED")
	f.nothingRuns()
}

// Ensure that each job of one submission has a rank of its own, from 0 on, and knows how many there are.
func TestSmokeRanks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	ids := strings.Fields(f.launch(`echo "$OUTLAST_JOB_RANK/$OUTLAST_NUM_JOBS" >> "$SHARED/ranks"`, "--num-jobs", "5"))
	for _, id := range ids {
		f.await(id, "SUCCEEDED")
	}
	got := f.read("ranks")
	slices.Sort(got)
	if want := []string{"0/5", "1/5", "2/5", "3/5", "4/5"}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

// Ensure that a job sees neither the environment of its worker nor that of another job, and that values arrive as they
// were written, whatever is in them.
//
// skypilot #9248, #9665, #10154: the environment of the controller, or of another job, leaked into jobs.
func TestSmokeEnvironment(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env = append(f.env, "OUTLAST_HTTP_TOKEN=t0ken-of-the-worker", "STRAY=of-the-worker")
	f.worker()
	values := []string{"", " ", "a b", `"'$HOME` + "`id`", "$(touch " + f.shared + "/run)", "two\nlines\n", "\ttab", "é ☃ \u202e", "\x1b[31m", `\n`, "=", "#", "-n", "%s"}
	flags := []string{}
	for i, v := range values {
		flags = append(flags, "--env", fmt.Sprintf("V%d=%s", i, v))
	}
	one := f.launch(`env -0 > "$SHARED/one"`, flags...)
	two := f.launch(`env -0 > "$SHARED/two"`, "--env", "MINE=2")
	f.await(one, "SUCCEEDED")
	f.await(two, "SUCCEEDED")
	for name, want := range map[string]bool{"one": true, "two": false} {
		text, err := os.ReadFile(filepath.Join(f.shared, name))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(string(text), "\x00")
		for i, v := range values {
			if slices.Contains(got, fmt.Sprintf("V%d=%s", i, v)) != want {
				t.Errorf("job %s has V%d=%q: %v, want %v", name, i, v, !want, want)
			}
		}
		for _, stray := range []string{"t0ken-of-the-worker", "of-the-worker", "OUTLAST_REDIS", "OUTLAST_IDENTITY"} {
			if strings.Contains(string(text), stray) {
				t.Errorf("job %s sees %s", name, stray)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(f.shared, "run")); err == nil {
		t.Error("a value was run as a command")
	}
	for _, bad := range []string{"A B=1", "1A=1", "A-B=1", "=1", "A\x1b=1", "OUTLAST_JOB_ID=1"} {
		if r := f.enqueue("launch", "-d", "--env", bad, "--", "true"); r.code != 2 {
			t.Errorf("--env %q: %+v", bad, r)
		}
	}
}

// Ensure the exit codes that scripts rely on: of a job that is followed, waited for, or whose log is read.
//
// skypilot #955: exit code 255 of the code was taken for a lost connection.
func TestSmokeExitCodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	for script, want := range map[string]int{"exit 0": 0, "exit 1": 100, "exit 255": 100, "kill -9 $$": 100} {
		r := f.enqueue("launch", "--", "bash", "-c", script)
		if r.code != want {
			t.Errorf("launch of %q: %+v, want %d", script, r, want)
		}
	}
	long := f.launch(waits)
	f.trace("runs")
	for _, c := range []struct {
		want int
		args []string
	}{
		{101, []string{"wait", long, "--timeout", "10ms"}}, {101, []string{"logs", long}}, {102, []string{"wait", "999"}},
		{102, []string{"logs", "999"}}, {2, []string{"wait", "x"}}, {2, []string{"wait"}},
	} {
		if r := f.enqueue(c.args...); r.code != c.want {
			t.Errorf("%v: %+v, want %d", c.args, r, c.want)
		}
	}
	f.leave("go")
	if r := f.enqueue("wait", long); r.code != 0 {
		t.Errorf("wait: %+v", r)
	}
	if r := f.enqueue("logs", long, "--tail", "1"); r.out != "through\n" || r.code != 0 {
		t.Errorf("logs --tail 1: %+v", r)
	}
}

// Ensure that the first task of a chain runs while the others are PENDING, that a cancel ends all of them, and that what
// the first has printed can be read afterwards.
func TestSmokeChainIsCancelled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	id := f.file(chain([2]string{"true", "echo hello; " + waits}, [2]string{"true", "true"}, [2]string{"true", "true"}, [2]string{"true", "true"}))
	f.trace("runs")
	if a := f.await(id, "RUNNING"); a.statuses() != "RUNNING PENDING PENDING PENDING" {
		t.Errorf("the tasks are %s", a.statuses())
	}
	if r := f.enqueue("cancel", id); r.code != 0 {
		t.Fatalf("cancel: %+v", r)
	}
	if a := f.await(id, "CANCELLED"); a.statuses() != "CANCELLED CANCELLED CANCELLED CANCELLED" {
		t.Errorf("the tasks are %s", a.statuses())
	}
	for _, args := range [][]string{{id}, {id, "0"}, {id, "t0"}} {
		if r := f.enqueue(append([]string{"logs"}, args...)...); r.out != "hello\n" {
			t.Errorf("logs %v: %+v", args, r)
		}
	}
	f.nothingRuns()
}

// Ensure that a failing setup is told from a failing run, and stops a chain where it stands.
func TestSmokeSetupFails(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	id := f.file(chain([2]string{"true", "true"}, [2]string{"echo in setup; exit 7", "touch $SHARED/ran"}, [2]string{"true", "touch $SHARED/ran"}, [2]string{"true", "touch $SHARED/ran"}))
	a := f.await(id, "FAILED_SETUP")
	if a.statuses() != "SUCCEEDED FAILED_SETUP CANCELLED CANCELLED" || a.Tasks[1].Cause.Code != "setup_exit" || !strings.Contains(a.Tasks[1].Cause.Text, "7") {
		t.Errorf("the tasks are %+v", a.Tasks)
	}
	if r := f.enqueue("logs", id); !strings.Contains(r.out, "in setup\n") {
		t.Errorf("the log: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(f.shared, "ran")); err == nil {
		t.Error("code ran after a setup that failed")
	}
}

// Ensure that a task in the middle of a chain whose machine is lost, and then its worker, goes on as the same task: with
// the same SKYPILOT_TASK_ID, while the tasks before it are not run again.
func TestSmokeChainRecovers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	first := f.worker()
	id := f.file(chain(
		[2]string{"true", `echo "$SKYPILOT_TASK_ID" >> "$SHARED/ids.0"`},
		[2]string{"true", `echo "$SKYPILOT_TASK_ID" >> "$SHARED/ids.1"; touch "$SHARED/try.$OUTLAST_ATTEMPT"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`},
		[2]string{"true", `echo "$SKYPILOT_TASK_ID" >> "$SHARED/ids.2"`},
	))
	f.trace("try.1")
	f.await(id, "RUNNING")
	if r := f.enqueue("preempt", id); r.code != 0 {
		t.Fatalf("preempt: %+v", r)
	}
	f.trace("try.2")
	first.kill9()
	f.worker()
	f.leave("go")
	a := f.await(id, "SUCCEEDED")
	if a.Tasks[0].Attempts != 1 || a.Tasks[1].Attempts != 2 || a.Tasks[1].Recoveries != 1 || a.Tasks[2].Attempts != 1 {
		t.Errorf("attempts: %+v", a.Tasks)
	}
	ids := []string{}
	for i, n := range []int{1, 2, 1} {
		got := f.read(fmt.Sprintf("ids.%d", i))
		if len(got) != n || slices.ContainsFunc(got, func(id string) bool { return id != got[0] }) {
			t.Errorf("task %d ran as %v, want %d times the same", i, got, n)
		}
		ids = append(ids, got[0])
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
		t.Errorf("tasks share an id: %v", ids)
	}
	f.nothingRuns()
}

// Ensure that a cancel leaves no machine, whether it comes while the machine boots, in setup, or while a lost machine is
// being replaced.
func TestSmokeCancelLeavesNoMachine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zones string
		setup, run  string
		ready       func(f *fleet, id string)
	}{
		{"while it boots", "[{name: a, boot: 1h}]", "true", "true", func(f *fleet, id string) {
			f.eventually("the machine to boot", func() bool { _, text := f.show(id); return strings.Contains(text, `"booting"`) })
		}},
		{"in setup", "[{name: a}]", `touch "$SHARED/setup"; sleep 1000`, "true", func(f *fleet, _ string) { f.trace("setup") }},
		{"while it recovers", "[{name: a, capacity: 1}]", "true", waits, func(f *fleet, id string) {
			f.trace("runs")
			f.await(id, "RUNNING")
			other := f.launch("sleep 1000", "-n", "other") // takes the only place as soon as it is free
			if r := f.enqueue("preempt", id); r.code != 0 {
				f.t.Fatalf("preempt: %+v", r)
			}
			f.eventually("one of the two to run on", func() bool {
				a, _ := f.show(id)
				o, _ := f.show(other)
				return a.Status == "RECOVERING" || o.Status == "RUNNING" || a.Tasks[0].Recoveries > 0
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			path := filepath.Join(f.home, "config.yaml")
			if err := os.WriteFile(path, []byte("local:\n  zones: "+tt.zones+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			f.worker("--config", path)
			id := f.file(chain([2]string{tt.setup, tt.run}))
			tt.ready(f, id)
			if r := f.enqueue("cancel", "--all"); r.code != 0 {
				t.Fatalf("cancel: %+v", r)
			}
			f.await(id, "CANCELLED")
			f.nothingRuns()
		})
	}
}

// Ensure that code which fails is tried again as its job says, that the output of every try can be read, that tasks behind
// it do not run, and that chosen exit codes are not counted.
func TestSmokeRetries(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	task := func(recovery, run string) string {
		return fmt.Sprintf("name: retries\n---\nname: a\nresources: {job_recovery: %s}\nenvs: {SHARED: null}\nrun: |\n  %s\n---\nname: b\nenvs: {SHARED: null}\nrun: touch $SHARED/b.$OUTLAST_JOB_ID\n", recovery, run)
	}
	fails := f.file(task("{max_restarts_on_errors: 1}", `echo "try $OUTLAST_ATTEMPT"; exit 3`))
	chosen := f.file(task("{max_restarts_on_errors: 0, recover_on_exit_codes: [33]}", `echo "try $OUTLAST_ATTEMPT"; [ "$OUTLAST_ATTEMPT" = 2 ] || exit 33`))
	a := f.await(fails, "FAILED")
	if a.statuses() != "FAILED CANCELLED" || a.Tasks[0].Attempts != 2 {
		t.Errorf("the tasks are %+v", a.Tasks)
	}
	if r := f.enqueue("logs", fails); !strings.Contains(r.out, "try 1\n") || !strings.Contains(r.out, "try 2\n") {
		t.Errorf("the log: %+v", r)
	}
	for id, code := range map[string]string{fails: "3", chosen: "33"} {
		told := fmt.Sprintf("RECOVERING.*exit code %s\\b", code)
		f.eventually("the reason of the recovery to be told", func() bool { return regexp.MustCompile(told).MatchString(f.enqueue("events", id).out) },
			func() string { return f.enqueue("events", id).out })
	}
	if _, err := os.Stat(filepath.Join(f.shared, "b."+fails)); err == nil {
		t.Error("the task behind the one that failed has run")
	}
	if a := f.await(chosen, "SUCCEEDED"); a.Tasks[0].Recoveries == 0 {
		t.Errorf("no recovery is counted: %+v", a.Tasks)
	}
}

// Ensure that what no machine can ever serve is refused before anything is stored. That it is FAILED_PRECHECKS where the offers
// are not known yet shows TestPlanByARealWorker.
func TestSmokePrechecks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	path := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte("name: big\nresources: {cpus: 4000}\nrun: 'true'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.eventually("the offers to be told", func() bool { return strings.Contains(f.enqueue("plan", "--", "true").out, "local/a") })
	r := f.enqueue("launch", path)
	if r.code != 2 || !strings.Contains(r.errs, "8 CPUs, 4000 wanted") {
		t.Errorf("launch: %+v", r)
	}
	if r := f.enqueue("queue", "-a"); !strings.Contains(r.out, "no jobs") {
		t.Errorf("something was stored: %+v", r)
	}
}

// Ensure that the metrics count what jobs went through, with its cause, and how many there are in each status.
func TestSmokeMetrics(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.worker()
	lost := f.launch(waits)
	f.trace("runs")
	f.await(lost, "RUNNING")
	if r := f.enqueue("preempt", lost); r.code != 0 {
		t.Fatalf("preempt: %+v", r)
	}
	f.eventually("a recovery", func() bool { a, _ := f.show(lost); return a.Tasks[0].Recoveries == 1 })
	f.leave("go")
	f.await(lost, "SUCCEEDED")
	f.await(f.launch("exit 1"), "FAILED")
	_, body := w.get("/metrics")
	for _, line := range []string{
		`outlast_transitions_total{cause="preempted",to="RECOVERING"} 1`, `outlast_transitions_total{cause="user_exit",to="FAILED"} 1`,
		`outlast_jobs{status="SUCCEEDED"} 1`, `outlast_jobs{status="FAILED"} 1`, `outlast_jobs{status="RUNNING"} 0`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("/metrics has no line %s:\n%s", line, body)
		}
	}
}

// Ensure that a worker which is killed while a job starts or runs does no harm, when another one comes.
func TestSmokeWorkerKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	first := f.worker()
	running := f.launch(waits)
	f.trace("runs")
	starting := f.launch(`touch "$SHARED/second"`)
	first.kill9()
	f.worker()
	f.await(starting, "SUCCEEDED")
	f.leave("go")
	if a := f.await(running, "SUCCEEDED"); a.Tasks[0].Attempts != 1 {
		t.Errorf("the running job was started again: %+v", a)
	}
	f.nothingRuns()
}

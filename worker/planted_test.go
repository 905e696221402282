package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that a secret is found nowhere but in the environment of the user's code, through every way that a job can go:
// success, failure, a failing setup, a machine that is lost, a cancel, a start that is refused, and code that prints it. It
// is looked for in plain, in hex and in base64, in Redis and the file of all that it was ever told, in every file of the
// worker, its log at the level debug, every page, every output of every command, and the arguments and environments of all
// processes (G12).
func TestG12_PlantedSecretIsNowhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	told := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- fmt.Sprint(r.Header) + string(body)
	}))
	t.Cleanup(receiver.Close)
	h := newHunt(f, "HOOK="+receiver.URL+"/"+core, "DEAF=http://"+core+"@127.0.0.1:1/"+core)
	workers := []*process{f.worker("--worker", "one", "--webhooks-private"), f.worker("--worker", "two", "--webhooks-private")}
	file := filepath.Join(t.TempDir(), "job.yaml")
	submit := func(value, setup, run string) result {
		hooks := "webhooks: [{url_secret: HOOK, sign_with: TOKEN}, {url_secret: DEAF}]\nevent_callback: |\n  env; touch \"$SHARED/called\"; exit 1\n"
		text := hooks + fmt.Sprintf("name: %s\nenvs: {SHARED: %q, SHOWN: %s}\nsecrets: {TOKEN: %s, HOOK: null, DEAF: null}\nworkdir: work\nsetup: |\n  %s\nrun: |\n  %s\n", counterpart, f.shared, counterpart, value, setup, run)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		plain := f.env
		f.env = append(append([]string{"CLIENT=1"}, h.secrets...), plain...)
		defer func() { f.env = plain }()
		args := []string{"launch", "-d", file, "--secret", "HOOK", "--secret", "DEAF"}
		if value == "null" {
			args = append(args, "--secret", "TOKEN")
		}
		r := f.enqueue(args...)
		h.in("the output of enqueue launch", r.out+r.errs)
		return r
	}
	job := func(setup, run string) string {
		r := submit("null", setup, run)
		if r.code != 0 {
			t.Fatalf("launch: %+v", r)
		}
		return strings.TrimSpace(r.out)
	}
	work := filepath.Join(filepath.Dir(file), "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "a"), []byte(strings.Repeat(counterpart, 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	has := fmt.Sprintf(`[ "$(printf %%s "$TOKEN" | wc -c)" = %d ]`, len(planted))
	hold := `touch "$SHARED/$1"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`
	held := func(name string) string { return "set -- " + name + "; " + hold }

	if r := submit(strings.Repeat(core, 10_000), "true", "true"); r.code != 2 { // no process could have that in its environment
		t.Errorf("a secret that is too long: %+v", r)
	}
	good := job(has, has+" && "+held("good"))
	fails := job("true", held("fails")+"; "+has+" && exit 3")
	badSetup := job("exit 4", "true")
	lost := job("true", has+" && "+held("lost"))
	cancelled := job("true", held("cancelled"))
	prints := job("true", `echo "<$TOKEN> $SHOWN"; echo "$TOKEN" >&2; env | grep TOKEN; `+held("prints"))
	jobs := []string{good, fails, badSetup, lost, cancelled, prints}
	for _, name := range []string{"good", "fails", "lost", "cancelled", "prints"} {
		f.trace(name)
	}

	h.everywhere(workers, jobs, file, false)
	if r := f.enqueue("preempt", lost); r.code != 0 {
		t.Errorf("preempt: %+v", r)
	}
	if r := f.enqueue("cancel", cancelled); r.code != 0 {
		t.Errorf("cancel: %+v", r)
	}
	f.eventually("the job to have lost its machine", func() bool { a, _ := f.show(lost); return a.Tasks[0].Recoveries == 1 })
	workers[0].kill9() // another worker opens the secrets again
	f.leave("go")
	for id, status := range map[string]string{good: "SUCCEEDED", fails: "FAILED", badSetup: "FAILED_SETUP", lost: "SUCCEEDED", cancelled: "CANCELLED", prints: "SUCCEEDED"} {
		f.await(id, status)
	}
	workers[0] = f.worker("--worker", "three")
	h.everywhere(workers, jobs, file, true)
	f.eventually("all machines to have ended", func() bool {
		return !strings.Contains(f.enqueue("machines", "-o", "json").out, `"running"`)
	})
	f.trace("called")
	var history string
	f.eventually("the receiver that is not there to be told of", func() bool {
		history = f.enqueue("events", good, "-o", "json").out
		return strings.Contains(history, "not_told")
	}, func() string { return history })
	h.in("the history", history)
	h.in("a webhook", <-told) // which has told of the submission at least
	for len(told) > 0 {
		h.in("a webhook", <-told)
	}
	for _, w := range workers {
		w.term()
		h.in("the log of a worker", w.log.String())
	}
	h.keyspace()
	h.files(f.home)
	h.looked("the key ", h.redis.Dir(), filepath.Join(f.home, "archive"), "(unpacked)", "enqueue [logs", "enqueue [show", "/environ")
}

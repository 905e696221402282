package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// word is the password of the Redis servers of lanes. Nothing may show it.
const word = "w0rd-of-redis"

// lane is a whole deployment on some kind of Redis: what every kind must carry, with the real programs. Jobs are
// submitted, run, lose their machine and their worker, are cancelled, resumed, listed, read and moved to the archive, and the
// page answers. hurt, which may be nil, is done to Redis while all of them run. At the end a planted secret is looked for
// everywhere, and so is the password of Redis (G12).
func (f *fleet) lane(hurt func(), args ...string) {
	f.t.Helper()
	h := newHunt(f)
	first := f.worker(append(args, "--worker", "first", "--retention-jobs", "1s")...)
	second := f.worker(append(args, "--worker", "second", "--retention-jobs", "1s")...)
	workers := []*process{first, second}
	for _, w := range workers {
		if w.ended() {
			f.t.Fatal("the worker does not serve")
		}
	}
	file := filepath.Join(f.t.TempDir(), "job.yaml")
	job := func(name, run string) string {
		text := fmt.Sprintf("name: %s-"+counterpart+"\nenvs: {SHARED: %q, SHOWN: %s}\nsecrets: {TOKEN: null}\nrun: |\n  %s\n", name, f.shared, counterpart, run)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
		plain := f.env
		f.env = append([]string{"CLIENT=1", "TOKEN=" + planted}, plain...)
		defer func() { f.env = plain }()
		r := f.enqueue("launch", "-d", file, "--secret", "TOKEN")
		if r.code != 0 {
			f.t.Fatalf("launch: %+v", r)
		}
		return strings.TrimSpace(r.out)
	}
	held := func(name string) string {
		return fmt.Sprintf(`touch "$SHARED/%s"; echo "%s $SHOWN $TOKEN"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done; echo through`, name, name)
	}
	stays, moves, ends := job("stays", held("stays")), job("moves", held("moves")), job("ends", held("ends"))
	jobs := []string{stays, moves, ends}
	for _, name := range []string{"stays", "moves", "ends"} {
		f.trace(name)
	}
	for _, id := range jobs {
		f.await(id, "RUNNING")
	}
	if hurt != nil {
		hurt()
	}
	f.insist("preempt", moves)
	f.insist("cancel", ends)
	f.await(ends, "CANCELLED")
	f.eventually("the job to have lost its machine", func() bool { a, _ := f.show(moves); return len(a.Tasks) > 0 && a.Tasks[0].Recoveries == 1 })
	h.everywhere(workers, jobs, file, false)
	first.kill9()
	workers[0] = f.worker(append(args, "--worker", "third", "--retention-jobs", "1s")...)
	again := f.launch(held("again"), "-n", "again")
	f.leave("go")
	for _, id := range []string{stays, moves, again} {
		f.await(id, "SUCCEEDED")
	}
	if a, text := f.show(stays); a.Tasks[0].Attempts != 1 || a.Tasks[0].Recoveries != 0 {
		f.t.Errorf("the job did not stay on its machine: %s", text)
	}
	f.eventually("the log", func() bool { return strings.Contains(f.enqueue("logs", moves).out, "through\n") })
	f.nothingRuns()
	for _, path := range []string{"/", "/machines", "/jobs/" + stays, "/readyz", "/healthz", "/metrics", "/queues/", "/queues/api/queues", "/api/v1/jobs"} {
		var said string
		f.eventually(path+" to answer", func() bool {
			code, body := workers[1].get(path)
			said = fmt.Sprint(code, body)
			return code == 200
		}, func() string { return said })
	}
	f.eventually("the job to be in the archive", func() bool {
		_, err := os.Stat(filepath.Join(f.home, "archive"))
		return err == nil && strings.Contains(f.enqueue("resume", stays).errs, "archive")
	}, func() string { return fmt.Sprint(f.enqueue("resume", stays)) })
	h.everywhere(workers, jobs, file, true)
	for _, w := range append(workers, first) {
		if !w.ended() {
			w.term()
		}
		if strings.Contains(w.log.String(), word) || strings.Contains(w.log.String(), redistest.SentinelPassword) {
			f.t.Errorf("a worker's log has a password of Redis:\n%s", w.log)
		}
	}
	h.keyspace()
	h.files(f.home)
	h.looked("the key ", filepath.Join(f.home, "archive"), "enqueue [logs", "enqueue [show", "/environ")
}

// insist runs a command of the client that must succeed, sooner or later: Redis may be on its way back.
func (f *fleet) insist(args ...string) {
	f.t.Helper()
	var r result
	f.eventually(fmt.Sprintf("enqueue %v", args), func() bool { r = f.enqueue(args...); return r.code == 0 }, func() string { return fmt.Sprintf("%+v", r) })
}

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// core is the middle of the planted secret. Whatever is made of the value by quoting for JSON, URLs, HTML or a shell, its
// core stays as it is.
const core = "pl4ntedSecretC0re"

// planted has around the core what each of these would quote.
const planted = `a"<&'\ ` + core + ` é/+%`

// needles are the core in every form that is looked for: as it is, in hex, and in base64 wherever in a longer text it begins.
func needles() [][]byte {
	all := [][]byte{
		[]byte(core), []byte(hex.EncodeToString([]byte(core))), []byte(strings.ToUpper(hex.EncodeToString([]byte(core)))),
	}
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(bytes.Repeat([]byte("x"), shift), core...))
		all = append(all, []byte(coded[(shift*8+5)/6:len(coded)-2])) // without the characters that neighbours have a part in
	}
	return all
}

// hunt looks for the planted secret.
type hunt struct {
	*fleet
	forms   [][]byte
	secrets []string // as the user's code has them
	places  int
	shown   []string // where the counterpart was found that is no secret: proof that the hunt looks there
}

// counterpart is printed by a job, and stands among its envs.
const counterpart = "c0unterpartOfTheSecret"

// in reports the secret if a text holds it.
func (h *hunt) in(where, text string) {
	h.t.Helper()
	h.places++
	if strings.Contains(text, counterpart) {
		h.shown = append(h.shown, where)
	}
	for _, form := range h.forms {
		if at := strings.Index(text, string(form)); at >= 0 {
			h.t.Errorf("the secret is in %s: ...%q...", where, text[max(0, at-60):min(len(text), at+60)])
			return
		}
	}
}

// processes looks at the arguments of every process, and at the environment of those that are not the user's code.
func (h *hunt) processes() {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, dir := range dirs {
		if args, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
			h.in(dir+"/cmdline", string(args))
		}
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		users := bytes.Contains(env, []byte("OUTLAST_ATTEMPT=")) && !bytes.Contains(env, []byte("OUTLAST_EVENT=")) // a callback gets none
		client := bytes.HasPrefix(env, []byte("CLIENT=1"))                                                         // the user's own `enqueue launch`
		switch {
		case err != nil || client:
		case users:
			for _, own := range h.secrets { // there they may be, and nowhere else in it
				env = bytes.ReplaceAll(env, []byte(own), nil)
			}
			fallthrough
		default:
			h.in(dir+"/environ", string(env))
		}
	}
}

// keyspace looks at every value in Redis, of whatever type, and at the file of all that was ever written.
func (h *hunt) keyspace() {
	ctx := context.Background()
	for it := h.admin.Scan(ctx, 0, "*", 1000).Iterator(); it.Next(ctx); {
		key := it.Val()
		var value any
		switch kind := h.admin.Type(ctx, key).Val(); kind {
		case "string":
			value = h.admin.Get(ctx, key).Val()
		case "hash":
			value = h.admin.HGetAll(ctx, key).Val()
		case "list":
			value = h.admin.LRange(ctx, key, 0, -1).Val()
		case "set":
			value = h.admin.SMembers(ctx, key).Val()
		case "zset":
			value = h.admin.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "stream":
			value = h.admin.XRange(ctx, key, "-", "+").Val()
		case "none": // it has gone since
		default:
			h.t.Errorf("%s is a %s, which nobody looks into", key, kind)
		}
		h.in("the key "+key, key+fmt.Sprint(value))
	}
	h.files(h.redis.Dir())
}

// files looks into every file below a directory, also into those that are packed.
func (h *hunt) files(dir string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // it has gone since
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		h.in(path, string(text))
		if plain := unpacked(text); plain != nil {
			h.in(path+" (unpacked)", string(plain))
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// unpacked is the content of a file that is packed with gzip or zstd; nil for any other.
func unpacked(text []byte) []byte {
	var r io.Reader
	switch {
	case bytes.HasPrefix(text, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil
		}
		r = z
	case bytes.HasPrefix(text, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	default:
		return nil
	}
	plain, _ := io.ReadAll(r) // what can be read of it
	return plain
}

// pages crawls what a worker serves: from the first page on whatever it links to, and what only programs ask for.
func (h *hunt) pages(w *process, jobs []string) {
	link := regexp.MustCompile(`(?:href|src|action|hx-get|sse-connect)="([^"]+)"`)
	todo := []string{"/", "/metrics", "/readyz", "/healthz", "/queues/", "/queues/api/queues", "/queues/api/servers", "/queues/api/redis_info",
		"/queues/api/queue_stats", "/jobs", "/machines", "/workers", "/api/jobs", "/api/v1/jobs"}
	for _, queue := range []string{"watch", "control", "launch", "fleet"} {
		for _, state := range []string{"active", "pending", "scheduled", "retry", "archived", "completed"} {
			todo = append(todo, "/queues/api/queues/"+queue+"/"+state+"_tasks")
		}
	}
	for _, id := range jobs {
		todo = append(todo, "/jobs/"+id, "/jobs/"+id+"/log", "/jobs/"+id+"/logs", "/api/jobs/"+id, "/api/v1/jobs/"+id)
	}
	seen := map[string]bool{}
	for len(todo) > 0 && len(seen) < 500 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		ctx, done := context.WithCancel(h.t.Context())
		body := h.page(ctx, w.url+path)
		done()
		h.in("the page "+path, body)
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if strings.HasPrefix(m[1], "/") && !strings.HasPrefix(m[1], "//") {
				todo = append(todo, strings.ReplaceAll(m[1], "&amp;", "&"))
			}
		}
	}
}

// page is what is answered, at most its first megabyte, headers included. A stream is read up to its first pause.
func (h *hunt) page(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	head := fmt.Sprint(resp.Header)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		first := make([]byte, 64<<10)
		n, _ := resp.Body.Read(first)
		return head + string(first[:n])
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return head + string(body)
}

// commands runs every command of the client in every form of output.
func (h *hunt) commands(jobs []string, file string, ended bool) {
	known := map[string][][]string{
		"cancel": {{"cancel", "999"}}, "events": nil, "launch": nil, "logs": nil, "preempt": {{"preempt", "999"}}, "queue": {{"queue"}, {"queue", "-a"}},
		"resume": {{"resume", "999"}}, "show": nil, "wait": nil, "dashboard": nil, "machines": {{"machines"}}, "workers": {{"workers"}},
		"completion": {{"completion", "bash"}}, "config": {{"config", "view"}}, "help": {{"help"}}, "version": {{"version"}},
		"check": {{"check", file}}, "plan": {{"plan", file}}, "schema": {{"schema"}}, "account": nil, "doctor": {{"doctor"}},
	}
	for _, id := range jobs {
		known["show"] = append(known["show"], []string{"show", id})
		known["events"] = append(known["events"], []string{"events", id})
		if ended {
			known["wait"] = append(known["wait"], []string{"wait", id})
		}
		known["logs"] = append(known["logs"], []string{"logs", id}, []string{"logs", id, "--controller"})
	}
	help := h.enqueue("help").out
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(help, -1) {
		calls, there := known[m[1]]
		if !there {
			h.t.Errorf("enqueue %s: nobody looks at what it prints", m[1])
		}
		for _, call := range calls {
			for _, form := range []string{"table", "wide", "json", "yaml"} {
				r := h.enqueue(append(slices.Clone(call), "-o", form)...)
				h.in(fmt.Sprintf("the output of enqueue %v -o %s", call, form), r.out+r.errs)
			}
		}
	}
}

// Ensure that a secret is found nowhere but in the environment of the user's code, through every way that a job can go:
// success, failure, a failing setup, a machine that is lost, a cancel, a start that is refused, and code that prints it. It
// is looked for in plain, in hex and in base64, in Redis and the file of all that it was ever told, in every file of the
// worker, its log at the level debug, every page, every output of every command, and the arguments and environments of all
// processes (G12).
func TestG12_PlantedSecretIsNowhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	h := &hunt{fleet: f, forms: needles()}
	told := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- fmt.Sprint(r.Header) + string(body)
	}))
	t.Cleanup(receiver.Close)
	h.secrets = []string{"TOKEN=" + planted, "HOOK=" + receiver.URL + "/" + core, "DEAF=http://" + core + "@127.0.0.1:1/" + core}
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

	look := func(ended bool) {
		t.Helper()
		h.processes()
		h.keyspace()
		for _, w := range workers {
			h.pages(w, jobs)
			h.in("the log of a worker", w.log.String())
		}
		h.commands(jobs, file, ended)
		h.files(filepath.Join(f.home, "archive"))
	}
	look(false)
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
	look(true)
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
	for _, part := range []string{"the key ", h.redis.Dir(), filepath.Join(f.home, "archive"), "(unpacked)", "enqueue [logs", "enqueue [show", "/environ"} {
		if !slices.ContainsFunc(h.shown, func(where string) bool { return strings.Contains(where, part) }) {
			t.Errorf("the hunt does not look at %q: what is no secret was not found there either, but in %q", part, h.shown)
		}
	}
}

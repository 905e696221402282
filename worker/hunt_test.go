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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"
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
		client := bytes.Contains(env, []byte("CLIENT=1\x00"))                                                      // the user's own `enqueue launch`
		others := users && !bytes.Contains(env, []byte(h.shared))                                                  // code of another test's user
		switch {
		case err != nil || client || others:
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

// newHunt begins a hunt for what the user's code has as TOKEN, and in further variables.
func newHunt(f *fleet, more ...string) *hunt {
	return &hunt{fleet: f, forms: needles(), secrets: append([]string{"TOKEN=" + planted}, more...)}
}

// everywhere looks wherever the secret could be: in processes, Redis, pages, logs, outputs and files. ended says that all
// jobs have.
func (h *hunt) everywhere(workers []*process, jobs []string, file string, ended bool) {
	h.t.Helper()
	h.processes()
	h.keyspace()
	for _, w := range workers {
		if !w.ended() {
			h.pages(w, jobs)
		}
		h.in("the log of a worker", w.log.String())
	}
	h.commands(jobs, file, ended)
	h.files(filepath.Join(h.home, "archive"))
}

// looked reports the places that the hunt did not look at: what is no secret was not found there either.
func (h *hunt) looked(parts ...string) {
	h.t.Helper()
	for _, part := range parts {
		if !slices.ContainsFunc(h.shown, func(where string) bool { return strings.Contains(where, part) }) {
			h.t.Errorf("the hunt does not look at %q: what is no secret was not found there either, but in %q", part, h.shown)
		}
	}
}

// keyspace looks at every value in every Redis, of whatever type, and at the file of all that was ever written.
func (h *hunt) keyspace() {
	for _, s := range h.servers {
		if s.Running() {
			h.keysOf(s.Client(h.t))
		}
		h.files(s.Dir())
	}
}

// keysOf looks at every value in one server.
func (h *hunt) keysOf(rdb *redis.Client) {
	ctx := context.Background()
	for it := rdb.Scan(ctx, 0, "*", 1000).Iterator(); it.Next(ctx); {
		key := it.Val()
		var value any
		switch kind := rdb.Type(ctx, key).Val(); kind {
		case "string":
			value = rdb.Get(ctx, key).Val()
		case "hash":
			value = rdb.HGetAll(ctx, key).Val()
		case "list":
			value = rdb.LRange(ctx, key, 0, -1).Val()
		case "set":
			value = rdb.SMembers(ctx, key).Val()
		case "zset":
			value = rdb.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "stream":
			value = rdb.XRange(ctx, key, "-", "+").Val()
		case "none": // it has gone since
		default:
			h.t.Errorf("%s is a %s, which nobody looks into", key, kind)
		}
		h.in("the key "+key, key+fmt.Sprint(value))
	}
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

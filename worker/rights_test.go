package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// rightsInDocs are the users in docs/redis.md, each with its rights as the line for ACL SETUSER has them.
func rightsInDocs(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	users := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^ACL SETUSER (\S+) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		users[m[1]] = strings.Fields(strings.ReplaceAll(m[2], ">PASSWORD", ">"+word))
	}
	if len(users) != 3 {
		t.Fatalf("docs/redis.md has the users %v, want three", users)
	}
	return users
}

// rightsFleet is a fleet whose workers and clients are the users of the docs.
func rightsFleet(t *testing.T, users map[string][]string) *fleet {
	t.Helper()
	s := redistest.Start(t, redistest.TCP())
	f := newFleetOn(t, "redis://outlast-worker:"+word+"@"+s.Address(), s)
	f.client = strings.Replace(s.URL(), "unix://", "unix://outlast-client:"+word+"@", 1)
	f.grant(users)
	return f
}

func (f *fleet) grant(users map[string][]string) {
	f.t.Helper()
	for name, rights := range users {
		if err := f.admin.ACLSetUser(f.t.Context(), name, append([]string{"reset"}, rights...)...).Err(); err != nil {
			f.t.Fatalf("ACL SETUSER %s: %v", name, err)
		}
	}
}

// addRights lets workers and clients of a fleet be the users of the docs, on every server, with the line of the docs that has a
// certain right in it.
func (f *fleet) addRights(with string) {
	f.t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		f.t.Fatal(err)
	}
	more := regexp.MustCompile("`([^`]*" + regexp.QuoteMeta(with) + "[^`]*)`").FindSubmatch(text)
	if more == nil {
		f.t.Fatalf("docs/redis.md adds no %s", with)
	}
	for name, rights := range rightsInDocs(f.t) {
		rights = append([]string{"reset"}, append(rights, strings.Fields(string(more[1]))...)...)
		for _, s := range f.servers {
			if err := s.Client(f.t).ACLSetUser(f.t.Context(), name, rights...).Err(); err != nil {
				f.t.Fatalf("ACL SETUSER %s: %v", name, err)
			}
		}
	}
	f.client = strings.Replace(f.url, "://:", "://outlast-client:", 1)
	f.url = strings.Replace(f.url, "://:", "://outlast-worker:", 1)
}

// spy writes down which commands the worker and the client run, as a server is told by MONITOR. The worker comes over TCP and
// the client over the socket.
type spy struct {
	mu   sync.Mutex
	used map[string]map[string]bool
}

func (f *fleet) spy() *spy {
	f.t.Helper()
	conn, err := net.Dial("unix", f.redis.Options().Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		f.t.Fatal(err)
	}
	s := &spy{used: map[string]map[string]bool{"outlast-worker": {}, "outlast-client": {}}}
	line := regexp.MustCompile(`^\+[\d.]+ \[0 (\S+)\] "([^"]+)"(?: "([a-zA-Z]+)")?`)
	go func() {
		who := ""
		in := bufio.NewReaderSize(conn, 1<<20)
		for {
			text, err := in.ReadString('\n')
			if err != nil {
				return
			}
			m := line.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			switch {
			case strings.HasPrefix(m[1], "unix:"):
				who = "outlast-client"
			case m[1] != "lua":
				who = "outlast-worker"
			}
			name := strings.ToLower(m[2])
			if name == "memory" || name == "client" || name == "script" || name == "cluster" {
				name += "|" + strings.ToLower(m[3])
			}
			s.mu.Lock()
			s.used[who][name] = true
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *spy) commands(who string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.used[who] {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Ensure that a whole deployment needs no right but those that the docs list, with exactly those: Redis has nothing to
// complain of at the end.
func TestLaneRights(t *testing.T) {
	t.Parallel()
	users := rightsInDocs(t)
	f := rightsFleet(t, users)
	seen := f.spy()
	f.lane(nil)
	denied, err := f.admin.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil || len(denied) > 0 {
		t.Errorf("Redis has refused: %v, %v", denied, err)
	}
	known := staticCommands(t)
	for _, who := range []string{"outlast-worker", "outlast-client"} {
		used := seen.commands(who)
		for _, right := range users[who] {
			c, command := strings.CutPrefix(right, "+")
			if command && !slices.Contains(used, c) && !slices.Contains(known[who], c) {
				t.Errorf("%s has the right %s, and neither runs it nor has a script with it", who, right)
			}
		}
	}
}

// staticCommands are those that a deployment runs in rare moments only: they stand in scripts, or are for settings that this
// test has not.
func staticCommands(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{"outlast-worker": {"select", "wait", "pexpire", "zmscore"}, "outlast-client": {"select", "wait", "info"}}
	call := regexp.MustCompile(`redis\.p?call\(['"](\w+)['"]`)
	read := func(who string, paths []string) {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				out[who] = append(out[who], strings.ToLower(m[1]))
			}
		}
	}
	ours, err := filepath.Glob("../internal/store/lua/*.lua")
	if err != nil || len(ours) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	read("outlast-worker", ours)
	for _, name := range []string{"submit", "news", "cancel_where", "wake", "index", "resume", "find", "admit", "tail_read"} {
		read("outlast-client", []string{"../internal/store/lua/" + name + ".lua"})
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/hibiken/asynq").Output()
	if err != nil {
		t.Fatal(err)
	}
	rdb := filepath.Join(strings.TrimSpace(string(dir)), "internal", "rdb")
	read("outlast-worker", []string{filepath.Join(rdb, "rdb.go"), filepath.Join(rdb, "inspect.go")})
	return out
}

// Ensure that a user who may only look can look, and that a client's and a worker's user to whom one right of the docs is
// denied are told which, with the line in which to find it.
func TestOneRightLessIsNamed(t *testing.T) {
	t.Parallel()
	users := rightsInDocs(t)
	f := rightsFleet(t, users)
	w := f.worker()
	f.await(f.launch("echo through"), "SUCCEEDED")
	client := f.client
	f.client = strings.Replace(client, "outlast-client", "outlast-reader", 1)
	for _, args := range [][]string{{"queue", "-a"}, {"queue"}, {"show", "1"}, {"events", "1"}, {"workers"}, {"logs", "1", "--controller"}} {
		if r := f.enqueue(args...); r.code != 0 {
			t.Errorf("a reader's enqueue %v: %+v", args, r)
		}
	}
	if r := f.enqueue("launch", "-d", "--", "true"); r.code != 1 || !strings.Contains(r.errs, "it lacks") {
		t.Errorf("a reader launches: %+v", r)
	}
	f.client = client
	less := func(user, right, instead string) map[string][]string {
		rights := slices.Clone(users[user])
		at := slices.Index(rights, right)
		if at < 0 {
			t.Fatalf("%s has no %s", user, right)
		}
		if rights = slices.Delete(rights, at, at+1); instead != "" {
			rights = append(rights, instead)
		}
		return map[string][]string{user: rights}
	}
	for _, tt := range []struct{ right, instead, says string }{
		{"+incrby", "", "+incrby"}, {"+hset", "", "+hset"}, {"+evalsha", "", "+evalsha"}, {"+hgetall", "", "+hgetall"}, {"+zadd", "", "+zadd"},
		{"+sismember", "", ""}, {"~ol:*", "~other:*", "~ol:*"}, {"~asynq:*", "~other:*", "~asynq:*"},
	} {
		f.grant(less("outlast-client", tt.right, tt.instead))
		r := f.enqueue("launch", "-d", "--", "true")
		if !strings.Contains(r.errs, tt.says) || r.code == 0 && tt.says != "" && tt.right != "~asynq:*" {
			t.Errorf("launch without %s: %+v", tt.right, r)
		}
	}
	f.grant(users)
	w.term()
	for _, tt := range []struct{ right, instead, says string }{
		{"+hget", "", "+hget"}, {"+rpoplpush", "", "+rpoplpush"}, {"+evalsha", "", "+evalsha"}, {"+subscribe", "", "+subscribe"},
		{"&asynq:cancel", "", "&asynq:cancel"}, {"~ol:*", "", "~ol:*"}, {"~asynq:*", "", "~asynq:*"}, {"+memory|usage", "", "+memory|usage"},
	} {
		f.grant(less("outlast-worker", tt.right, tt.instead))
		if w := f.worker(); !w.ended() || !strings.Contains(w.log.String(), "it lacks") || !strings.Contains(w.log.String(), tt.says) {
			t.Errorf("a worker without %s says:\n%s", tt.right, w.log)
		}
	}
	f.grant(users)
	if w := f.worker(); w.ended() {
		t.Error("with all rights again, the worker does not serve")
	}
}

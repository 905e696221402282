package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// patience is how long anything may take before a test gives up on it. It is no measurement: the machine may be busy.
const patience = 90 * time.Second

// fleet is a Redis, a home and the real binaries on them, for one test.
type fleet struct {
	t       *testing.T
	redis   *redistest.Server
	servers []*redistest.Server // all of them, redis included
	admin   *redis.Client       // connected before anything is broken
	url     string              // of Redis, as the programs are told
	client  string              // likewise, as the client is told; "" is url
	home    string
	env     []string
	shared  string // the user's code leaves its traces here
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	s := redistest.Start(t)
	return newFleetOn(t, s.URL(), s)
}

// newFleetOn is a fleet on Redis servers that are told to the programs by a URL.
func newFleetOn(t *testing.T, url string, servers ...*redistest.Server) *fleet {
	t.Helper()
	home, err := os.MkdirTemp("", "outlast") // t.TempDir holds the test's name and may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, redis: servers[0], servers: servers, url: url, home: home, shared: t.TempDir()}
	f.admin = f.redis.Client(t)
	t.Cleanup(func() { _ = os.RemoveAll(home) }) // which also ends what machines are left
	return f
}

// environ is what a program gets: nothing of the developer's own settings.
func (f *fleet) environ() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "OUTLAST_HOME=" + f.home, "OUTLAST_REDIS=" + f.url,
		"XDG_CONFIG_HOME=" + filepath.Join(f.home, "config"), "GORACE=atexit_sleep_ms=0"}
	return append(env, f.env...)
}

// worker prepares a `worker run`, with times that are short enough for tests. args may add flags.
func (f *fleet) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = f.environ()
	cmd.Dir = f.home
	return cmd
}

// quick are settings of a worker that make it fast enough for tests.
var quick = []string{"run", "--http", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug", "--lease", "2s", "--claim", "2s",
	"--failure-grace", "300ms", "--intervals-quiet", "2s", "--backoff", "1s", "--shards", "2"}

// process is a program that runs in the background.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *buffer
	url  string // of its pages
	gone <-chan struct{}
}

// worker starts a worker and waits until it serves, or has ended.
func (f *fleet) worker(args ...string) *process {
	f.t.Helper()
	return f.start(f.command(append(append([]string{}, quick...), args...)...))
}

func (f *fleet) start(cmd *exec.Cmd) *process {
	f.t.Helper()
	p := &process{t: f.t, cmd: cmd, log: &buffer{}}
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	p.gone = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	f.t.Cleanup(func() {
		p.kill9()
		if f.t.Failed() {
			f.t.Logf("log of %v:\n%s", cmd.Args, lastLines(p.log.String(), 60))
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			f.t.Errorf("data race:\n%s", p.log.String())
		}
	})
	f.eventually("the worker to serve or to end", func() bool { p.url = p.served(); return p.url != "" || p.ended() })
	return p
}

// served is where a worker says that its pages are.
func (p *process) served() string {
	for line := range strings.Lines(p.log.String()) {
		var entry struct{ HTTP string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.HTTP != "" {
			return entry.HTTP
		}
	}
	return ""
}

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *process) kill9() { _ = p.cmd.Process.Kill(); <-p.gone }
func (p *process) term() {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	<-p.gone
}

// get asks the worker's HTTP server.
func (p *process) get(path string) (int, string) {
	p.t.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// result is how a program ended.
type result struct {
	code      int
	out, errs string
}

// enqueue runs the client.
func (f *fleet) enqueue(args ...string) result {
	f.t.Helper()
	path, err := enqueueBinary()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = f.environ(), f.home
	if f.client != "" {
		cmd.Env = append(cmd.Env, "OUTLAST_REDIS="+f.client)
	}
	return f.run(cmd)
}

func (f *fleet) run(cmd *exec.Cmd) result {
	f.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// launch submits a command, with flags before it, and returns the job's number.
func (f *fleet) launch(script string, flags ...string) string {
	f.t.Helper()
	r := f.enqueue(append(append([]string{"launch", "-d", "--env", "SHARED=" + f.shared}, flags...), "--", "bash", "-c", script)...)
	if r.code != 0 {
		f.t.Fatalf("launch: %+v", r)
	}
	return strings.TrimSpace(r.out)
}

// account is what `enqueue show -o json` says of a job, as far as tests need it.
type account struct {
	Status string
	Tasks  []struct {
		Status               string
		Attempts, Recoveries int
		Cause                struct{ Code, Text, Evidence string }
	}
	Waiting struct {
		For struct{ Code, Text, Evidence string }
	}
}

// show is the account of a job, and its text.
func (f *fleet) show(id string) (account, string) {
	f.t.Helper()
	r := f.enqueue("show", id, "-o", "json")
	var a account
	if err := json.Unmarshal([]byte(r.out), &a); err != nil {
		return a, r.out + r.errs
	}
	return a, r.out
}

// await waits until a job has a status, which it keeps.
func (f *fleet) await(id, status string) account {
	f.t.Helper()
	var a account
	var text string
	f.eventually("job "+id+" to be "+status, func() bool { a, text = f.show(id); return a.Status == status }, func() string { return text })
	return a
}

// trace waits until the user's code has left a file.
func (f *fleet) trace(name string) {
	f.t.Helper()
	f.eventually("the user's code to leave "+name, func() bool { return f.exists(name) })
}

// exists reports whether there is a file of the user's code.
func (f *fleet) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.shared, name))
	return err == nil
}

// leave leaves a file for the user's code.
func (f *fleet) leave(name string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.shared, name), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// eventually looks now and then until a condition holds.
func (f *fleet) eventually(what string, ok func() bool, why ...func() string) {
	f.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			text := ""
			for _, w := range why {
				text += w()
			}
			f.t.Fatalf("waited %s in vain for %s\n%s", patience, what, text)
		case <-tick.C:
		}
	}
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// buffer is a bytes.Buffer that one goroutine may read while another writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// errorCode is the code of an error that a command told with -o json.
func (r result) errorCode() string {
	var told struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal([]byte(r.errs), &told); err != nil {
		return fmt.Sprintf("no JSON: %q", r.errs)
	}
	return told.Error.Code
}

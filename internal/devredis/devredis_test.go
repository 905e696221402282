package devredis

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"
)

// start runs a server for the test and stops it afterwards.
func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func client(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// shortDir is a directory whose path leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestWhatWasWrittenIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "redis")
	s := start(t, dir)
	if !s.Kept() || !strings.Contains(s.Notice(), dir) {
		t.Errorf("kept %v, notice %q: want kept, and a notice that names %s", s.Kept(), s.Notice(), dir)
	}
	if err := client(t, s.Options()).Set(t.Context(), "job", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	if err := s.Err(); err != nil {
		t.Errorf("an orderly end left the error %v", err)
	}
	again := start(t, dir)
	if got, err := client(t, again.Options()).Get(t.Context(), "job").Result(); got != "1" || err != nil {
		t.Errorf("after the restart got %q, %v", got, err)
	}
}

func TestServerHasTheSettingsThatJobsNeed(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, shortDir(t)).Options())
	for name, want := range map[string]string{
		"port":                    "0",
		"appendonly":              "yes",
		"appendfsync":             "everysec",
		"save":                    "",
		"maxmemory-policy":        "noeviction",
		"hash-max-listpack-value": "512",
	} {
		got, err := c.ConfigGet(t.Context(), name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q (%v), want %q", name, got[name], err, want)
		}
	}
}

func TestOthersCannotReachTheSocket(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{
		filepath.Join(shortDir(t), "redis"),
		filepath.Join(shortDir(t), strings.Repeat("long/", 30)), // too long for a socket
	} {
		socket := start(t, dir).Options().Addr
		for path, want := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s has the mode %o, want %o", path, got, want)
			}
		}
	}
}

func TestTwoServersNeverShareADirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	held, err := lockDir(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(t.Context(), dir, time.Millisecond); !errors.Is(err, ErrInUse) {
		t.Errorf("the second lock: %v, want ErrInUse", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := lockDir(ctx, dir, time.Hour); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("a cancelled wait: %v, want its cause", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

// A worker that is killed takes its server with it, and the next worker finds everything that was written.
func TestServerEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), roleVariable+"="+dir)
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	socket, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, &redis.Options{Network: "unix", Addr: strings.TrimSpace(socket)})
	if err := c.Set(t.Context(), "job", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()

	s := start(t, dir) // gets the lock only when the orphan has ended
	if got, err := client(t, s.Options()).Get(t.Context(), "job").Result(); got != "1" || err != nil {
		t.Errorf("after the kill got %q, %v", got, err)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.WriteFile(filepath.Join(dir, "appendonlydir"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), dir, zerolog.Nop())
	if err == nil {
		stop(t, s)
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "appendonlydir") {
		t.Errorf("the error does not hold the server's own words: %v", err)
	}
}

func TestWithoutRedisServerNothingIsKeptAndItSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := start(t, t.TempDir())
	if s.Kept() || !strings.Contains(s.Notice(), "nothing is kept") {
		t.Errorf("kept %v, notice %q", s.Kept(), s.Notice())
	}
	c := client(t, s.Options())
	if err := c.Set(t.Context(), "lease", "1", 150*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the lease to expire", func() bool { return errors.Is(c.Get(t.Context(), "lease").Err(), redis.Nil) })

	stranger := s.Options()
	stranger.Password = ""
	if err := client(t, stranger).Ping(t.Context()).Err(); err == nil {
		t.Error("another user of the computer may read the jobs")
	}
	if o, err := redis.ParseURL(s.URL()); err != nil || o.Addr != s.Options().Addr || o.Password != s.Options().Password {
		t.Errorf("the URL does not lead to the server: %v", err)
	}
}

// await polls until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

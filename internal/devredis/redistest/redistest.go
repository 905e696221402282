// Package redistest gives a test a real redis-server of its own.
//
// A server is up in some 30 ms, listens on a unix socket in a directory of its own, writes an append-only file as in
// production, and is gone after the test. It can be killed, restarted from its file, and frozen, so that a test can
// ensure what happens when the store is away.
//
//	srv := redistest.Start(t)
//	rdb := srv.Client(t)
//	srv.Kill9()
//	srv.Restart()
package redistest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/outlast-dev/outlast/internal/devredis/internal/redisproc"
)

// Server is a redis-server for one test. Its methods fail the test if they cannot do their work, and are for the test's
// own goroutine.
type Server struct {
	tb       testing.TB
	config   redisproc.Config
	proc     *redisproc.Process
	settings []string
	port     int // of TCP; 0 if it listens on its socket only
	user     string
	password string
}

// Start runs a server until the end of the test. A computer without redis-server fails the test: what is not
// tested against a real Redis is not tested.
func Start(tb testing.TB, with ...Option) *Server {
	tb.Helper()
	s := prepare(tb, with)
	s.Restart()
	return s
}

// prepare makes a server that is not running yet.
func prepare(tb testing.TB, with []Option) *Server {
	tb.Helper()
	binary, err := redisproc.Find()
	if err != nil {
		tb.Fatal("this test needs redis-server: install it (Debian, Ubuntu: apt install redis-server; macOS: brew install redis)")
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir holds the test's name and may be too long for a socket
	if err != nil {
		tb.Fatalf("make a directory for redis-server: %v", err)
	}
	s := &Server{tb: tb, config: redisproc.Config{
		Binary: binary, Dir: dir, Socket: filepath.Join(dir, "s"),
	}}
	tb.Cleanup(func() {
		s.Kill9()
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("remove the directory of redis-server: %v", err)
		}
	})
	for _, o := range with {
		o(s)
	}
	s.config.Extra = s.settings
	return s
}

// Options returns how to reach the server, with the settings that keep go-redis quiet. The caller may change them.
func (s *Server) Options() *redis.Options {
	return &redis.Options{
		Network:                  "unix",
		Addr:                     s.config.Socket,
		Username:                 s.user,
		Password:                 s.password,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// URL returns how to reach the server, as a unix:// URL.
func (s *Server) URL() string { return (&url.URL{Scheme: "unix", Path: s.config.Socket}).String() }

// Dir is where the server keeps its append-only file.
func (s *Server) Dir() string { return s.config.Dir }

// Client returns a new client that is closed at the end of tb.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(s.Options())
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Kill9 ends the server as a crash would. Calling it again does nothing.
func (s *Server) Kill9() {
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
}

// Restart starts the server again from its append-only file, after killing it if it still runs.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill9()
	p, err := redisproc.Start(s.tb.Context(), s.config)
	if err != nil {
		s.tb.Fatalf("run a redis-server for the test: %v", err)
	}
	s.proc = p
}

// Mark is how much the server has written to its append-only file: all that it has answered by now is in it.
func (s *Server) Mark() int64 {
	s.tb.Helper()
	info, err := os.Stat(s.log())
	if err != nil {
		s.tb.Fatalf("look at the append-only file: %v", err)
	}
	return info.Size()
}

// LoseSince kills the server, takes from its file all that was written after the mark, and starts it again. So a Redis comes
// back whose host has lost its power: what it had answered since the last fsync is gone.
func (s *Server) LoseSince(mark int64) {
	s.tb.Helper()
	s.Kill9()
	if err := os.Truncate(s.log(), mark); err != nil {
		s.tb.Fatalf("cut the append-only file: %v", err)
	}
	s.Restart()
}

// log is the file that the server appends to: nothing compacts that of a test.
func (s *Server) log() string {
	old := filepath.Join(s.config.Dir, "appendonly.aof")
	if _, err := os.Stat(old); err == nil { // Redis 6
		return old
	}
	return filepath.Join(s.config.Dir, "appendonlydir", "appendonly.aof.1.incr.aof")
}

// RestartLoading starts the server again so that it needs a millisecond for each key it reads from its file, and does not
// wait: it answers that it is loading.
func (s *Server) RestartLoading() {
	s.tb.Helper()
	s.config.Loading, s.config.Extra = true, append(slices.Clone(s.settings), "--key-load-delay", "1000")
	defer func() { s.config.Loading, s.config.Extra = false, s.settings }()
	s.Restart()
}

// Freeze stops the server without a word: connections stay open and nothing is answered, until Thaw.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.tb.Helper()
	if s.proc == nil {
		s.tb.Fatal("redis-server is not running")
	}
	if err := s.proc.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}

// Flush removes all keys, so that one server can serve many cases.
func (s *Server) Flush() {
	s.tb.Helper()
	c := redis.NewClient(s.Options())
	defer func() { _ = c.Close() }()
	if err := c.FlushAll(context.Background()).Err(); err != nil {
		s.tb.Fatalf("flush redis-server: %v", err)
	}
}

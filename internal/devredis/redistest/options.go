package redistest

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Option is how a server differs from the usual one.
type Option func(*Server)

// Set are further settings of the server, such as "--maxmemory", "10mb".
func Set(settings ...string) Option {
	return func(s *Server) { s.settings = append(s.settings, settings...) }
}

// TCP lets the server listen on a port of this computer, besides its socket.
func TCP() Option {
	return func(s *Server) {
		s.port = FreePort(s.tb)
		s.settings = append(s.settings, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1")
	}
}

// Password is asked of every client. Those of [Server.Client] know it.
func Password(password string) Option {
	return func(s *Server) {
		s.password = password
		s.settings = append(s.settings, "--requirepass", password, "--masterauth", password)
	}
}

// Valkey runs valkey-server instead of redis-server. A computer without it fails the test.
func Valkey() Option {
	return func(s *Server) {
		binary, err := exec.LookPath("valkey-server")
		if err != nil {
			s.tb.Fatal("this test needs valkey-server: bash deploy/need.sh valkey-server")
		}
		s.config.Binary = binary
	}
}

// Address is where a server with [TCP] or [TLS] listens.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Running says whether the server has not been killed.
func (s *Server) Running() bool { return s.proc != nil }

// PID is the number of the server's process.
func (s *Server) PID() int { return s.proc.PID() }

// FreePort is a port that nobody listened on a moment ago.
func FreePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// do sends a command to a server over its socket and fails the test if that does.
func (s *Server) do(args ...any) string {
	s.tb.Helper()
	c := redis.NewClient(s.Options())
	defer func() { _ = c.Close() }()
	answer, err := c.Do(s.tb.Context(), args...).Result()
	if err != nil {
		s.tb.Fatalf("%v: %v", args, err)
	}
	return fmt.Sprint(answer)
}

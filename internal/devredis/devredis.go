package devredis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/devredis/internal/redisproc"
)

// Server is a running Redis. It is safe for use by several goroutines.
type Server struct {
	dir     string
	options redis.Options
	done    <-chan struct{}
	err     func() error
	stop    func(context.Context) error
	kept    bool
}

// Start runs Redis for one worker, keeping its data in dir, which is made if it does not exist. It returns when Redis
// answers. Errors wrap [ErrInUse] if another worker has the directory. The caller must call Stop.
func Start(ctx context.Context, dir string, log zerolog.Logger) (*Server, error) {
	binary, err := redisproc.Find()
	if err != nil {
		s, err := startMemory(log)
		if err != nil {
			return nil, fmt.Errorf("start redis in memory: %w", err)
		}
		log.Warn().Msg(s.Notice())
		return s, nil
	}
	s, err := startPrivate(ctx, binary, dir)
	if err != nil {
		return nil, fmt.Errorf("start redis in %s: %w", dir, err)
	}
	log.Debug().Str("dir", dir).Str("socket", s.options.Addr).Msg("redis-server is running")
	return s, nil
}

// startPrivate runs redis-server on dir.
func startPrivate(ctx context.Context, binary, dir string) (_ *Server, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(ctx, dir, lockWait)
	if err != nil {
		return nil, err
	}
	socket, cleanup, err := socketPath(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	release := sync.OnceValue(func() error {
		cleanup()
		return lock.Close()
	})
	p, err := redisproc.Start(ctx, redisproc.Config{Binary: binary, Dir: dir, Socket: socket, Inherit: lock})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return &Server{
		dir:     dir,
		options: redis.Options{Network: "unix", Addr: socket},
		done:    p.Done(),
		err:     p.Err,
		kept:    true,
		stop:    func(ctx context.Context) error { return errors.Join(p.Stop(ctx), release()) },
	}, nil
}

// socketPath returns where the socket goes: into dir, or, if that path would be too long for a socket, into a
// private directory that cleanup removes. Both are closed to other users.
func socketPath(dir string) (path string, cleanup func(), err error) {
	if path = filepath.Join(dir, "redis.sock"); len(path) <= redisproc.MaxSocket {
		if err := os.Chmod(dir, 0o700); err != nil {
			return "", nil, err
		}
		return path, func() {}, nil
	}
	short, err := os.MkdirTemp("", "outlast-")
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(short, "redis.sock"), func() { _ = os.RemoveAll(short) }, nil
}

// Options returns how to reach the server. The caller may change them.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Network: s.options.Network, Addr: s.options.Addr, Password: s.options.Password}
}

// URL returns how to reach the server, as a redis:// or unix:// URL. It may hold a password.
func (s *Server) URL() string {
	if s.options.Network == "unix" {
		return (&url.URL{Scheme: "unix", Path: s.options.Addr}).String()
	}
	u := url.URL{Scheme: "redis", Host: s.options.Addr, User: url.UserPassword("", s.options.Password)}
	return u.String()
}

// Kept reports whether the data outlives the server.
func (s *Server) Kept() bool { return s.kept }

// Notice is a plain sentence for the user about what is kept, and where.
func (s *Server) Notice() string {
	if s.kept {
		return "Jobs are kept in " + s.dir + "."
	}
	return "redis-server was not found, so nothing is kept: all jobs are forgotten when this worker ends. " +
		"Install it to keep them (Debian, Ubuntu: apt install redis-server; macOS: brew install redis)."
}

// Done is closed when the server has ended, be it by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says how the server ended, if it did not end well.
func (s *Server) Err() error { return s.err() }

// Stop ends the server, giving it until ctx ends to do so in order. What it was told before is kept in either case, if
// anything is. Calling it again does nothing.
func (s *Server) Stop(ctx context.Context) error { return s.stop(ctx) }

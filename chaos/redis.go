package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// server is a redis-server with an append-only file, on a port of its own.
type server struct {
	name  string
	dir   string
	port  int
	extra []string // settings
	proc  *process
	admin *redis.Client // not by way of any proxy
}

// redisPatience is how long a redis-server may take to serve, with this computer as busy as it is.
const redisPatience = 30 * time.Second

// newServer prepares a redis-server whose files lie in a folder of its own.
func newServer(under, name string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, dir: filepath.Join(under, name), port: port}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", name, err)
	}
	s.admin = redis.NewClient(&redis.Options{
		Addr: s.addr(), MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, ContextTimeoutEnabled: true,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return s, nil
}

func (s *server) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// start runs it, and waits until it serves.
func (s *server) start(ctx context.Context) error {
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory-policy", "noeviction", "--hash-max-ziplist-value", "512", "--enable-debug-command", "local",
	}, s.extra...)
	cmd := exec.Command("redis-server", args...)
	cmd.Dir = s.dir
	p, err := start(cmd, filepath.Join(s.dir, "redis.log"))
	if err != nil {
		return err
	}
	s.proc = p
	return s.await(ctx)
}

// await waits until it answers.
func (s *server) await(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, redisPatience)
	defer done()
	for {
		err := s.admin.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if s.proc.ended() {
			return fmt.Errorf("%s ended at once: see %s", s.name, filepath.Join(s.dir, "redis.log"))
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s does not answer: %w", s.name, err)
		}
	}
}

// stop ends it for good.
func (s *server) stop() error {
	if s == nil || s.proc == nil {
		return nil
	}
	s.proc.kill()
	return s.admin.Close()
}

// flushQueue deletes all that the queue knows, as somebody does who takes it for a cache. Records stay.
func (s *server) flushQueue(ctx context.Context) (int, error) {
	keys := 0
	scan := s.admin.Scan(ctx, 0, "asynq:*", 1000).Iterator()
	for scan.Next(ctx) {
		if err := s.admin.Del(ctx, scan.Val()).Err(); err != nil {
			return keys, fmt.Errorf("flush the queue: %w", err)
		}
		keys++
	}
	if err := scan.Err(); err != nil {
		return keys, fmt.Errorf("flush the queue: %w", err)
	}
	return keys, nil
}

// full leaves no memory for writes; the answer to each is an error.
func (s *server) full(ctx context.Context) error {
	return s.set(ctx, "maxmemory", "1")
}

// roomy takes that back.
func (s *server) roomy(ctx context.Context) error { return s.set(ctx, "maxmemory", "0") }

// set changes a setting of a server that may be away for a moment.
func (s *server) set(ctx context.Context, name, value string) error {
	ctx, done := context.WithTimeout(ctx, redisPatience)
	defer done()
	for {
		err := s.admin.ConfigSet(ctx, name, value).Err()
		if err == nil {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("set %s of %s: %w", name, s.name, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

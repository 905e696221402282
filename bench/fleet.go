package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// fleet is a deployment of its own: a Redis, workers as processes, and a client.
type fleet struct {
	b       *bench
	home    string
	traces  string // where the users' code leaves the times of its starts
	redis   *devredis.Server
	clients []redis.UniversalClient
	store   *store.Store
	queue   *tasks.Dispatcher
	local   *local.Provider
	workers []*exec.Cmd // that live, oldest first
	log     *os.File
}

// newFleet starts Redis and one worker. extra are lines for the configuration file. The caller must call close.
func newFleet(ctx context.Context, b *bench, extra string) (*fleet, error) {
	home, err := os.MkdirTemp(b.dir, "fleet")
	if err != nil {
		return nil, err
	}
	f := &fleet{b: b, home: home, traces: filepath.Join(home, "traces")}
	if err := f.open(ctx, extra); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) open(ctx context.Context, extra string) (err error) {
	if err := os.Mkdir(f.traces, 0o700); err != nil {
		return err
	}
	if f.log, err = os.Create(filepath.Join(f.home, "worker.log")); err != nil {
		return err
	}
	if f.redis, err = startRedis(ctx, filepath.Join(f.home, "redis")); err != nil {
		return err
	}
	file := "redis: " + f.redis.URL() + "\nhttp: 127.0.0.1:0\n" + extra
	if err := os.WriteFile(f.file(), []byte(file), 0o600); err != nil {
		return err
	}
	_, err = f.startWorker(ctx)
	return err
}

// startRedis starts a real redis-server: one in memory would measure something else.
func startRedis(ctx context.Context, dir string) (*devredis.Server, error) {
	r, err := devredis.Start(ctx, dir, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	if !r.Kept() {
		return nil, errors.Join(errors.New("install redis-server: it is what is measured"), stopRedis(r))
	}
	return r, nil
}

func stopRedis(r *devredis.Server) error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return r.Stop(ctx)
}

func (f *fleet) file() string { return filepath.Join(f.home, "config.yaml") }

// startWorker starts a worker process and waits until it is in the list of workers.
func (f *fleet) startWorker(ctx context.Context) (*exec.Cmd, error) {
	w := exec.Command(f.b.worker, "run", "--config", f.file(), "--log-format", "json")
	w.Env = append(os.Environ(), "OUTLAST_HOME="+filepath.Join(f.home, "state"))
	w.Stdout, w.Stderr = f.log, f.log
	w.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program alone, which ends the workers
	if err := w.Start(); err != nil {
		return nil, err
	}
	f.workers = append(f.workers, w)
	if f.store == nil {
		if err := until(ctx, "the deployment", func() bool { return f.connect(ctx) == nil }); err != nil {
			return nil, err
		}
	}
	return w, until(ctx, "the worker", func() bool {
		list, err := f.store.Workers(ctx)
		return err == nil && slices.ContainsFunc(list, func(one store.Worker) bool {
			return one.PID == w.Process.Pid && one.Ready
		})
	})
}

// connect opens the store as a client.
func (f *fleet) connect(ctx context.Context) error {
	url := config.RedisURL(f.redis.URL())
	records, err := url.RecordClient()
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, records)
	if err != nil {
		return errors.Join(err, records.Close())
	}
	queue, err := url.QueueClient(8)
	if err != nil {
		return errors.Join(err, records.Close())
	}
	tasks.KeepWrites(queue)
	f.clients = append(f.clients, records, queue)
	f.store, f.queue = st, tasks.NewDispatcher(queue)
	f.local, err = local.New(local.Config{
		Root: filepath.Join(f.home, "state", "local"), Deployment: st.Deployment().ID, Machine: []string{f.b.worker, "machine"},
	})
	return err
}

// kill ends a worker without a word.
func (f *fleet) kill(w *exec.Cmd) {
	_ = w.Process.Kill()
	_ = w.Wait()
	f.workers = slices.DeleteFunc(f.workers, func(other *exec.Cmd) bool { return other == w })
}

// close ends the workers, the machines and Redis, however far newFleet came.
func (f *fleet) close() {
	for _, w := range slices.Clone(f.workers) {
		f.kill(w)
	}
	if f.local != nil {
		ctx, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		for _, n := range f.machines(ctx) {
			_ = f.local.Terminate(ctx, n.Region, cloud.Match{Deployment: n.Deployment, Job: n.Job, NodeID: n.ID})
		}
	}
	for _, c := range f.clients {
		_ = c.Close()
	}
	if f.redis != nil {
		_ = stopRedis(f.redis)
	}
	_ = f.log.Close()
}

// limit is how long anything may take before a measurement is given up.
const limit = 2 * time.Minute

// until looks every millisecond until a condition holds.
func until(ctx context.Context, what string, ok func() bool) error {
	ctx, done := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s in vain for %s", limit, what))
	defer done()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// pause lets a time pass. The i-th is different from those before it, between none and most, so that what is measured does
// not follow the rhythm of the ticks.
func pause(ctx context.Context, i int, most time.Duration) error {
	t := time.NewTimer(time.Duration(i*137%100) * most / 100)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/internal/job"
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
	workers []*exec.Cmd
	log     *os.File
}

// newFleet starts Redis and a worker. extra are lines for the configuration file.
func newFleet(ctx context.Context, b *bench, extra string) (*fleet, error) {
	home, err := os.MkdirTemp(b.dir, "fleet")
	if err != nil {
		return nil, err
	}
	f := &fleet{b: b, home: home, traces: filepath.Join(home, "traces")}
	if err := os.Mkdir(f.traces, 0o700); err != nil {
		return nil, err
	}
	if f.log, err = os.Create(filepath.Join(home, "worker.log")); err != nil {
		return nil, err
	}
	if f.redis, err = devredis.Start(ctx, filepath.Join(home, "redis"), zerolog.Nop()); err != nil {
		return nil, err
	}
	if err := os.WriteFile(f.file(), []byte("redis: "+f.redis.URL()+"\nhttp: 127.0.0.1:0\n"+extra), 0o600); err != nil {
		return nil, err
	}
	if err := f.startWorker(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) file() string { return filepath.Join(f.home, "config.yaml") }

// startWorker starts a worker process and waits until it is in the list of workers.
func (f *fleet) startWorker(ctx context.Context) error {
	w := exec.Command(f.b.worker, "run", "--config", f.file(), "--log-format", "json")
	w.Env = append(os.Environ(), "OUTLAST_HOME="+filepath.Join(f.home, "state"))
	w.Stdout, w.Stderr = f.log, f.log
	if err := w.Start(); err != nil {
		return err
	}
	f.workers = append(f.workers, w)
	if f.store == nil {
		if err := f.until(ctx, "the deployment", func() bool { return f.connect(ctx) == nil }); err != nil {
			return err
		}
	}
	return f.until(ctx, "the worker", func() bool {
		list, err := f.store.Workers(ctx)
		if err != nil {
			return false
		}
		for _, one := range list {
			if one.PID == w.Process.Pid && one.Ready {
				return true
			}
		}
		return false
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
		return err
	}
	tasks.KeepWrites(queue)
	f.clients = append(f.clients, records, queue)
	f.store, f.queue = st, tasks.NewDispatcher(queue)
	f.local, err = local.New(local.Config{
		Root: filepath.Join(f.home, "state", "local"), Deployment: st.Deployment().ID, Machine: []string{f.b.worker, "machine"},
	})
	return err
}

// close ends the workers, the machines and Redis.
func (f *fleet) close() {
	for _, w := range f.workers {
		_ = w.Process.Kill()
		_ = w.Wait()
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
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_ = f.redis.Stop(ctx)
	_ = f.log.Close()
}

// kill ends a worker without a word.
func (f *fleet) kill(w *exec.Cmd) {
	_ = w.Process.Signal(syscall.SIGKILL)
	_ = w.Wait()
}

// submit hands in a job as the CLI does.
func (f *fleet) submit(ctx context.Context, run string) (job.ID, error) {
	ids, err := f.store.Submit(ctx, store.Submission{Request: job.Request{Name: "bench", Tasks: []job.TaskRequest{{
		Resources: job.Resources{Any: []job.Want{{Provider: "local"}}}, Run: run, Envs: map[string]string{"TRACES": f.traces},
	}}}})
	if err != nil {
		return 0, err
	}
	granted, err := f.store.Join(ctx, f.store.Deployment().Caps, 0, ids)
	if err != nil {
		return 0, err
	}
	for _, id := range granted {
		if err := f.queue.Dispatch(ctx, id, job.StepLaunch, 1); err != nil {
			return 0, err
		}
	}
	return ids[0], nil
}

// traced is user code that leaves the time of its start, by bash itself so that no process is started for it.
const traced = `echo "$EPOCHREALTIME" > "$TRACES/$OUTLAST_JOB_ID.$OUTLAST_ATTEMPT.new"; mv "$TRACES/$OUTLAST_JOB_ID.$OUTLAST_ATTEMPT.new" "$TRACES/$OUTLAST_JOB_ID.$OUTLAST_ATTEMPT"` + "\n"

// start waits for the user's code to start in an attempt and returns when it did.
func (f *fleet) start(ctx context.Context, id job.ID, attempt int) (time.Time, error) {
	var text []byte
	err := f.until(ctx, fmt.Sprintf("attempt %d of job %d", attempt, id), func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(f.traces, fmt.Sprintf("%d.%d", id, attempt)))
		return !errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return time.Time{}, err
	}
	seconds, micros, _ := strings.Cut(strings.TrimSpace(string(text)), ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000), errors.Join(err1, err2)
}

// done waits until nothing is left to do for a job.
func (f *fleet) done(ctx context.Context, id job.ID) error {
	return f.until(ctx, fmt.Sprintf("the end of job %d", id), func() bool {
		rec, err := f.store.Load(ctx, id)
		return err == nil && rec.Step == job.StepDone
	})
}

func (f *fleet) cancel(ctx context.Context, id job.ID) error {
	woken, err := f.store.Cancel(ctx, id, "bench", 30*time.Second)
	if err != nil {
		return err
	}
	return f.queue.RunWatch(ctx, woken.Shard, woken.Epoch)
}

// machines are those that may run code.
func (f *fleet) machines(ctx context.Context) []cloud.Node {
	var all []cloud.Node
	regions, err := f.local.Regions(ctx)
	if err != nil {
		return nil
	}
	for _, r := range regions {
		nodes, err := f.local.List(ctx, r)
		if err != nil {
			continue
		}
		for _, n := range nodes {
			if !n.State.Ended() {
				all = append(all, n)
			}
		}
	}
	return all
}

// machineOf is the machine that runs a job.
func (f *fleet) machineOf(ctx context.Context, id job.ID) (cloud.Node, error) {
	rec, err := f.store.Load(ctx, id)
	if err != nil {
		return cloud.Node{}, err
	}
	for _, n := range f.machines(ctx) {
		if a := rec.Attempt(n.Attempt); n.Job == id && a != nil {
			return n, nil
		}
	}
	return cloud.Node{}, fmt.Errorf("job %d has no machine", id)
}

// limit is how long anything may take before a measurement is given up.
const limit = 2 * time.Minute

// until looks every millisecond until a condition holds.
func (f *fleet) until(ctx context.Context, what string, ok func() bool) error {
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

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

	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// fleet is a deployment of its own: a Redis, another one with the world of the sim provider, workers, and a client.
type fleet struct {
	options
	dir     string
	binary  string
	redis   *server // that of the deployment
	away    *server // that of the world
	store   *store.Store
	queue   *tasks.Dispatcher
	plan    sim.World
	world   *sim.Cloud
	clients []redis.UniversalClient
	workers []*worker
	log     *os.File
	live    int // jobs that run
	retain  int // ended jobs that stay in Redis; 0 means all
}

// doomedZone is lost in a storm. Its machines are the cheapest, so they are made there until it is full.
const doomedZone = "east-a"

// doomed is how many machines the zone has that is lost.
func (o options) doomed() int { return max(o.storm/2, 1) }

// worldFile is the world: one region, with three zones.
func (o options) worldFile() string {
	const zone = "  - {name: %s, region: east, boot: 100ms, capacity: %d, types: [{name: s1, cpus: 4, memory: 16, price: %g}]}\n"
	return "name: scale\nsettle: 500ms\nkeep: 5s\nview_every: 15s\nledger: false\nzones:\n" +
		fmt.Sprintf(zone, doomedZone, o.doomed(), 0.1) + fmt.Sprintf(zone, "east-b", 2_000_000, 0.2) + fmt.Sprintf(zone, "east-c", 2_000_000, 0.3)
}

// configFile is how the workers are set: as a user would, but for the interval and the limits that are measured.
func (f *fleet) configFile() string {
	return fmt.Sprintf(`redis: %s
http: 127.0.0.1:0
log_level: warn
profiles: true
providers: [sim]
sim: {world: %s, redis: %s}
limits: ["sim.write=%g:%g", "sim.read=200"]
launches: %d
concurrency: {watch: 64, acts: 64}
intervals: {quiet: %s}
retention: {count: %d}
`, f.redis.URL(), filepath.Join(f.dir, "world.yaml"), f.away.URL(), f.rate, max(f.rate/10, 1), f.launches, f.quiet, f.retain)
}

// newFleet starts both Redises and the workers. The caller must call close.
func newFleet(ctx context.Context, o options, dir, binary string) (*fleet, error) {
	f := &fleet{options: o, dir: dir, binary: binary}
	if err := f.open(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) open(ctx context.Context) (err error) {
	logs := f.dir
	if f.keep != "" {
		logs = f.keep
	}
	if f.log, err = os.Create(filepath.Join(logs, "workers.log")); err != nil {
		return err
	}
	if f.redis, err = startServer(ctx, filepath.Join(f.dir, "redis")); err != nil {
		return err
	}
	if f.away, err = startServer(ctx, filepath.Join(f.dir, "away")); err != nil {
		return err
	}
	if err := f.away.rdb.ConfigSet(ctx, "appendonly", "no").Err(); err != nil { // a cloud has its own ways to remember
		return err
	}
	if err := os.WriteFile(filepath.Join(f.dir, "world.yaml"), []byte(f.worldFile()), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.dir, "config.yaml"), []byte(f.configFile()), 0o600); err != nil {
		return err
	}
	if err := f.startWorkers(ctx); err != nil {
		return err
	}
	if f.plan, err = sim.LoadWorld(filepath.Join(f.dir, "world.yaml")); err != nil {
		return err
	}
	f.world, err = sim.Open(ctx, f.away.rdb, f.plan)
	return err
}

// server is a redis-server.
type server struct {
	*devredis.Server
	rdb redis.UniversalClient
	pid int
}

func startServer(ctx context.Context, dir string) (*server, error) {
	r, err := devredis.Start(ctx, dir, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	s := &server{Server: r}
	if !r.Kept() {
		return s, errors.New("install redis-server: it is what is measured")
	}
	if s.rdb, err = config.RedisURL(r.URL()).RecordClient(); err != nil {
		return s, err
	}
	pid, err := s.info(ctx, "server", "process_id")
	s.pid = int(pid)
	return s, err
}

func (s *server) stop() error {
	if s == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	if s.rdb != nil {
		_ = s.rdb.ConfigSet(ctx, "save", "").Err()
		_ = s.rdb.Close()
	}
	return s.Stop(ctx)
}

// worker is a worker process.
type worker struct {
	cmd *exec.Cmd
	url string // of its pages
}

// startWorkers starts as many as there should be, and waits until all work.
func (f *fleet) startWorkers(ctx context.Context) error {
	for i := range f.options.workers {
		w := &worker{cmd: exec.Command(f.binary, "run", "--config", filepath.Join(f.dir, "config.yaml"), "--log-format", "json")}
		w.cmd.Env = append(os.Environ(), "OUTLAST_HOME="+filepath.Join(f.dir, "state"), fmt.Sprintf("OUTLAST_WORKER=w%d", i))
		w.cmd.Stdout, w.cmd.Stderr = f.log, f.log
		w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program alone, which ends the workers
		if err := w.cmd.Start(); err != nil {
			return err
		}
		f.workers = append(f.workers, w)
		if f.store == nil { // the first one founds the deployment, and makes the key
			if err := until(ctx, time.Minute, "the deployment", func() (bool, error) { return f.connect(ctx) == nil, nil }); err != nil {
				return err
			}
		}
	}
	return until(ctx, time.Minute, "the workers", func() (bool, error) {
		list, err := f.store.Workers(ctx)
		for _, w := range f.workers {
			i := slices.IndexFunc(list, func(one store.Worker) bool { return one.PID == w.cmd.Process.Pid && one.Ready })
			if i < 0 {
				return false, err
			}
			w.url = list[i].URL
		}
		return true, nil
	})
}

// stopWorkers ends all workers as an operator would.
func (f *fleet) stopWorkers() error {
	var errs []error
	for _, w := range f.workers {
		errs = append(errs, w.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, w := range f.workers {
		_ = w.cmd.Wait()
	}
	f.workers = nil
	return errors.Join(errs...)
}

// connect opens the store as a client.
func (f *fleet) connect(ctx context.Context) error {
	st, err := store.Open(ctx, f.redis.rdb)
	if err != nil {
		return err
	}
	queue, err := config.RedisURL(f.redis.URL()).QueueClient(8)
	if err != nil {
		return err
	}
	tasks.KeepWrites(queue)
	f.clients = append(f.clients, queue)
	f.store, f.queue = st, tasks.NewDispatcher(queue)
	return nil
}

// close ends all that was started, however far that came.
func (f *fleet) close() {
	for _, w := range f.workers {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
	for _, c := range f.clients {
		_ = c.Close()
	}
	_ = f.redis.stop()
	_ = f.away.stop()
	_ = f.log.Close()
}

// forever is a job that runs until it is stopped.
const forever = "sleep 1000000\n"

func (f *fleet) submission(name string, n, priority int) store.Submission {
	return store.Submission{Count: n, Request: job.Request{
		Name: name, User: "bench", Priority: priority,
		Tasks: []job.TaskRequest{{Resources: job.Resources{Any: []job.Want{{Provider: "sim"}}}, Run: forever}},
	}}
}

// submit hands in jobs as the client does: at once, with a push for those that get a launch slot.
func (f *fleet) submit(ctx context.Context, name string, n, priority int) ([]job.ID, error) {
	ids, err := f.store.Submit(ctx, f.submission(name, n, priority))
	if err != nil {
		return nil, err
	}
	granted, err := f.store.Join(ctx, f.store.Deployment().Caps, priority, ids)
	if err != nil {
		return nil, err
	}
	if err := f.queue.Call(ctx, f.store, granted); err != nil {
		return nil, err
	}
	return ids, nil
}

// calm waits until so many jobs run and none is on its way.
func (f *fleet) calm(ctx context.Context, limit time.Duration, running int) error {
	last := time.Now()
	return until(ctx, limit, fmt.Sprintf("%d jobs to run", running), func() (bool, error) {
		by, err := f.store.Statuses(ctx)
		if err != nil {
			return false, err
		}
		moving := by[job.Pending] + by[job.Starting] + by[job.Recovering] + by[job.Cancelling]
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			say("  %d run, %d wait, %d start, %d recover, %d are being cancelled", by[job.Running], by[job.Pending], by[job.Starting], by[job.Recovering], by[job.Cancelling])
		}
		return moving == 0 && int(by[job.Running]) == running, nil
	})
}

// pace is how often until looks: each look at the statuses is a thousand commands.
const pace = 250 * time.Millisecond

// until looks until a condition holds.
func until(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	ctx, done := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s in vain for %s", limit, what))
	defer done()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		if is, err := ok(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// pause lets a time pass.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

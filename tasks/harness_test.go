package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

const self = "/proc/self/exe"

// patience is how long anything may take before a test gives up on it. It is no measurement: the machine may be busy.
const patience = 90 * time.Second

// workerConfig is what a worker process is told.
type workerConfig struct {
	Name, Redis, Home string
	Zones             []local.Zone
	Caps              store.Caps
	LogLimit          int64
	Crash             int    // kill -9 itself at this point, counted from 1; 0 never
	Freeze            string // stop itself, like a paused machine, where this point is passed first
	Trace             string // file to append the names of all points to
	NoCallbacks       bool
	Durable           time.Duration
	CrashAt           string // kill -9 itself where this point is passed first
}

// workerMain is a worker process: the product's worker with a real Redis and the real local provider, and intervals that
// are short enough for tests.
func workerMain(cfg workerConfig) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w, done, err := newWorker(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer done()
	if err := w.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up") // the harness waits for it
	<-ctx.Done()
	w.Stop()
	return 0
}

func newWorker(ctx context.Context, cfg workerConfig) (*tasks.Worker, func(), error) {
	st, queue, err := connect(ctx, cfg.Redis, cfg.Home)
	if err != nil {
		return nil, nil, err
	}
	logs, err := archive.Open(ctx, st.Deployment().Archive)
	if err != nil {
		return nil, nil, err
	}
	identity, err := seal.LoadOrCreate(filepath.Join(cfg.Home, "identity"))
	if err != nil {
		return nil, nil, err
	}
	p, err := local.New(local.Config{Root: filepath.Join(cfg.Home, "local"), Deployment: st.Deployment().ID, Machine: []string{self, "machine"}, Zones: cfg.Zones})
	if err != nil {
		return nil, nil, err
	}
	journal := tasks.NewJournal()
	rules := job.DefaultRules
	rules.ExitGrace = 300 * time.Millisecond
	rules.Quiet = 2 * time.Second
	rules.Durable = cfg.Durable
	w := tasks.New(tasks.Config{
		Name: cfg.Name, Store: st, Queue: queue, Archive: logs, Identity: identity, Rules: rules,
		Sites: tasks.Sites{"local": {
			Provider: p, Dialer: local.Dialer{}, Agent: []string{"agent"}, Dir: p.AgentDir, NoticeFile: p.NoticeFile, PowerOff: p.PowerOff, ViewEvery: time.Second,
		}},
		Log:  zerolog.New(zerolog.MultiLevelWriter(os.Stderr, journal)).Level(zerolog.DebugLevel).With().Timestamp().Str("worker", cfg.Name).Logger(),
		Caps: store.Caps{Launches: max(cfg.Caps.Launches, 8), Live: cfg.Caps.Live},
		// The specification's times, divided: kill -9 is to be got over within seconds here.
		LeaseTTL: 2 * time.Second, Claim: 3 * time.Second, Silence: 2 * time.Second, Backoff: time.Second, MinAge: 3 * time.Second,
		Points: crashAt(cfg), Journal: journal, LogLimit: cfg.LogLimit,
		PrivateWebhooks: true, HookFirst: 200 * time.Millisecond, CallbackLimit: 2 * time.Second, NoCallbacks: cfg.NoCallbacks,
	})
	return w, func() { _ = logs.Close() }, nil
}

// crashAt makes a worker kill or stop itself at a point that it passes.
func crashAt(cfg workerConfig) func(string) {
	if cfg.Crash == 0 && cfg.CrashAt == "" && cfg.Freeze == "" && cfg.Trace == "" {
		return nil
	}
	var passed int
	var mu sync.Mutex
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		passed++
		if cfg.Trace != "" {
			f, err := os.OpenFile(cfg.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				fmt.Fprintln(f, point)
				_ = f.Close()
			}
		}
		if passed == cfg.Crash || cfg.CrashAt != "" && point == cfg.CrashAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		if point == cfg.Freeze {
			cfg.Freeze = ""
			woken := make(chan os.Signal, 1)
			signal.Notify(woken, syscall.SIGCONT)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-woken // the stop is on its way, and this goroutine goes no further before it
			signal.Stop(woken)
		}
	}
}

func connect(ctx context.Context, url, home string) (*store.Store, redis.UniversalClient, error) {
	u := config.RedisURL(url)
	records, err := u.RecordClient()
	if err != nil {
		return nil, nil, err
	}
	queue, err := u.QueueClient(48)
	if err != nil {
		return nil, nil, err
	}
	tasks.KeepWrites(queue)
	identity, err := seal.LoadOrCreate(filepath.Join(home, "identity"))
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Found(ctx, records, store.Deployment{Shards: 4, Archive: "file://" + filepath.Join(home, "archive"), Recipient: identity.Recipient()})
	return st, queue, err
}

// deployment is a Redis, a home directory and any number of worker processes, for one test.
type deployment struct {
	t      *testing.T
	redis  *redistest.Server
	home   string
	shared string // the user's code leaves its traces here
	store  *store.Store
	queue  *tasks.Dispatcher
	client redis.UniversalClient
	cloud  *local.Provider
	zones  []local.Zone
	caps   store.Caps
	n      int
}

func newDeployment(t *testing.T) *deployment {
	t.Helper()
	home, err := os.MkdirTemp("", "outlast")
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{t: t, redis: redistest.Start(t), home: home, shared: filepath.Join(home, "shared")}
	if err := os.Mkdir(d.shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if d.store, d.client, err = connect(context.Background(), d.redis.URL(), home); err != nil {
		t.Fatal(err)
	}
	d.queue = tasks.NewDispatcher(d.client)
	d.cloud, err = local.New(local.Config{Root: filepath.Join(home, "local"), Deployment: d.store.Deployment().ID, Machine: []string{self, "machine"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range d.machines() {
			if !m.State.Ended() {
				_ = d.cloud.Terminate(context.Background(), m.Region, cloud.Match{Deployment: m.Deployment, Job: m.Job, NodeID: m.ID})
			}
		}
		_ = d.client.Close()
		_ = os.RemoveAll(home)
	})
	return d
}

// process is a worker process.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *bytes.Buffer
	gone <-chan struct{}
}

// worker starts a worker process and waits until it works. change may set a crash point.
func (d *deployment) worker(change ...func(*workerConfig)) *process {
	d.t.Helper()
	d.n++
	cfg := workerConfig{Name: "w" + strconv.Itoa(d.n), Redis: d.redis.URL(), Home: d.home, Zones: d.zones, Caps: d.caps}
	for _, f := range change {
		f(&cfg)
	}
	arg, err := json.Marshal(cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	p := &process{t: d.t, cmd: exec.Command(self, "worker", string(arg)), log: &bytes.Buffer{}}
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 3)) // "up", or the end
	ended := make(chan struct{})
	p.gone = ended
	go func() {
		_ = p.cmd.Wait()
		close(ended)
	}()
	d.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-ended
		if d.t.Failed() {
			d.t.Logf("log of %s:\n%s", cfg.Name, lastLines(p.log.String(), 60))
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			d.t.Errorf("data race in %s:\n%s", cfg.Name, lastLines(p.log.String(), 100))
		}
	})
	return p
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (p *process) kill9()  { p.signal(syscall.SIGKILL); <-p.gone }
func (p *process) freeze() { p.signal(syscall.SIGSTOP) }
func (p *process) thaw()   { p.signal(syscall.SIGCONT) }
func (p *process) term()   { p.signal(syscall.SIGTERM); <-p.gone }

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal the worker: %v", err)
	}
}

// stopped reports whether the process stands still.
func (p *process) stopped() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	state := b[bytes.LastIndexByte(b, ')')+2]
	return state == 'T'
}

// out reports whether the process has ended or stands still.
func (p *process) out() bool {
	select {
	case <-p.gone:
		return true
	default:
		return p.stopped()
	}
}

// guard is put before a user's code in tests: it proves that the code of one task never runs twice at a time (G3), and leaves
// a trace of each start.
const guard = `
exec 9>"$SHARED/lock.$OUTLAST_JOB_ID"
flock -n 9 || echo "overlap in attempt $OUTLAST_ATTEMPT" >> "$SHARED/overlap"
echo "$OUTLAST_ATTEMPT" >> "$SHARED/starts.$OUTLAST_JOB_ID"
`

// request is a job of one task with that code.
func (d *deployment) request(run string, change ...func(*job.TaskRequest)) job.Request {
	t := job.TaskRequest{
		Resources: job.Resources{Any: []job.Want{{Provider: "local"}}},
		Envs:      map[string]string{"SHARED": d.shared},
		Run:       guard + run,
	}
	for _, f := range change {
		f(&t)
	}
	return job.Request{Name: "test", Tasks: []job.TaskRequest{t}}
}

// submit hands in a job as the CLI does.
func (d *deployment) submit(r job.Request) job.ID {
	d.t.Helper()
	return d.submitAll(store.Submission{Request: r})[0]
}

func (d *deployment) submitAll(s store.Submission) []job.ID {
	d.t.Helper()
	ctx := context.Background()
	ids, err := d.store.Submit(ctx, s)
	if err != nil {
		d.t.Fatalf("submit: %v", err)
	}
	granted, err := d.store.Join(ctx, store.Caps{Launches: max(d.caps.Launches, 8), Live: d.caps.Live}, s.Request.Priority, ids)
	if err != nil {
		d.t.Fatalf("join: %v", err)
	}
	if err := d.queue.Call(ctx, d.store, granted); err != nil {
		d.t.Fatalf("call: %v", err)
	}
	return ids
}

func (d *deployment) cancel(id job.ID, grace time.Duration) {
	d.t.Helper()
	woken, err := d.store.Cancel(context.Background(), id, "test", grace)
	if err != nil {
		d.t.Fatalf("cancel: %v", err)
	}
	if woken.Live {
		_ = d.queue.RunWatch(context.Background(), woken.Shard, woken.Epoch)
	}
}

// await waits until a job's record is as wanted.
func (d *deployment) await(id job.ID, what string, ok func(job.Record) bool) job.Record {
	d.t.Helper()
	var last job.Record
	d.eventually(fmt.Sprintf("job %d: %s", id, what), func() bool {
		rec, err := d.store.Load(context.Background(), id)
		if err != nil {
			return false
		}
		last = rec
		return ok(rec)
	}, func() string { return d.describe(id) })
	return last
}

// eventually looks every few milliseconds until a condition holds.
func (d *deployment) eventually(what string, ok func() bool, why ...func() string) {
	d.t.Helper()
	d.within(patience, what, ok, why...)
}

// within is eventually with another patience.
func (d *deployment) within(patience time.Duration, what string, ok func() bool, why ...func() string) {
	d.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			text := ""
			for _, f := range why {
				text += f()
			}
			d.t.Fatalf("waited %s in vain for %s\n%s", patience, what, text)
		case <-tick.C:
		}
	}
}

// done waits until nothing is left to do for a job.
func (d *deployment) done(id job.ID) job.Record {
	d.t.Helper()
	return d.await(id, "done", func(r job.Record) bool { return r.Step == job.StepDone })
}

func (d *deployment) running(id job.ID) job.Record {
	d.t.Helper()
	rec := d.await(id, "running", func(r job.Record) bool { return r.Status() == job.Running })
	d.eventually("the user's code to run", func() bool { return len(d.starts(id)) >= rec.Tasks[rec.Cur].Attempts })
	return rec
}

// describe tells all that is known about a job.
func (d *deployment) describe(id job.ID) string {
	rec, err := d.store.Load(context.Background(), id)
	text := fmt.Sprintf("job %d: %s step %s n %d ran %d fence %d held %d due %d wait %+v live %+v err %v\n", id, rec.Status(), rec.Step, rec.Dispatch, rec.Ran, rec.Fence, rec.HeldTo, rec.Due, rec.Wait, rec.Live, err)
	events, _ := d.store.Events(context.Background(), id)
	for _, e := range events {
		text += fmt.Sprintf("  %d %s task %d attempt %d %s→%s %s %s (%s)\n", e.At, e.Kind, e.Task, e.Attempt, e.From, e.To, e.Cause.Code, e.Cause.Text, e.Cause.Evidence)
	}
	return text
}

// starts are the attempts in which a job's code was started, in order.
func (d *deployment) starts(id job.ID) []string {
	b, err := os.ReadFile(filepath.Join(d.shared, fmt.Sprintf("starts.%d", id)))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// machines are all machines on this computer that belong to the deployment.
func (d *deployment) machines() []cloud.Node {
	regions, err := d.cloud.Regions(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	var all []cloud.Node
	for _, region := range regions {
		nodes, err := d.cloud.List(context.Background(), region)
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, nodes...)
	}
	return all
}

// living are the machines that may run code.
func (d *deployment) living() []cloud.Node {
	var out []cloud.Node
	for _, n := range d.machines() {
		if !n.State.Ended() {
			out = append(out, n)
		}
	}
	return out
}

// takeMachine preempts the machine that runs a job.
func (d *deployment) takeMachine(id job.ID, notice time.Duration) {
	d.t.Helper()
	for _, n := range d.living() {
		if n.Job == id {
			if err := d.cloud.Preempt(context.Background(), n.Region, n.ID, notice); err != nil {
				d.t.Fatalf("preempt: %v", err)
			}
			return
		}
	}
	d.t.Fatalf("job %d has no machine to take", id)
}

// sound checks what must hold for every job that has ended: nothing ran twice at a time, nothing is left, and the ending
// explains itself.
func (d *deployment) sound(ids ...job.ID) {
	d.t.Helper()
	if b, err := os.ReadFile(filepath.Join(d.shared, "overlap")); err == nil {
		d.t.Errorf("G3: the user's code ran in two places at once: %s", b)
	}
	for _, id := range ids {
		rec := d.done(id)
		if len(rec.Live) > 0 {
			d.t.Errorf("G4: job %d is done with live attempts: %+v", id, rec.Live)
		}
		seen := map[string]bool{}
		for _, a := range d.starts(id) {
			if key := a; seen[key] && len(rec.Tasks) == 1 {
				d.t.Errorf("G3: attempt %s of job %d was started twice", a, id)
			}
			seen[a] = true
		}
		for i, t := range rec.Tasks {
			if t.Status.Terminal() && t.Status != job.Succeeded && (t.Cause.Code == "" || t.Cause.Text == "") {
				d.t.Errorf("G13: task %d of job %d is %s without a cause: %+v", i, id, t.Status, t.Cause)
			}
		}
	}
	d.eventually("every machine to be gone", func() bool { return len(d.living()) == 0 }, func() string { return fmt.Sprint(d.living()) })
	d.noProcesses()
}

// noProcesses checks that no process of any machine of this deployment is left.
func (d *deployment) noProcesses() {
	d.t.Helper()
	left := func() []string {
		return append(d.userProcesses(), d.processesWith("OUTLAST_DEPLOYMENT="+d.store.Deployment().ID)...)
	}
	d.eventually("every process of the machines to be gone", func() bool { return len(left()) == 0 }, func() string { return fmt.Sprint(left()) })
}

// write makes a file that the users' code looks for.
func (d *deployment) write(name string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.shared, name), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// userProcesses are the processes on this computer of the users' code of this test: they carry its directory in their
// environment.
func (d *deployment) userProcesses() []string {
	return d.processesWith("SHARED=" + d.shared)
}

func (d *deployment) processesWith(env string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		has, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(has, []byte(env)) {
			cmd, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			out = append(out, e.Name()+" "+string(bytes.ReplaceAll(cmd, []byte{0}, []byte{' '})))
		}
	}
	return out
}

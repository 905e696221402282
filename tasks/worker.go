package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/hook"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/planted"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/lease"
)

// Config is what a worker is made of. Zero values of the numbers mean their defaults.
type Config struct {
	Name      string // unique among the workers, for people
	Version   string
	Store     *store.Store
	Queue     redis.UniversalClient // for asynq alone, prepared with KeepWrites; not closed by the worker
	Sites     Sites
	Archive   *archive.Archive
	Identity  Opener // opens secrets; nil if this worker cannot
	Log       zerolog.Logger
	Journal   *Journal              // keeps what Log says about jobs with the jobs; nil for none
	Metrics   prometheus.Registerer // nil for none
	Rules     job.Rules             // Deployment is filled in
	Caps      store.Caps
	LeaseTTL  time.Duration // of acts; 0 = lease.DefaultTTL
	Quorum    *lease.Quorum // servers that must agree before an act begins; nil for none
	Claim     time.Duration // of the watch; 0 = DefaultClaim
	Silence   time.Duration // of a chain before it counts as dead; 0 = DefaultSilence
	Backoff   time.Duration // first wait between rounds of offers; 0 = place.DefaultBackoff
	LogLimit  int64         // bytes of each attempt's log; 0 = DefaultLogLimit
	MinAge    time.Duration // before a machine can be an orphan; 0 = DefaultMinAge
	Retention Retention     // of what ended
	Watchers  int           // shards watched at a time; 0 = 16
	Looks     int           // jobs looked at at a time; 0 = 32
	Acts      int           // launches at a time, as many recoveries and clean-ups, and as many of urgent jobs; 0 = 32
	Ready     func() error  // nil, or why this worker cannot serve the deployment
	URL       func() string // of its pages; nil if it has none
	Hooks     int           // deliveries of news at a time; 0 = 16
	// NoCallbacks keeps this worker from running event_callback: its users may not run code on it.
	NoCallbacks bool
	// PrivateWebhooks lets webhooks reach addresses of this computer and of private networks.
	PrivateWebhooks bool
	HookFirst       time.Duration // first wait of a receiver that fails; 0 = that of its schedule
	CallbackLimit   time.Duration // of one callback; 0 = hook.CallbackLimit
	// Points, if set, is called before and after each commit and each thing done in the world, with its name: tests
	// kill a worker there.
	Points func(point string)
}

// Opener opens sealed secrets: a seal.Identity, or a seal.Keyring that learns of new keys.
type Opener interface {
	Open(sealed []byte) (map[string]string, error)
}

// Defaults.
const (
	// DefaultMinAge is how old a machine must be before it can be called an orphan: a create call that is being
	// answered may be ahead of its record.
	DefaultMinAge = 30 * time.Second
	// DefaultClaim is how long the watch claims a job for one look: an abandoned claim is due again after it, so that a
	// dead worker's job is driven again within 20 s (G1).
	DefaultClaim = 15 * time.Second
	defaultWide  = 32
	fleetWide    = 8 // regions listed at a time
	reportEvery  = 5 * time.Second
	stopWithin   = 20 * time.Second // asynq pushes back what is not done by then
)

// ErrStopping is the cause with which the work of a worker ends that was told to stop.
var ErrStopping = errors.New("the worker stops")

// Worker drives jobs. Any number of them may run, and any may die.
type Worker struct {
	cfg      Config
	log      zerolog.Logger
	store    *store.Store
	queue    *Dispatcher
	sites    Sites
	views    *views
	archive  *archive.Archive
	identity Opener
	leases   *lease.Keeper
	metrics  *metrics
	rules    job.Rules
	caps     store.Caps
	backoff  time.Duration
	minAge   time.Duration
	logLimit int64
	masks    masks
	every    time.Duration // the watch's period
	claim    time.Duration // of one look; a look ends well before it
	silence  time.Duration // of a chain before it counts as dead
	sender   *hook.Sender

	callbackLimit time.Duration

	stopping  context.Context //nolint:containedctx // the life of the worker: ends when it is told to stop
	stop      context.CancelCauseFunc
	crowd     *crowd         // bounds the calls of a provider that hangs
	places    *places        // bound the jobs looked at at a time
	bodies    sync.WaitGroup // looks that outlive their tick
	loops     sync.WaitGroup
	servers   []*asynq.Server
	journaled func() // writes the last lines of the journal
	started   job.Time
	reported  atomic.Pointer[error] // what came of the last report
	refused   atomic.Pointer[error] // why this worker takes no work at all
	looked    atomic.Int64
	recounted atomic.Int64 // when the archive was last looked at as a whole
	busy      atomic.Int64
}

// New makes a worker. It does nothing until Start.
func New(cfg Config) *Worker {
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	cfg.Watchers = cmp.Or(cfg.Watchers, defaultWide/2)
	cfg.Looks = cmp.Or(cfg.Looks, defaultWide)
	cfg.Acts = cmp.Or(cfg.Acts, defaultWide)
	cfg.Hooks = cmp.Or(cfg.Hooks, hooksWide)
	cfg.MinAge = cmp.Or(cfg.MinAge, DefaultMinAge)
	cfg.Claim = cmp.Or(cfg.Claim, DefaultClaim)
	cfg.Silence = cmp.Or(cfg.Silence, DefaultSilence)
	cfg.LogLimit = cmp.Or(cfg.LogLimit, DefaultLogLimit)
	cfg.Rules.Deployment = cfg.Store.Deployment().ID
	metrics := newMetrics(cfg.Metrics)
	sites := cfg.Sites.limited(cfg.Store, metrics, cfg.Name)
	w := &Worker{
		cfg: cfg, log: cfg.Log, store: cfg.Store, queue: NewDispatcher(cfg.Queue), sites: sites, views: newViews(sites),
		archive: cfg.Archive, identity: cfg.Identity, leases: lease.NewKeeper(cfg.Store.Redis(), cfg.LeaseTTL), metrics: metrics,
		rules: cfg.Rules, caps: cfg.Caps, backoff: cfg.Backoff, minAge: cfg.MinAge, every: time.Second, claim: cfg.Claim, silence: cfg.Silence, logLimit: cfg.LogLimit,
		sender: hook.NewSender(cfg.PrivateWebhooks, cfg.Version), callbackLimit: cmp.Or(cfg.CallbackLimit, hook.CallbackLimit),
		journaled: func() {}, places: newPlaces(cfg.Looks, cfg.Claim/15), crowd: newCrowd(cfg.Acts / 2),
	}
	if planted.On(planted.G6) {
		w.rules.Probes, w.rules.ProbeTime = 1, 0
	}
	w.stopping, w.stop = context.WithCancelCause(context.Background())
	return w
}

// at passes a point at which a test may want to stop this worker.
func (w *Worker) at(point string) {
	if w.cfg.Points != nil {
		w.cfg.Points(point)
	}
}

// Start begins to work. A worker that cannot serve the deployment reports why and takes no work.
func (w *Worker) Start(ctx context.Context) error {
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	w.started = now
	w.loops.Go(w.report)
	w.journaled = w.cfg.Journal.start(w.store, w.archive)
	if err := w.fit(); err != nil {
		w.refused.Store(&err)
		w.log.Error().Err(err).Msg("this worker takes no work")
		return nil //nolint:nilerr // it is up, and says there why it serves nothing
	}
	acts, watch, fleet, hooks := asynq.NewServeMux(), asynq.NewServeMux(), asynq.NewServeMux(), asynq.NewServeMux()
	for _, step := range []job.Step{job.StepLaunch, job.StepRecover, job.StepCleanup} {
		acts.HandleFunc(string(step), w.handleAct)
	}
	fleet.HandleFunc("fleet", w.handleTick(w.fleet))
	watch.HandleFunc("watch", w.handleWatch())
	hooks.HandleFunc("hook", w.handleHook)
	for _, queue := range []string{QueueControl, QueueLaunch, QueueUrgent} { // launches take their time: they take none from what ends machines, nor from who is urgent
		if err := w.serve(acts, w.cfg.Acts, map[string]int{queue: 1}); err != nil {
			return err
		}
	}
	if err := w.serve(fleet, fleetWide, map[string]int{QueueFleet: 1}); err != nil { // regions that hang take no act's place
		return err
	}
	if err := w.serve(hooks, w.cfg.Hooks, map[string]int{QueueHooks: 1}); err != nil { // nor do receivers that hang
		return err
	}
	if err := w.serve(watch, w.cfg.Watchers, map[string]int{QueueWatch: 1}); err != nil {
		return err
	}
	w.loops.Go(func() {
		w.tellOffersNow(w.stopping)
		w.keepChains(w.stopping)
	})
	return nil
}

// serve starts one asynq server.
func (w *Worker) serve(h asynq.Handler, width int, queues map[string]int) error {
	s := asynq.NewServerFromRedisClient(w.cfg.Queue, w.serverConfig(width, queues))
	if err := s.Start(w.stoppable(h)); err != nil {
		return fmt.Errorf("start the queue server: %w", err)
	}
	w.servers = append(w.servers, s)
	return nil
}

// serverConfig is how this worker's servers are set. Every setting has its reason in what was measured of asynq.
func (w *Worker) serverConfig(width int, queues map[string]int) asynq.Config {
	return asynq.Config{
		Concurrency:              width,
		Queues:                   queues,                 // weights, not strict: strict starves the last one
		TaskCheckInterval:        50 * time.Millisecond,  // how long an act waits for an idle worker to see it
		DelayedTaskCheckInterval: 500 * time.Millisecond, // ticks lie on whole seconds: faster buys nothing
		RetryDelayFunc:           retryDelay,
		IsFailure:                isFailure,
		ErrorHandler:             asynq.ErrorHandlerFunc(w.handlerFailed),
		ShutdownTimeout:          stopWithin,
		Logger:                   asynqLog{w.log},
		LogLevel:                 asynq.WarnLevel,
	}
}

// stoppable tells a handler that this worker stops. asynq itself cancels handlers only after it has pushed their
// tasks back; and a BaseContext that ends makes it give a task away at once, while its handler still runs. So the
// handler alone is told, and asynq waits for what it returns.
func (w *Worker) stoppable(h asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(w.stopping, func() { cancel(context.Cause(w.stopping)) })()
		return h.ProcessTask(ctx, t)
	})
}

func (w *Worker) handlerFailed(_ context.Context, t *asynq.Task, err error) {
	if isFailure(err) {
		w.log.Warn().Err(err).Str("kind", t.Type()).Msg("a task failed and is repeated")
	}
}

// Stop ends the work: what is under way is handed over, so that other workers go on at once.
func (w *Worker) Stop() {
	w.stop(ErrStopping)
	var all sync.WaitGroup
	for _, s := range w.servers {
		all.Go(func() {
			s.Stop()
			s.Shutdown()
		})
	}
	all.Wait()
	w.bodies.Wait()
	w.loops.Wait()
	w.journaled() // last: what was done until now is to be in it
}

// Ready returns nil, or why the worker does not serve: it takes no work at all, or cannot write to the store for now.
func (w *Worker) Ready() error {
	if err := w.fit(); err != nil {
		return err
	}
	if why := w.reported.Load(); why != nil && *why != nil {
		return *why
	}
	return nil
}

// fit returns nil, or why the worker cannot serve the deployment.
func (w *Worker) fit() error {
	if why := w.refused.Load(); why != nil {
		return *why // also when what was in the way has gone since: it has to be started again
	}
	if w.cfg.Ready == nil {
		return nil
	}
	return w.cfg.Ready()
}

// report keeps the worker in the list of workers until it stops.
func (w *Worker) report() {
	host, _ := os.Hostname()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		me := store.Worker{
			Name: w.cfg.Name, Host: host, PID: os.Getpid(), Version: w.cfg.Version, StartedAt: w.started,
			Ready: true, Acts: int(w.busy.Load()), Looks: w.looked.Load(),
		}
		if w.cfg.URL != nil {
			me.URL = w.cfg.URL()
		}
		if err := w.fit(); err != nil {
			me.Ready, me.Why = false, err.Error()
		}
		ctx, done := context.WithTimeout(context.Background(), reportEvery)
		err := w.store.PutWorker(ctx, me)
		w.reported.Store(&err)
		if err != nil {
			trouble, _ := store.TroubleOf(err)
			w.log.Warn().Err(err).Str("advice", trouble.Advice).Msg("cannot report to the store: jobs run on and wait to be looked at")
		}
		done()
		select {
		case <-w.stopping.Done():
			ctx, done := context.WithTimeout(context.Background(), time.Second)
			defer done()
			if err := w.store.DropWorker(ctx, w.cfg.Name); err != nil {
				w.log.Debug().Err(err).Msg("cannot leave the list of workers")
			}
			return
		case <-tick.C:
		}
	}
}

// asynqLog passes asynq's own lines on.
type asynqLog struct{ log zerolog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug().Msg(fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info().Msg(fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn().Msg(fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error().Msg(fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Fatal().Msg(fmt.Sprint(args...)) }

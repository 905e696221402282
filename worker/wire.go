package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/cloud/sim"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/version"
	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/tasks"
)

// service is a worker with all that it stands on.
type service struct {
	worker  *tasks.Worker
	web     *web.Server
	archive *archive.Archive
	clients []redis.UniversalClient
	loops   sync.WaitGroup
	end     context.CancelFunc // of the loops
}

// httpPatience is how long answers under way may take at the end.
const httpPatience = 5 * time.Second

// start connects, opens the deployment or founds it, and begins to work.
func start(ctx context.Context, cfg config.Config, log zerolog.Logger, journal *tasks.Journal) (_ *service, err error) {
	s := &service{}
	var looping context.Context
	looping, s.end = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(cfg.Home, 0o700); err != nil {
		return nil, fmt.Errorf("make the home directory: %w", err)
	}
	records, err := cfg.Server().RecordClient()
	if err != nil {
		return nil, err
	}
	s.clients = append(s.clients, records)
	queue, err := cfg.Server().QueueClient(cfg.Concurrency.Watch + 2*cfg.Concurrency.Acts)
	if err != nil {
		return nil, err
	}
	tasks.KeepWrites(queue)
	s.clients = append(s.clients, queue)
	key, err := holdKey(cfg)
	if err != nil {
		return nil, err
	}
	watched := &guard{rdb: records, log: log}
	if err := watched.preflight(ctx); err != nil {
		return nil, err
	}
	st, err := found(ctx, cfg, records, key)
	if err != nil {
		return nil, err
	}
	if err := key.publish(ctx, st, log); err != nil {
		return nil, err
	}
	if s.archive, err = archive.Open(ctx, st.Deployment().Archive); err != nil {
		return nil, err
	}
	sites, err := s.providers(ctx, cfg, st, records)
	if err != nil {
		return nil, err
	}
	quorum, err := s.quorum(ctx, cfg, st, log)
	if err != nil {
		return nil, err
	}
	watched.leases, watched.store = leaseServers(cfg), st
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), tasks.NewCollector(st))
	s.worker = tasks.New(tasks.Config{
		Name: cfg.Worker, Version: version.String(), Store: st, Queue: queue, Sites: sites, Archive: s.archive, Identity: key.opener(),
		Log: log.With().Str("worker", cfg.Worker).Logger(), Journal: journal, Metrics: metrics, Rules: rules(cfg),
		Caps: caps(cfg), Retention: retention(cfg), NoCallbacks: !cfg.Callbacks, PrivateWebhooks: cfg.Webhooks.Private,
		LeaseTTL: cfg.Lease, Quorum: quorum, Claim: cfg.Claim, Backoff: cfg.Backoff, LogLimit: int64(cfg.LogLimit), Looks: cfg.Concurrency.Watch, Acts: cfg.Concurrency.Acts,
		Ready: fit(cfg, st, key, watched),
		URL:   func() string { return s.web.URL() }, // there is one before the worker starts
	})
	if s.web, err = web.Start(web.Config{
		Listen: cfg.HTTP, Token: string(cfg.HTTPToken), Metrics: metrics, Profiles: cfg.Profiles, Ready: s.ready(st, watched),
		Store: st, Archive: s.archive, Actions: actions{st, tasks.NewDispatcher(queue)},
		Log: log.With().Str("worker", cfg.Worker).Logger(),
		Queues: func() redis.UniversalClient {
			c, err := cfg.Server().QueueClient(4)
			if err != nil {
				panic(err) // the same URL was read a moment ago
			}
			return c
		},
	}); errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another program has this port: choose another with --http (OUTLAST_HTTP); port 0 takes any free one", err)
	} else if err != nil {
		return nil, err
	}
	s.loops.Go(func() { key.follow(looping, st, log) })
	s.loops.Go(func() { watched.follow(looping) })
	return s, s.worker.Start(ctx)
}

// found opens the deployment in Redis, and makes it if this is its first worker.
func found(ctx context.Context, cfg config.Config, rdb redis.UniversalClient, key *keyholder) (*store.Store, error) {
	want := store.Deployment{Replicas: cfg.RedisReplicas, Leases: leaseServers(cfg), Shards: cfg.Shards, Archive: cfg.Archive, Recipient: key.recipient(), Caps: caps(cfg), NoCallbacks: !cfg.Callbacks}
	if serves(cfg, "local") {
		host, err := thisComputer(cfg)
		if err != nil {
			return nil, err
		}
		want.LocalHost = host
	}
	return store.Found(ctx, rdb, want)
}

// fit tells whether this worker can serve the deployment: one that cannot takes no work.
func fit(cfg config.Config, st *store.Store, key *keyholder, watched *guard) func() error {
	return func() error {
		d := st.Deployment()
		if here, err := thisComputer(cfg); serves(cfg, "local") && (err != nil || here != d.LocalHost) {
			return fmt.Errorf("the machines of this deployment's local provider live on %s, this worker is on %s: start it there, or with a provider list without local for another deployment", d.LocalHost, here)
		}
		if err := watched.fit(); err != nil {
			return err
		}
		return key.fit()
	}
}

// ready is what /readyz says.
func (s *service) ready(st *store.Store, watched *guard) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := st.Ping(ctx); err != nil {
			return err
		}
		if err := watched.ready(); err != nil {
			return err
		}
		return s.worker.Ready()
	}
}

func caps(cfg config.Config) store.Caps { return store.Caps{Launches: cfg.Launches, Live: cfg.Live} }

func retention(cfg config.Config) tasks.Retention {
	r := cfg.Retention
	return tasks.Retention{Jobs: r.Jobs, Count: r.Count, Archive: r.Archive, Logs: r.Logs, LogBytes: int64(r.LogBytes)}
}

func serves(cfg config.Config, provider string) bool {
	for _, p := range cfg.Providers {
		if p == provider {
			return true
		}
	}
	return false
}

// thisComputer names where the local provider's machines live: the computer and the directory.
func thisComputer(cfg config.Config) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this computer: %w", err)
	}
	home, err := filepath.EvalSymlinks(cfg.Home)
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return host + ":" + home, nil
}

// providers is the only place that knows concrete providers.
func (s *service) providers(ctx context.Context, cfg config.Config, st *store.Store, records redis.UniversalClient) (tasks.Sites, error) {
	sites := tasks.Sites{}
	for _, name := range cfg.Providers {
		switch name {
		case "local":
			p, err := local.New(local.Config{
				Root: filepath.Join(cfg.Home, "local"), Deployment: st.Deployment().ID,
				Machine: []string{self, "machine"}, Zones: zones(cfg.Local.Zones),
			})
			if err != nil {
				return nil, err
			}
			sites[name] = &tasks.Site{
				Provider: p, Dialer: local.Dialer{}, Agent: []string{"agent"}, Dir: p.AgentDir, NoticeFile: p.NoticeFile, PowerOff: p.PowerOff, ViewEvery: time.Second,
			}
		case "sim":
			site, err := s.simulation(ctx, cfg, st, records)
			if err != nil {
				return nil, err
			}
			sites[name] = site
		default:
			return nil, fmt.Errorf("provider %q is not known: this version has local and sim", name)
		}
		sites[name].Limits = limits(cfg, name)
	}
	return sites, nil
}

// limits are those of a provider's calls.
func limits(cfg config.Config, provider string) tasks.Limits {
	of := cfg.LimitsOf(provider)
	return tasks.Limits{
		Write: store.Rate{PerSecond: of.Write.PerSecond, Burst: of.Write.Burst},
		Read:  store.Rate{PerSecond: of.Read.PerSecond, Burst: of.Read.Burst},
	}
}

// simulation opens the world of the sim provider.
func (s *service) simulation(ctx context.Context, cfg config.Config, st *store.Store, records redis.UniversalClient) (*tasks.Site, error) {
	world, err := sim.LoadWorld(cfg.Sim.World)
	if err != nil {
		return nil, err
	}
	rdb := records
	if cfg.Sim.Redis != "" {
		if rdb, err = cfg.Sim.Redis.RecordClient(); err != nil {
			return nil, err
		}
		s.clients = append(s.clients, rdb)
	}
	c, err := sim.Open(ctx, rdb, world)
	if err != nil {
		return nil, err
	}
	p := c.Provider(st.Deployment().ID, cfg.Worker)
	return &tasks.Site{
		Provider: p, Dialer: c.Dialer(cfg.Worker), Agent: sim.AgentArgv, Dir: p.AgentDir, NoticeFile: p.NoticeFile, ViewEvery: c.World().ViewEvery,
	}, nil
}

func zones(in []config.Zone) []local.Zone {
	var out []local.Zone
	for _, z := range in {
		out = append(out, local.Zone{
			Name: z.Name, Capacity: z.Capacity, Boot: z.Boot, CPUs: z.CPUs, MemoryGB: z.Memory, Price: z.Price, SpotPrice: z.SpotPrice,
			Accelerators: z.Accelerators,
		})
	}
	return out
}

func rules(cfg config.Config) job.Rules {
	r := job.DefaultRules
	r.Quick, r.Quiet = cfg.Intervals.Quick, cfg.Intervals.Quiet
	r.ExitGrace = cfg.FailureGrace
	r.Probes, r.ProbeTime = cfg.Unreachable.Probes, cfg.Unreachable.Elapsed
	r.BootTimeout = cfg.BootTimeout
	r.Durable = cfg.Durable
	return r
}

// stop hands the jobs over and closes everything.
func (s *service) stop() error {
	s.worker.Stop()
	return s.close()
}

func (s *service) close() error {
	s.end()
	s.loops.Wait()
	var errs []error
	if s.web != nil {
		ctx, done := context.WithTimeout(context.Background(), httpPatience)
		defer done()
		errs = append(errs, s.web.Stop(ctx))
	}
	if s.archive != nil {
		errs = append(errs, s.archive.Close())
	}
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

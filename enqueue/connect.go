package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/history"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// dispatcher makes queue tasks, so that what was written into a record takes effect at once. Losing one is harmless.
type dispatcher interface {
	Call(ctx context.Context, s *store.Store, ids []job.ID) error
	RunWatch(ctx context.Context, shard int, epoch int64) error
	RunChain(ctx context.Context, chain string, epoch int64) error
}

// deployment is what a command works with.
type deployment struct {
	app      *app
	store    *store.Store
	jobs     history.Jobs // of the store and the archive
	dispatch dispatcher
	caps     store.Caps
	bucket   string // URL of the archive
	files    *archive.Archive
}

// queueConnections is how many connections to asynq's part of Redis a client needs.
const queueConnections = 1

// deployment opens the deployment that the flags, the environment, the config file or a running `worker dev` name.
func (a *app) deployment(ctx context.Context) (*deployment, error) {
	cfg, err := config.Load(config.Defaults(), a.settings, os.Environ())
	if err != nil {
		return nil, &usageError{err: err}
	}
	url, err := findRedis(cfg)
	if err != nil {
		return nil, err
	}
	records, err := cfg.ServerAt(url).RecordClient()
	if err != nil {
		return nil, &usageError{err: err}
	}
	a.closers = append(a.closers, records.Close)
	s, err := store.Open(ctx, records)
	if errors.Is(err, store.ErrUnavailable) {
		return nil, fmt.Errorf("redis at %s: %w", url, err)
	}
	if err != nil {
		return nil, err
	}
	queue, err := a.queue(cfg.ServerAt(url))
	if err != nil {
		return nil, err
	}
	d := &deployment{
		app: a, store: s, dispatch: tasks.NewDispatcher(queue),
		caps: s.Deployment().Caps, bucket: s.Deployment().Archive,
	}
	if d.bucket == "" || cfg.Origin("archive") != "default" {
		d.bucket = cfg.Archive
	}
	d.jobs = history.Jobs{Store: s, Open: func(ctx context.Context) (history.Archive, error) { return d.archive(ctx) }}
	return d, nil
}

// queue opens asynq's connection.
func (a *app) queue(server config.Redis) (redis.UniversalClient, error) {
	c, err := server.QueueClient(queueConnections)
	if err != nil {
		return nil, &usageError{err: err}
	}
	tasks.KeepWrites(c)
	a.closers = append(a.closers, c.Close)
	return c, nil
}

// findRedis is the Redis that was named, or that of a worker dev on this computer.
func findRedis(cfg config.Config) (config.RedisURL, error) {
	if cfg.Redis != "" {
		return cfg.Redis, nil
	}
	dev, err := config.ReadDev(cfg.Home)
	if errors.Is(err, config.ErrNoDev) {
		return "", fmt.Errorf("%w: none was named, and no worker dev runs here", errNoRedis)
	}
	if err != nil {
		return "", err
	}
	return config.RedisURL(dev.Redis), nil
}

// archive opens the bucket of bundles and logs when it is needed first.
func (d *deployment) archive(ctx context.Context) (*archive.Archive, error) {
	if d.files != nil {
		return d.files, nil
	}
	files, err := archive.Open(ctx, d.bucket)
	if err != nil {
		return nil, err
	}
	d.files = files
	d.app.closers = append(d.app.closers, files.Close)
	return files, nil
}

// wake makes what a wake found take effect at once. It takes the results of the store's methods as they come.
func (d *deployment) wake(ctx context.Context) func(store.Woken, error) error {
	return func(w store.Woken, err error) error {
		if err != nil || !w.Live {
			return err
		}
		return d.dispatch.RunWatch(ctx, w.Shard, w.Epoch)
	}
}

// addSettings adds the flags of the settings that a client has. Their names are keys of the configuration.
func (a *app) addSettings(flags *pflag.FlagSet) {
	flags.String("redis", "", "`URL` of the deployment's Redis, such as redis://host:6379")
	flags.String("config", "", "config `FILE` (default: config.yaml in ~/.config/outlast)")
	flags.String("home", "", "`DIR` of this computer's worker dev")
	a.settings = flags
}

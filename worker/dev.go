package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/devredis"
	"github.com/outlast-dev/outlast/tasks"
)

func devCommand() *cobra.Command {
	defaults := config.DevDefaults()
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process, Redis included",
		Long: `Run everything in one process, Redis included: for a laptop, and to try things out.

All that it keeps lies in its home directory. Commands of enqueue with the same OUTLAST_HOME find it by themselves. Jobs
that run when it ends go on, and are found again when it is started again.`,
		Example: "  worker dev &\n  enqueue launch -- echo hello",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(defaults, cmd.Flags(), os.Environ())
			if err != nil {
				return &usageError{err}
			}
			return dev(cmd.Context(), cfg)
		},
	}
	config.AddFlags(cmd.Flags(), defaults)
	return cmd
}

// dev starts Redis, unless the settings name one, then a worker, and tells clients where they are.
func dev(ctx context.Context, cfg config.Config) (err error) {
	journal := tasks.NewJournal()
	log, err := newLog(cfg, journal)
	if err != nil {
		return err
	}
	redisGone := make(<-chan struct{})
	if cfg.Redis == "" {
		server, err2 := devRedis(ctx, &cfg, log)
		if err2 != nil {
			return err2
		}
		redisGone = server.Done()
		defer func() { err = errors.Join(err, stopRedis(server)) }()
	}
	s, err := start(ctx, cfg, log, journal)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := config.WriteDev(cfg.Home, config.Dev{Redis: string(cfg.Redis), HTTP: s.web.URL(), PID: os.Getpid(), Started: time.Now()}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, config.RemoveDev(cfg.Home)) }()
	log.Info().Str("home", cfg.Home).Str("page", s.web.URL()).Msg("ready: enqueue launch FILE")
	select {
	case <-ctx.Done():
		return nil
	case <-redisGone:
		return errors.New("redis ended by itself; what it kept is in its append-only file and is read at the next start")
	}
}

func devRedis(ctx context.Context, cfg *config.Config, log zerolog.Logger) (*devredis.Server, error) {
	server, err := devredis.Start(ctx, filepath.Join(cfg.Home, "redis"), log)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	cfg.Redis = config.RedisURL(server.URL())
	return server, nil
}

func stopRedis(server *devredis.Server) error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return server.Stop(ctx)
}

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/tasks"
)

func runCommand() *cobra.Command {
	defaults := config.Defaults()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve a deployment, as one worker of any number",
		Long: `Serve a deployment, as one worker of any number.

Settings come from flags, then OUTLAST_* variables, then the configuration file, then defaults. TERM or INT hands the
jobs over to the other workers and ends; the machines and what runs on them go on.`,
		Example: "  worker run --redis redis://localhost:6379\n  OUTLAST_REDIS=redis://localhost:6379 worker run --http 127.0.0.1:9000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(defaults, cmd.Flags(), os.Environ())
			if err != nil {
				return &usageError{err}
			}
			if cfg.Redis == "" {
				cfg.Redis = "redis://127.0.0.1:6379"
			}
			return run(cmd.Context(), cfg)
		},
	}
	config.AddFlags(cmd.Flags(), defaults)
	return cmd
}

func run(ctx context.Context, cfg config.Config) error {
	journal := tasks.NewJournal()
	log, err := newLog(cfg, journal)
	if err != nil {
		return err
	}
	s, err := start(ctx, cfg, log, journal)
	if err != nil {
		return err
	}
	log.Info().Str("http", s.web.URL()).Str("redis", cfg.Redis.String()).Msg("the worker serves its deployment")
	<-ctx.Done()
	log.Info().Msg("stopping: the jobs are handed over")
	return s.stop()
}

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/config"
)

// newLog makes the worker's log on standard error: for people on a terminal, JSON elsewhere.
func newLog(cfg config.Config) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log_level: %w", err)
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	log := zerolog.New(os.Stderr)
	terminal := isatty.IsTerminal(os.Stderr.Fd())
	if cfg.LogFormat == config.LogConsole || cfg.LogFormat == config.LogAuto && terminal {
		log = zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000", NoColor: !terminal || os.Getenv("NO_COLOR") != ""})
	}
	log = log.Level(level).With().Timestamp().Logger()
	// go-redis writes about five lines a second while Redis is away.
	redis.SetLogger(redisLog{log.Sample(&zerolog.BurstSampler{Burst: 3, Period: 10 * time.Second})})
	return log, nil
}

type redisLog struct{ log zerolog.Logger }

func (l redisLog) Printf(_ context.Context, format string, v ...any) {
	l.log.Warn().Msgf("redis: "+format, v...)
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/tasks"
)

// newLog makes the worker's log on standard error: for people on a terminal, JSON elsewhere. The journal gets the same lines.
func newLog(cfg config.Config, journal *tasks.Journal) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(cfg.LogLevel)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log_level: %w", err)
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	var out io.Writer = os.Stderr
	terminal := isatty.IsTerminal(os.Stderr.Fd())
	if cfg.LogFormat == config.LogConsole || cfg.LogFormat == config.LogAuto && terminal {
		out = zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000", NoColor: !terminal || os.Getenv("NO_COLOR") != ""}
	}
	log := zerolog.New(zerolog.MultiLevelWriter(out, journal)).Level(level).With().Timestamp().Logger()
	// go-redis writes about five lines a second while Redis is away.
	redis.SetLogger(redisLog{log.Sample(&zerolog.BurstSampler{Burst: 3, Period: 10 * time.Second})})
	return log, nil
}

type redisLog struct{ log zerolog.Logger }

func (l redisLog) Printf(_ context.Context, format string, v ...any) {
	// The words of a server are among it, and messages reach a terminal as they are, unlike fields.
	l.log.Warn().Msg("redis: " + render.Text(fmt.Sprintf(format, v...)))
}

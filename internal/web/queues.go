package web

import (
	"errors"
	"net/http"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"
)

const queuesPath = "/queues"

// monitor is asynqmon, kept behind this one file: it is not maintained any more.
//
// It is read-only: its bulk buttons are one script each that stalls Redis, and the record, not the queue, is what a user
// would want to change.
type monitor struct{ mon *asynqmon.HTTPHandler }

// connection gives asynqmon connections of its own, since it closes them.
type connection struct{ make func() redis.UniversalClient }

func (c connection) MakeRedisClient() any { return c.make() }

func newMonitor(conn func() redis.UniversalClient) *monitor {
	return &monitor{mon: asynqmon.New(asynqmon.Options{
		RootPath:     queuesPath,
		RedisConnOpt: connection{conn},
		ReadOnly:     true,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(func(string, []byte) string {
			return "" // our tasks have none, and what others put there is not for a page
		}),
		ResultFormatter: asynqmon.ResultFormatterFunc(func(string, []byte) string { return "" }),
	})}
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mon.ServeHTTP(w, r) }

func (m *monitor) close() error {
	if err := m.mon.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

var _ asynq.RedisConnOpt = connection{}

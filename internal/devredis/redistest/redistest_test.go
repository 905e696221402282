package redistest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A killed server comes back with everything that it had confirmed.
func TestKillAndRestartLoseNothing(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Client(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill9()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if got, err := c.Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	s.Flush()
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("after the flush: %v, want redis.Nil", err)
	}
}

// A frozen server lets calls run into their deadline, and answers again when thawed.
func TestFreezeIsAnOutage(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Client(t)
	s.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a frozen server answers")
	}
	s.Thaw()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		Start(b).Kill9()
	}
}

package store

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
)

// TestG10Outage ensures that every call says "unavailable" while Redis is away, which is a pause and no verdict, and that
// a Redis that was killed comes back with every job it had accepted.
func TestG10Outage(t *testing.T) {
	srv := redistest.Start(t)
	opts := srv.Options()
	opts.MaxRetries, opts.DialerRetries = -1, 1
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	b := benchOn(t, rdb, 2)
	ids := b.submit(t, 20)
	c := must[Claimed](t)(b.Begin(b.ctx, ids[0], job.StepLaunch, 1, "token", lease))
	before := b.dump(t)
	srv.Kill9()
	for name, call := range map[string]func() error{
		"submit":    func() error { _, err := b.Submit(b.ctx, Submission{Request: typical(1), Key: "k"}); return err },
		"claim":     func() error { _, err := b.Claim(b.ctx, 0, 10, 0, lease, grace); return err },
		"begin":     func() error { _, err := b.Begin(b.ctx, ids[1], job.StepLaunch, 1, "t", lease); return err },
		"beat":      func() error { _, err := b.Beat(b.ctx, ids[0], c.Fence, lease); return err },
		"commit":    func() error { _, err := b.Commit(b.ctx, 0, Commit{From: &c, Next: c.Clone()}); return err },
		"wake":      func() error { _, err := b.Wake(b.ctx, ids[0]); return err },
		"cancel":    func() error { _, err := b.Cancel(b.ctx, ids[0], "ada", 0); return err },
		"load":      func() error { _, err := b.Load(b.ctx, ids[0]); return err },
		"load many": func() error { _, _, err := b.LoadMany(b.ctx, ids); return err },
		"find":      func() error { _, err := b.Find(b.ctx, Query{}); return err },
		"count":     func() error { _, err := b.Statuses(b.ctx); return err },
		"line":      func() error { _, err := b.StandInLine(b.ctx, ids); return err },
		"reclaim":   func() error { _, err := b.ChainReclaim(b.ctx, []string{"fleet"}, grace); return err },
		"wake one":  func() error { _, err := b.ChainWake(b.ctx, "fleet"); return err },
		"hold":      func() error { _, _, err := b.Hold(b.ctx, Caps{Launches: 1}, 1, 0); return err },
		"ping":      func() error { return b.Ping(b.ctx) },
		"open":      func() error { _, err := Open(b.ctx, rdb); return err },
		"workers":   func() error { _, err := b.Workers(b.ctx); return err },
		"forgotten": func() error { _, err := b.Forgotten(b.ctx); return err },
	} {
		if err := call(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	srv.Restart()
	b = benchOn(t, srv.Client(t), 2)
	if len(b.dump(t)) != len(before) {
		t.Error("the server came back without all its keys")
	}
	b.pass(t, time.Hour)
	b.sound(t, ids)
}

package store

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/outlast-dev/outlast/internal/job"
)

// clockBench is a store whose Redis has a clock that a test can put forward and back.
func clockBench(t *testing.T) (*bench, func(time.Duration)) {
	t.Helper()
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{
		Addr: server.Addr(), DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() })
	at := time.Now()
	server.SetTime(at)
	return benchOn(t, c, 1), func(d time.Duration) {
		at = at.Add(d)
		server.SetTime(at)
	}
}

// claimed are the jobs that a claim takes now.
func (b *bench) claimed(t *testing.T) []Claimed {
	t.Helper()
	return must[Due](t)(b.Claim(b.ctx, 0, 10, 0, lease, grace)).Jobs
}

// TestG2_ClockPutForward ensures that a clock of Redis which jumps forward, as after a fail-over, ends claims early and
// nothing else: the next driver goes on, what the first one does counts no more, and a chain has one epoch (G2).
func TestG2_ClockPutForward(t *testing.T) {
	b, jump := clockBench(t)
	b.watched(t)
	first := b.claimed(t)[0]
	taken := must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"watch-0"}, grace))
	tick := must[Tick](t)(b.ChainBegin(b.ctx, "watch-0", taken["watch-0"], grace))
	jump(time.Hour)
	second := b.claimed(t)
	if len(second) != 1 || second[0].Fence <= first.Fence {
		t.Fatalf("after the jump the job is claimed as %+v, before as fence %d", second, first.Fence)
	}
	if err := b.tryCommit(t, &first, first.Clone(), false); !errors.Is(err, ErrStale) {
		t.Errorf("the first driver's commit: %v, want ErrStale", err)
	}
	b.commit(t, &second[0], second[0].Clone(), false)
	epochs := 0
	for range 2 { // two workers that look after the chains
		epochs += len(must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"watch-0"}, grace)))
	}
	if epochs != 1 {
		t.Errorf("%d workers took the chain over", epochs)
	}
	if _, err := b.ChainEnd(b.ctx, tick, time.Second, grace); !errors.Is(err, ErrStale) {
		t.Errorf("the tick from before ends with %v, want ErrStale", err)
	}
}

// TestG10_ClockPutBack ensures that a clock of Redis which is put back delays looks that were due, at most by the jump,
// and nothing that somebody asks for: a wake, a cancel, a new job. What is claimed meanwhile counts, and the ticks of the
// watch come as before.
func TestG10_ClockPutBack(t *testing.T) {
	b, jump := clockBench(t)
	id := b.watched(t)
	c := b.claimed(t)[0]
	next := c.Clone()
	next.Due = c.Now.Add(10 * time.Second)
	b.commit(t, &c, next, false)
	taken := must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"watch-0"}, grace))
	jump(-time.Hour)
	tick := must[Tick](t)(b.ChainBegin(b.ctx, "watch-0", taken["watch-0"], grace))
	if in := must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Second, grace)); in > time.Second {
		t.Errorf("the next tick comes in %s", in)
	}
	if got := b.claimed(t); len(got) != 0 {
		t.Errorf("the job is due before its time by the new clock: %+v", got)
	}
	must[Woken](t)(b.Wake(b.ctx, id))
	got := b.claimed(t)
	if len(got) != 1 {
		t.Fatalf("a wake after the jump: %+v", got)
	}
	next = got[0].Clone()
	next.Due = got[0].Now.Add(10 * time.Second)
	b.commit(t, &got[0], next, false)
	jump(11 * time.Second)
	if got = b.claimed(t); len(got) != 1 {
		t.Fatalf("once looked at, a job is due by the new clock: %+v", got)
	}
	next = got[0].Clone()
	next.Due = got[0].Now.Add(time.Hour)
	b.commit(t, &got[0], next, false)
	must[Woken](t)(b.Cancel(b.ctx, id, "test", 0))
	if got = b.claimed(t); len(got) != 1 || got[0].Cancel == nil {
		t.Errorf("a cancel after the jump: %+v", got)
	}
	fresh := b.submit(t, 1)[0]
	must[Claimed](t)(b.Begin(b.ctx, fresh, job.StepLaunch, 1, "token", lease))
	jump(2 * time.Hour)
	if got = b.claimed(t); len(got) != 1 {
		t.Errorf("after the clock was put right: %+v", got)
	}
}

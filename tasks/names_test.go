package tasks

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

var acts = []job.Step{job.StepLaunch, job.StepRecover, job.StepCleanup}

// Ensure that the id of an act can be read back, and has no slash, which asynqmon cannot show.
func TestActIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom(acts).Draw(t, "step")
		id := job.ID(rapid.Int64Min(1).Draw(t, "job"))
		n := rapid.Int64Min(1).Draw(t, "n")
		s := actID(step, id, n)
		step2, id2, n2, err := parseActID(s)
		if err != nil || step2 != step || id2 != id || n2 != n {
			t.Fatalf("%s is read as %s, %d, %d, %v", s, step2, id2, n2, err)
		}
		if strings.Contains(s, "/") {
			t.Fatalf("%s has a slash", s)
		}
	})
}

// Ensure that the id of a chain's task can be read back, whatever colons are in the chain's name.
func TestChainIDs(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		chain := rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 99), store.WatchChain),
			rapid.Just(ChainAdmission),
			rapid.Custom(func(t *rapid.T) string { return ViewChain(word.Draw(t, "provider"), word.Draw(t, "region")) }),
		).Draw(t, "chain")
		epoch := rapid.Int64Min(1).Draw(t, "epoch")
		s := chainID(chain, epoch)
		if chain2, epoch2, err := parseChainID(s); err != nil || chain2 != chain || epoch2 != epoch {
			t.Fatalf("%s is read as %s, %d, %v", s, chain2, epoch2, err)
		}
		if strings.Contains(s, "/") {
			t.Fatalf("%s has a slash", s)
		}
	})
}

// Ensure that what anybody else may have put into the queue is refused, not misread.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "launch", "launch:1", "launch:1:x", "launch:x:1", "launch:1:1:1", "watch:1:1", "done:1:1", "Launch:1:1", "launch:1:99999999999999999999"} {
		if step, id, n, err := parseActID(s); err == nil {
			t.Errorf("%q is read as %s, %d, %d", s, step, id, n)
		}
	}
	for _, s := range []string{"", "watch-1", "watch-1:", "watch-1:x", "watch-1:1.5"} {
		if chain, epoch, err := parseChainID(s); err == nil {
			t.Errorf("%q is read as %s, %d", s, chain, epoch)
		}
	}
	for _, s := range []string{"", "watch-", "watch-x", "watch-01", "watch-+1", "view-1", "1", ChainAdmission} {
		if shard, err := watchShard(s); err == nil {
			t.Errorf("%q is read as shard %d", s, shard)
		}
	}
}

// Ensure that the watch has its queue for itself, that launches cannot crowd out recoveries and clean-ups, and that no others crowd
// out those of urgent jobs.
func TestQueues(t *testing.T) {
	t.Parallel()
	for chain, want := range map[string]string{
		store.WatchChain(0): QueueWatch, store.WatchChain(63): QueueWatch,
		ChainAdmission: QueueFleet, ViewChain("local", "a"): QueueFleet, ViewChain("watch-", "a"): QueueFleet,
	} {
		if have := chainQueue(chain); have != want {
			t.Errorf("chain %s is in queue %s, want %s", chain, have, want)
		}
	}
	for _, c := range []struct {
		step     job.Step
		priority int
		want     string
	}{
		{job.StepLaunch, 0, QueueLaunch}, {job.StepRecover, 0, QueueControl}, {job.StepCleanup, 0, QueueControl},
		{job.StepLaunch, job.MinPriority, QueueLaunch}, {job.StepRecover, job.MinPriority, QueueControl},
		{job.StepLaunch, 1, QueueUrgent}, {job.StepRecover, job.MaxPriority, QueueUrgent}, {job.StepCleanup, job.MaxPriority, QueueControl},
	} {
		if have := queueOf(c.step, c.priority); have != c.want {
			t.Errorf("%s of a job with priority %d is in queue %s, want %s", c.step, c.priority, have, c.want)
		}
	}
	for shard := range 100 {
		if have, err := watchShard(store.WatchChain(shard)); err != nil || have != shard {
			t.Errorf("shard %d is read as %d, %v", shard, have, err)
		}
	}
}

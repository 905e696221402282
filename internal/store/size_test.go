package store

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// What a job may take of Redis, in bytes, with its request, events and index entries. A hundred thousand that live fit into
// 200 MB with room to spare.
const (
	mostPending = 900
	mostRunning = 1900
	mostEnded   = 2300
)

// launched makes all jobs look as if the act of their launch had begun.
var launched = redis.NewScript(`
for _, key in ipairs(redis.call('KEYS', 'ol:*:job:*')) do
  redis.call('HSET', key, 'step', 'watch', 'ran', 1, 'holder', '01JDYMV2Q4N8X5W7Z3K6T9B1CD')
end
return 1`)

// TestSize ensures that a typical job that runs takes little memory.
func TestSize(t *testing.T) {
	t.Parallel()
	b := newBench(t, 64)
	const jobs = 10_000
	b.submit(t, 64)
	before := b.usedMemory(t)
	ids := b.submit(t, jobs)
	pending := b.usedMemory(t)
	must[int64](t)(launched.Run(b.ctx, b.rdb, nil).Int64())
	b.pass(t, lease)
	for shard := range b.Shards() {
		due := must[Due](t)(b.Claim(b.ctx, shard, jobs, 0, lease, grace))
		commits := make([]Commit, len(due.Jobs))
		for i := range due.Jobs {
			commits[i] = Commit{From: &due.Jobs[i], Next: running(due.Jobs[i].Record)}
		}
		must[[]error](t)(b.Commit(b.ctx, shard, commits...))
	}
	live := b.usedMemory(t)
	t.Logf("bytes per pending job: %d, per running job: %d", (pending-before)/jobs, (live-before)/jobs)
	for _, kind := range []string{"job", "req", "ev"} {
		n := must[int64](t)(b.rdb.MemoryUsage(b.ctx, b.keys.of(ids[jobs/2], kind)).Result())
		t.Logf("of these %s: %d", kind, n)
	}
	b.pass(t, 2*lease)
	for shard := range b.Shards() {
		due := must[Due](t)(b.Claim(b.ctx, shard, jobs, 0, lease, grace))
		commits := make([]Commit, len(due.Jobs))
		for i := range due.Jobs {
			commits[i] = Commit{From: &due.Jobs[i], Next: succeeded(due.Jobs[i].Record)}
		}
		must[[]error](t)(b.Commit(b.ctx, shard, commits...))
	}
	ended := b.usedMemory(t)
	t.Logf("bytes per ended job: %d", (ended-before)/jobs)
	for _, c := range []struct {
		what      string
		got, most int
	}{{"pending", pending, mostPending}, {"running", live, mostRunning}, {"ended", ended, mostEnded}} {
		if got := (c.got - before) / jobs; got > c.most {
			t.Errorf("a job that is %s takes %d bytes, which may be %d", c.what, got, c.most)
		}
	}
}

// succeeded is a record as it is when the job is over and its machine gone.
func succeeded(r job.Record) job.Record {
	next := r.Clone()
	next.Step, next.Live, next.Look, next.Past = job.StepDone, nil, job.Look{}, r.Live
	next.Tasks[0].Status, next.Tasks[0].EndedAt = job.Succeeded, r.SubmittedAt
	next.Tasks[0].Cause = job.Cause{Code: job.CodeSucceeded, Text: "the code ended with exit code 0"}
	next.Events = []job.Event{{At: r.SubmittedAt, Kind: "status", Attempt: 1, From: "RUNNING", To: "SUCCEEDED", Cause: next.Tasks[0].Cause}}
	return next
}

func (b *bench) usedMemory(tb fataler) int {
	tb.Helper()
	info := must[string](tb)(b.rdb.Info(b.ctx, "memory").Result())
	m := regexp.MustCompile(`used_memory_dataset:(\d+)`).FindStringSubmatch(info)
	if m == nil {
		tb.Fatal("INFO memory does not tell used_memory_dataset")
	}
	return must[int](tb)(strconv.Atoi(m[1]))
}

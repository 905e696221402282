package store

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// mostPerJob is what one live job may take of Redis, in bytes, with its request, events and index entries: a hundred
// thousand of them fit into 200 MB.
const mostPerJob = 2048

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
	const jobs = 20_000
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
	if got := (live - before) / jobs; got > mostPerJob {
		t.Errorf("a running job takes %d bytes", got)
	}
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

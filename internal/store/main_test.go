package store

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
)

// checks is how many cases a property is tried with unless -rapid.checks says otherwise. Each is a life of dozens of
// steps, of which a hundred more find little and take a minute with the race detector.
const checks = "25"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", checks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// Times that are far from the few milliseconds a test takes, so that only pass decides what is over.
const (
	lease = time.Minute
	grace = 10 * time.Minute
)

// bench is a store under test.
type bench struct {
	*Store
	rdb redis.UniversalClient
	ctx context.Context
}

// newBench founds a deployment on a redis-server of its own.
func newBench(tb testing.TB, shards int) *bench {
	tb.Helper()
	return benchOn(tb, redistest.Start(tb).Client(tb), shards)
}

// onBoth runs a test against a real redis-server and against miniredis, on which worker dev falls back.
func onBoth(t *testing.T, shards int, f func(*testing.T, *bench)) {
	t.Run("redis", func(t *testing.T) { t.Parallel(); f(t, newBench(t, shards)) })
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); f(t, benchOn(t, inMemory(t), shards)) })
}

func inMemory(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: miniredis.RunT(tb).Addr(), DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// again empties the store and founds the deployment anew, for the next case of a property.
func (b *bench) again(tb fataler) {
	tb.Helper()
	must[string](tb)(b.rdb.FlushAll(b.ctx).Result())
	must[*Store](tb)(Found(b.ctx, b.rdb, Deployment{ID: "test", Shards: b.keys.shards}))
}

func benchOn(tb testing.TB, rdb redis.UniversalClient, shards int) *bench {
	tb.Helper()
	s, err := Found(tb.Context(), rdb, Deployment{ID: "test", Shards: shards})
	if err != nil {
		tb.Fatal(err)
	}
	return &bench{Store: s, rdb: rdb, ctx: tb.Context()}
}

// typical is a request as users write them.
func typical(tasks int) job.Request {
	r := job.Request{Name: "train-resnet", User: "ada"}
	for i := range tasks {
		r.Tasks = append(r.Tasks, job.TaskRequest{
			Name:      "task-" + strconv.Itoa(i),
			Resources: job.Resources{Any: []job.Want{{Provider: "aws", CPUs: job.Quantity{N: 4, AtLeast: true}, UseSpot: true}}},
			Envs:      map[string]string{"MODEL": "resnet50", "EPOCHS": "90"},
			Setup:     "pip install -r requirements.txt",
			Run:       "python train.py --model $MODEL --epochs $EPOCHS --checkpoint-dir /mnt/checkpoints",
		})
	}
	return r
}

// fataler is what both tests and rapid's checks have.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func must[T any](tb fataler) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// must fails the test on an error.
func (b *bench) must(tb fataler, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// submit writes n typical jobs.
func (b *bench) submit(tb fataler, n int) []job.ID {
	tb.Helper()
	return must[[]job.ID](tb)(b.Submit(b.ctx, Submission{Request: typical(1), Count: n}))
}

// watched brings a new job to step watch, as a launch does, and returns its id.
func (b *bench) watched(tb fataler) job.ID {
	tb.Helper()
	id := b.submit(tb, 1)[0]
	c := must[Claimed](tb)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
	next := c.Clone()
	next.Step, next.Tasks[0].Status = job.StepWatch, job.Running
	b.commit(tb, &c, next, false)
	return id
}

// commit writes one decision and fails the test if it is refused.
func (b *bench) commit(tb fataler, c *Claimed, next job.Record, keep bool) {
	tb.Helper()
	if err := b.tryCommit(tb, c, next, keep); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) tryCommit(tb fataler, c *Claimed, next job.Record, keep bool) error {
	tb.Helper()
	return must[[]error](tb)(b.Commit(b.ctx, b.keys.shardOf(c.ID), Commit{From: c, Next: next, Keep: keep}))[0]
}

// claim takes what is due in the shard of id and returns its claim.
func (b *bench) claim(tb fataler, id job.ID) Claimed {
	tb.Helper()
	due := must[Due](tb)(b.Claim(b.ctx, b.keys.shardOf(id), 200, 0, lease, grace))
	for _, c := range due.Jobs {
		if c.ID == id {
			return c
		}
	}
	tb.Fatalf("job %d was not due", id)
	return Claimed{}
}

func (b *bench) load(tb fataler, id job.ID) job.Record {
	tb.Helper()
	return must[job.Record](tb)(b.Load(b.ctx, id))
}

// isDue reports whether somebody would look at the job now.
func (b *bench) isDue(tb fataler, id job.ID) bool {
	tb.Helper()
	rec, now := b.load(tb, id), must[job.Time](tb)(b.Now(b.ctx))
	return rec.Step != job.StepDone && rec.Due <= now
}

// later moves every time in the store back.
var later = redis.NewScript(`
for _, key in ipairs(redis.call('KEYS', 'ol:*')) do
  local name = string.match(key, '}:(.*)')
  if name == 'due' or name == 'slots' or name == 'hooks' or string.find(name, '^rate:.*:expected$') then
    local z = redis.call('ZRANGE', key, 0, -1)
    for _, m in ipairs(z) do redis.call('ZINCRBY', key, -ARGV[1], m) end
  elseif string.find(name, '^job:') or string.find(name, '^hook:') then
    local held = redis.pcall('HGET', key, 'held') -- an error for a damaged record
    if tonumber(held) and held ~= '0' then redis.call('HINCRBY', key, 'held', -ARGV[1]) end
  elseif string.find(name, '^rate:') and redis.call('TYPE', key).ok == 'hash' then
    redis.call('HINCRBY', key, 'at', -ARGV[1])
  elseif string.find(name, '^chain') then
    if redis.call('HEXISTS', key, 'due') == 1 then redis.call('HINCRBY', key, 'due', -ARGV[1]) end
  end
end
return 1`)

// pass lets d pass: every time in the store is moved back by it. Nobody has to wait, and nothing but the scripts'
// own reading of the clock is different from real time.
func (b *bench) pass(tb fataler, d time.Duration) {
	tb.Helper()
	must[any](tb)(later.Run(b.ctx, b.rdb, nil, d.Milliseconds()).Result())
}

func (b *bench) allKeys(tb fataler) map[string]string {
	tb.Helper()
	keys := must[[]string](tb)(b.rdb.Keys(b.ctx, "ol:*").Result())
	out := make(map[string]string, len(keys))
	for _, k := range keys {
		out[k] = must[string](tb)(b.rdb.Type(b.ctx, k).Result())
	}
	return out
}

// dump is all that the store holds, in a form that can be compared.
func (b *bench) dump(tb fataler) map[string]any {
	tb.Helper()
	out := map[string]any{}
	for key, kind := range b.allKeys(tb) {
		switch kind {
		case "hash":
			out[key] = must[map[string]string](tb)(b.rdb.HGetAll(b.ctx, key).Result())
		case "zset":
			out[key] = must[[]redis.Z](tb)(b.rdb.ZRangeWithScores(b.ctx, key, 0, -1).Result())
		case "set":
			members := must[[]string](tb)(b.rdb.SMembers(b.ctx, key).Result())
			slices.Sort(members)
			out[key] = members
		case "list":
			out[key] = must[[]string](tb)(b.rdb.LRange(b.ctx, key, 0, -1).Result())
		default:
			out[key] = must[string](tb)(b.rdb.Get(b.ctx, key).Result())
		}
	}
	return out
}

// unchanged fails the test unless f leaves every key as it is.
func (b *bench) unchanged(tb fataler, what string, f func()) {
	tb.Helper()
	before := b.dump(tb)
	f()
	if diff := cmp.Diff(before, b.dump(tb)); diff != "" {
		tb.Fatalf("%s changed the store (-before +after):\n%s", what, diff)
	}
}

// sound fails the test unless the indexes and counters say what the records say. It returns the records.
func (b *bench) sound(tb fataler, ids []job.ID) map[job.ID]job.Record {
	tb.Helper()
	records, _, err := b.LoadMany(b.ctx, ids)
	if err != nil {
		tb.Fatalf("load: %v", err)
	}
	if len(records) != len(ids) {
		tb.Fatalf("%d records of %d can be read", len(records), len(ids))
	}
	want := map[job.Status]int64{}
	var due, ended []string
	for _, id := range ids {
		rec := records[id]
		want[rec.Status()]++
		name := strconv.FormatInt(int64(id), 10)
		if rec.Step != job.StepDone {
			due = append(due, name)
		}
		if rec.Ended() {
			ended = append(ended, name)
		}
	}
	got := must[map[job.Status]int64](tb)(b.Statuses(b.ctx))
	maps.DeleteFunc(got, func(_ job.Status, n int64) bool { return n == 0 })
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Fatalf("the counters are not the recount (-recount +counters):\n%s", diff)
	}
	indexes := map[string][]string{"due": due, "ended": ended}
	for _, status := range job.Statuses {
		for _, q := range []Query{{Statuses: []job.Status{status}}, {Statuses: []job.Status{status}, User: "ada", Name: "RESNET"}} {
			got, next, err := b.search(b.ctx, q)
			if err != nil || next != 0 || slices.ContainsFunc(got, func(id job.ID) bool { r := records[id]; return r.Status() != status }) || int64(len(got)) != want[status] {
				tb.Fatalf("%+v found %v, next is %d: %v", q, got, next, err)
			}
		}
	}
	for name, want := range indexes {
		var got []string
		for shard := range b.keys.shards {
			got = append(got, must[[]string](tb)(b.rdb.ZRange(b.ctx, b.keys.prefix(shard)+name, 0, -1).Result())...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			tb.Fatalf("index %s is wrong (-records +index):\n%s", name, diff)
		}
	}
	return records
}

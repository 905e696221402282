package store

import (
	"context"
	"errors"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// lostReplies makes go-redis do what it does when the reply of a command is lost: the command runs once more, and the
// caller sees only the second reply.
type lostReplies struct {
	on     atomic.Bool
	script bool   // only the reply of a script is lost
	before func() // called between the two runs
}

func (l *lostReplies) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *lostReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && !errors.Is(err, redis.Nil) || l.script && cmd.Name() != "evalsha" || !l.on.Swap(false) {
			return err
		}
		l.before()
		return next(ctx, cmd)
	}
}

func (l *lostReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil && !errors.Is(err, redis.Nil) || l.script || !l.on.Swap(false) {
			return err
		}
		l.before()
		return next(ctx, cmds)
	}
}

// sameTimes takes two times, as scores or as text, for equal if they are less than ten seconds apart.
var sameTimes = cmp.Options{
	cmp.Comparer(near),
	cmp.Comparer(func(a, b string) bool {
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		return a == b || errX == nil && errY == nil && near(x, y)
	}),
}

func near(a, b float64) bool {
	return a == b || a > 1e12 && b > 1e12 && math.Abs(a-b) < 10_000
}

// TestTwice ensures that each script leaves the store the same when it runs twice, as it does when go-redis lost the
// reply, and that the caller, who sees the second reply, learns what the first one said.
func TestTwice(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		lost := &lostReplies{}
		b.rdb.AddHook(lost)
		for _, c := range twiceCases {
			t.Run(c.name, func(t *testing.T) {
				b.again(t)
				call := c.setup(t, b)
				var first map[string]any
				lost.before = func() { first = b.dump(t) }
				lost.on.Store(true)
				call()
				if lost.on.Load() {
					t.Fatal("the call sent nothing")
				}
				second := b.dump(t)
				for _, d := range []map[string]any{first, second} {
					forget(d, c.but...)
				}
				if diff := cmp.Diff(first, second, sameTimes); diff != "" {
					t.Errorf("the second run changed the store (-after one +after two):\n%s", diff)
				}
			})
		}
	})
}

// forget drops fields that may differ.
func forget(dump map[string]any, fields ...string) {
	for _, v := range dump {
		if h, is := v.(map[string]string); is {
			for _, f := range fields {
				delete(h, f)
			}
		}
	}
}

var twiceCases = []struct {
	name  string
	but   []string // fields that the second run may change: a wake that is counted twice is still one wake
	setup func(*testing.T, *bench) func()
}{
	{"rotate", nil, func(t *testing.T, b *bench) func() {
		must[*Store](t)(Found(b.ctx, b.rdb, Deployment{Shards: 2, Recipient: "age1old"}))
		return func() {
			if !must[bool](t)(b.Rotate(b.ctx, "age1old", "age1new")) {
				t.Error("the second run says that it was not done")
			}
		}
	}},
	{"claim", nil, func(t *testing.T, b *bench) func() {
		id := b.watched(t)
		must[Woken](t)(b.Wake(b.ctx, id))
		return func() { // the claim is lost with its reply; the job is due again when it ends
			if due := must[Due](t)(b.Claim(b.ctx, b.ShardOf(id), 10, 0, lease, grace)); due.Len() != 0 {
				t.Errorf("the second run took %d more", due.Len())
			}
		}
	}},
	{"begin", nil, func(t *testing.T, b *bench) func() {
		id := b.submit(t, 1)[0]
		return func() {
			c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "mine", lease))
			if c.Fence == 0 || c.Fence != b.load(t, id).Fence || c.Ran != 1 {
				t.Errorf("fence %d, ran %d after one begin", c.Fence, c.Ran)
			}
		}
	}},
	{"beat", nil, func(t *testing.T, b *bench) func() {
		id := b.submit(t, 1)[0]
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "mine", lease))
		return func() { must[bool](t)(b.Beat(b.ctx, id, c.Fence, lease)) }
	}},
	{"commit", nil, func(t *testing.T, b *bench) func() {
		c, next := b.ending(t)
		return func() { b.commit(t, &c, next, false) }
	}},
	{"kept commit", nil, func(t *testing.T, b *bench) func() {
		c, next := b.ending(t)
		return func() {
			b.commit(t, &c, next, true)
			if c.Seq != next.Seq+1 || c.Tasks[0].Status != job.Succeeded {
				t.Errorf("the claim is not up to date: %+v", c)
			}
		}
	}},
	{"last commit", nil, func(t *testing.T, b *bench) func() {
		c, next := b.ending(t)
		next.Step = job.StepDone
		return func() { b.commit(t, &c, next, false) }
	}},
	{"commit with news", nil, func(t *testing.T, b *bench) func() {
		c, next := b.told(t)
		return func() { b.commit(t, &c, next, false) }
	}},
	{"hook claim", nil, func(t *testing.T, b *bench) func() {
		id := b.telling(t)
		return func() {
			if h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{id, 1}, "mine", lease)); len(h.News) != 1 {
				t.Errorf("claimed %d news", len(h.News))
			}
		}
	}},
	{"hook save", nil, func(t *testing.T, b *bench) func() {
		h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{b.telling(t), 1}, "mine", lease))
		return func() {
			b.must(t, b.SaveHook(b.ctx, h, "webhook-0", 1, "state", &job.Event{Kind: "note"}, lease))
			if n := len(must[[]job.Event](t)(b.Events(b.ctx, h.ID))); n != 2 {
				t.Errorf("%d events, wanted that of the submission and the note", n)
			}
		}
	}},
	{"hook release", nil, func(t *testing.T, b *bench) func() {
		h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{b.telling(t), 1}, "mine", lease))
		return func() { b.must(t, b.ReleaseHook(b.ctx, h, []string{"webhook-0"}, h.Now.Add(time.Hour))) }
	}},
	{"redispatch", nil, func(t *testing.T, b *bench) func() {
		id := b.submit(t, 1)[0]
		return func() {
			n := must[int64](t)(b.Redispatch(b.ctx, Overdue{Act: Act{ID: id, Step: job.StepLaunch, N: 1}}, grace))
			if n != 2 {
				t.Errorf("the new act is %d, wanted 2", n)
			}
		}
	}},
	{"call", nil, func(t *testing.T, b *bench) func() {
		id := b.submit(t, 1)[0]
		_, _, err := b.Call(b.ctx, []job.ID{id}, grace) // so that the script is known
		b.must(t, err)
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "mine", lease))
		b.commit(t, &c, c.Clone(), false)
		return func() {
			if acts, _, err := b.Call(b.ctx, []job.ID{id}, grace); err != nil || len(acts) != 1 || acts[0].N != 2 {
				t.Errorf("the new acts are %v, %v, wanted number 2", acts, err)
			}
		}
	}},
	{"handover", nil, func(t *testing.T, b *bench) func() {
		id := b.submit(t, 1)[0]
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{WatchChain(b.ShardOf(id))}, grace))
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "mine", lease))
		return func() {
			if epoch := must[int64](t)(b.Handover(b.ctx, &c)); epoch != 1 {
				t.Errorf("the epoch is %d, wanted 1", epoch)
			}
		}
	}},
	{"wake", []string{"wakes"}, func(t *testing.T, b *bench) func() {
		id := b.watched(t)
		return func() { must[Woken](t)(b.Wake(b.ctx, id)) }
	}},
	{"doubt", []string{"wakes"}, func(t *testing.T, b *bench) func() {
		id := b.watched(t)
		return func() { must[Woken](t)(b.Doubt(b.ctx, id)) }
	}},
	{"chain begin", nil, func(t *testing.T, b *bench) func() {
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"fleet"}, grace))
		return func() { must[Tick](t)(b.ChainBegin(b.ctx, "fleet", 1, lease)) }
	}},
	{"watch begin", nil, func(t *testing.T, b *bench) func() {
		shard := b.ShardOf(b.watched(t))
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{WatchChain(shard)}, grace))
		return func() {
			if tick, _, err := b.WatchBegin(b.ctx, shard, 1, time.Hour, time.Second, lease); err != nil || tick.Chain == "" {
				t.Errorf("begun %+v: %v", tick, err)
			}
		}
	}},
	{"idle watch begin", nil, func(t *testing.T, b *bench) func() {
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{WatchChain(1)}, grace))
		return func() {
			if _, in, err := b.WatchBegin(b.ctx, 1, 1, 0, time.Second, lease); err != nil || in <= 0 || in > time.Second {
				t.Errorf("the next tick is in %s: %v", in, err)
			}
		}
	}},
	{"chain end", nil, func(t *testing.T, b *bench) func() {
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"fleet"}, grace))
		tick := must[Tick](t)(b.ChainBegin(b.ctx, "fleet", 1, lease))
		return func() {
			if in := must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Second, grace)); in <= 0 || in > time.Second {
				t.Errorf("the next tick is in %v", in)
			}
		}
	}},
	{"chain reclaim", nil, func(t *testing.T, b *bench) func() {
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"other"}, grace)) // so that the script is known
		return func() { must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"fleet"}, grace)) }
	}},
	{"chain wake", []string{"wakes"}, func(t *testing.T, b *bench) func() {
		return func() { must[int64](t)(b.ChainWake(b.ctx, "fleet")) }
	}},
	{"hold", nil, func(t *testing.T, b *bench) func() {
		return func() {
			if got, _, err := b.Hold(b.ctx, Caps{Launches: 1}, 7, 0); err != nil || !got {
				t.Errorf("hold: %t, %v", got, err)
			}
		}
	}},
	{"join", nil, func(t *testing.T, b *bench) func() {
		return func() { must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 1}, 0, []job.ID{1, 2, 3})) }
	}},
	{"release", nil, func(t *testing.T, b *bench) func() {
		must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 1}, 0, []job.ID{1, 2, 3}))
		return func() { must[[]job.ID](t)(b.Release(b.ctx, Caps{Launches: 1}, 1, true)) }
	}},
	{"tick", nil, func(t *testing.T, b *bench) func() {
		must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 1}, 0, []job.ID{1, 2, 3}))
		b.pass(t, grace)
		return func() { must[Admission](t)(b.AdmissionTick(b.ctx, Caps{Launches: 1})) }
	}},
	{"take back", nil, func(t *testing.T, b *bench) func() {
		must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 2}, 0, []job.ID{1, 2, 3, 4}))
		b.pass(t, slotQuiet)
		found := must[Admission](t)(b.AdmissionTick(b.ctx, Caps{Launches: 2})).Quiet
		return func() { must[[]job.ID](t)(b.TakeBack(b.ctx, Caps{Launches: 2}, found[:1])) }
	}},
	{"tail append", nil, func(t *testing.T, b *bench) func() {
		b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 0, []byte("one ")))
		return func() { b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 2, []byte("e two"))) }
	}},
	{"long tail append", nil, func(t *testing.T, b *bench) func() {
		b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 0, []byte("one ")))
		return func() {
			b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 0, []byte(strings.Repeat("0123456789abcdef", TailSize/10))))
		}
	}},
	{"put view", nil, func(t *testing.T, b *bench) func() {
		v := View{Provider: "aws", Region: "eu-central-1", At: 5}
		old := ViewBlock{Number: 1, Marks: "old", Machines: []byte("1")}
		b.must(t, b.PutView(b.ctx, v, old, ViewBlock{Number: 2, Marks: "old", Machines: []byte("2")}))
		changes := []ViewBlock{{Number: 1, Was: "old", Marks: "new", Machines: []byte("3")}, {Number: 2, Was: "old"}, {Number: 3, Marks: "new", Machines: []byte("4")}}
		v.At++
		return func() { b.must(t, b.PutView(b.ctx, v, changes...)) }
	}},
}

// ending is a claim of a running job, and the decision that it has ended well.
func (b *bench) ending(t *testing.T) (Claimed, job.Record) {
	t.Helper()
	id := b.watched(t)
	must[Woken](t)(b.Wake(b.ctx, id))
	c := b.claim(t, id)
	next := c.Clone()
	next.Step, next.Tasks[0].Status, next.Due = job.StepCleanup, job.Succeeded, c.Now.Add(time.Hour)
	next.Events = []job.Event{{At: c.Now, Kind: "status", To: "SUCCEEDED"}}
	next.Past = []job.Attempt{{Number: 1}}
	return c, next
}

// TestCancelTwice ensures that cancels, whose time is read first, are written once: the first wish stands.
func TestCancelTwice(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.watched(t)
		must[Woken](t)(b.Cancel(b.ctx, id, "ada", time.Second))
		want := b.load(t, id).Cancel
		must[Woken](t)(b.Cancel(b.ctx, id, "eve", 0))
		if _, _, err := b.CancelWhere(b.ctx, nil, "eve", 0); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.load(t, id).Cancel); diff != "" || want.By != "ada" {
			t.Errorf("the first wish was rewritten:\n%s", diff)
		}
	})
}

package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// resting makes a job calm and due now, as the commit of a quiet look does, and returns what is to be asked of it.
func (b *bench) resting(tb fataler) Calm {
	tb.Helper()
	id := b.watched(tb)
	must[Woken](tb)(b.Wake(b.ctx, id))
	c := b.claim(tb, id)
	next := running(c.Record)
	next.Step, next.Look, next.Calm, next.Due = job.StepWatch, job.Look{Every: 15_000, Tail: 7, Kept: 7}, true, c.Now
	next.Live = []job.Attempt{{Number: 1, Phase: job.PhaseStarted, Offer: job.Offer{Provider: "far"}, Nodes: []job.Node{{ID: "n", Address: "a b:22"}}}}
	b.commit(tb, &c, next, false)
	return Calm{ID: id, Due: next.Due, Wakes: c.Wakes, Every: 15 * time.Second, Tail: 7, Provider: "far", Node: job.Node{ID: "n", Address: "a b:22"}}
}

// TestCalm ensures that a calm job is only taken: what is to be asked is told, nothing of its record changes, and it is due
// again when it is put off to, or by itself when whoever took it has died (G1).
func TestCalm(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		want := b.resting(t)
		shard, key := b.ShardOf(want.ID), b.keys.of(want.ID, "job")
		before := must[map[string]string](t)(b.rdb.HGetAll(b.ctx, key).Result())
		due := must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace))
		if diff := cmp.Diff([]Calm{want}, due.Calm); diff != "" || due.Len() != 1 {
			t.Fatalf("taken (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, must[map[string]string](t)(b.rdb.HGetAll(b.ctx, key).Result())); diff != "" {
			t.Errorf("the record was changed (-before +after):\n%s", diff)
		}
		if again := must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace)); again.Len() != 0 {
			t.Errorf("taken twice: %+v", again)
		}
		b.pass(t, lease)
		due = must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace))
		if len(due.Calm) != 1 {
			t.Fatal("it was forgotten when nobody put it off")
		}
		later := due.Now.Add(time.Hour)
		for range 2 {
			b.must(t, b.Rest(b.ctx, shard, due.Until, Rested{ID: want.ID, Due: later}))
		}
		if got := b.load(t, want.ID).Due; got != later {
			t.Errorf("due at %d, want %d", got, later)
		}
		b.pass(t, time.Hour)
		if full := must[Due](t)(b.Claim(b.ctx, shard, 10, 0, lease, grace)); len(full.Jobs) != 1 || !full.Jobs[0].Calm {
			t.Errorf("a claim that knows nothing of calm got %+v", full)
		}
	})
}

// TestG7_WakeEndsTheCalm ensures that no wish of a user waits for a calm job: a wake before, during and after a look brings one
// that goes by the record.
func TestG7_WakeEndsTheCalm(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c := b.resting(t)
		shard := b.ShardOf(c.ID)
		due := must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace))
		must[Woken](t)(b.Cancel(b.ctx, c.ID, "test", 0))
		b.must(t, b.Rest(b.ctx, shard, due.Until, Rested{ID: c.ID, Due: due.Now.Add(time.Hour)}))
		if !b.isDue(t, c.ID) {
			t.Fatal("a look that was under way has put off a cancel")
		}
		due = must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace))
		if len(due.Jobs) != 1 || due.Jobs[0].Cancel == nil || due.Jobs[0].Due == 0 {
			t.Errorf("the record was not read: %+v", due)
		}
	})
}

// TestCalmLooksCloser ensures that a calm job of which there is news is claimed at once, by one of those who want it, and is
// calm no more when its record says so; and that a limit of the user is not slept through.
func TestCalmLooksCloser(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c := b.resting(t)
		shard := b.ShardOf(c.ID)
		must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace))
		got := must[Due](t)(b.ClaimThese(b.ctx, shard, lease, grace, c.ID, 999*64))
		if len(got.Jobs) != 1 || got.Len() != 1 {
			t.Fatalf("claimed %+v", got)
		}
		if again := must[Due](t)(b.ClaimThese(b.ctx, shard, lease, grace, c.ID)); again.Len() != 0 {
			t.Errorf("claimed twice: %+v", again)
		}
		b.commit(t, &got.Jobs[0], got.Jobs[0].Clone(), false)
		if n := must[bool](t)(b.rdb.HExists(b.ctx, b.keys.of(c.ID, "job"), "calm").Result()); n {
			t.Error("it is calm still")
		}

		c = b.resting(t)
		shard = b.ShardOf(c.ID)
		now := must[job.Time](t)(b.Now(b.ctx))
		must[int64](t)(b.rdb.HSet(b.ctx, b.keys.of(c.ID, "job"), "limit", int64(now.Add(lease+14*time.Second))).Result())
		if due := must[Due](t)(b.Take(b.ctx, shard, 10, 0, lease, grace)); len(due.Calm) != 0 || len(due.Jobs) != 1 {
			t.Errorf("taken for calm before a limit: %+v", due)
		}

		c = b.resting(t)
		must[int64](t)(b.rdb.HSet(b.ctx, b.keys.of(c.ID, "job"), "calm", "0 15000 damaged").Result())
		if due := must[Due](t)(b.Take(b.ctx, b.ShardOf(c.ID), 10, 0, lease, grace)); due.Len() != 1 || len(due.Calm) == 1 && due.Calm[0].Provider != "" {
			t.Errorf("of a damaged one came %+v", due)
		}
	})
}

// TestCalms ensures that the machine of a calm job is known without its record, and of no other one.
func TestCalms(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c := b.resting(t)
		other, wrong := b.watched(t), b.watched(t)
		must[string](t)(b.rdb.Set(b.ctx, b.keys.of(wrong, "job"), "damaged", 0).Result())
		got := must[map[job.ID]Calm](t)(b.Calms(b.ctx, []job.ID{other, c.ID, wrong, 4711}))
		c.Due = 0
		if diff := cmp.Diff(map[job.ID]Calm{c.ID: c}, got); diff != "" {
			t.Errorf("calm jobs (-want +got):\n%s", diff)
		}
	})
}

// TestDoubtAll ensures that many jobs are doubted as one is, more than fit into a pipeline, and that each shard is told of once.
func TestDoubtAll(t *testing.T) {
	b := newBench(t, 2)
	ids := b.submit(t, readAtOnce+10)
	for range 2 {
		shards := must[[]Woken](t)(b.DoubtAll(b.ctx, append(ids, 999_999)))
		if len(shards) != 2 || shards[0].Shard == shards[1].Shard || !shards[0].Live {
			t.Errorf("to be run: %+v", shards)
		}
	}
	known, _, err := b.LoadMany(b.ctx, ids)
	b.must(t, err)
	for _, id := range ids {
		if r := known[id]; r.Doubt == 0 || r.Wakes != 2 {
			t.Fatalf("job %d: doubt %d, %d wakes", id, r.Doubt, r.Wakes)
		}
	}
}

package store

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// end brings a new job to an end with a status.
func (b *bench) end(tb fataler, id job.ID, status job.Status) {
	tb.Helper()
	c := must[Claimed](tb)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
	next := c.Clone()
	next.Step, next.Tasks[0].Status = job.StepDone, status
	b.commit(tb, &c, next, false)
}

func (b *bench) find(tb fataler, q Query) ([]job.ID, job.ID) {
	tb.Helper()
	page := must[Page](tb)(b.Find(b.ctx, q))
	if len(page.Damaged) > 0 {
		tb.Fatalf("%+v: %v", q, page.Damaged)
	}
	ids := []job.ID{}
	for _, r := range page.Jobs {
		ids = append(ids, r.ID)
	}
	return ids, page.Next
}

// submitAs writes one job of a user with a name, submitted at a time.
func (b *bench) submitAs(tb fataler, user, name string, at job.Time) job.ID {
	tb.Helper()
	id := job.ID(must[int64](tb)(b.rdb.Incr(b.ctx, deploymentPrefix+"id").Result()))
	req := typical(1)
	req.User, req.Name = user, name
	b.must(tb, b.writeNew(b.ctx, Submission{Request: req, Count: 1}, id, []job.ID{id}, at))
	return id
}

// TestFind ensures each filter of a list by itself, and that lists are newest first, whole or cut.
func TestFind(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		const minute, day = job.Time(60_000), job.Time(24 * 3_600_000)
		noon := 20_000 * day
		var ids []job.ID
		for i := range 8 { // one an hour
			user, name := "ada", "train-"+string(rune('a'+i))
			if i%2 == 1 {
				user, name = "bob", "Évaluer [x]%"
			}
			ids = append(ids, b.submitAs(t, user, name, noon+job.Time(i)*60*minute))
		}
		b.end(t, ids[6], job.Failed)
		b.end(t, ids[1], job.Succeeded) // in this order: what ended last is not what is newest
		of := func(at ...int) []job.ID {
			list := []job.ID{}
			for _, i := range at {
				list = append(list, ids[i])
			}
			return list
		}
		for _, c := range []struct {
			query Query
			want  []job.ID
		}{
			{Query{}, of(7, 6, 5, 4, 3, 2, 1, 0)},
			{Query{Live: true}, of(7, 5, 4, 3, 2, 0)},
			{Query{Statuses: []job.Status{job.Succeeded, job.Failed}}, of(6, 1)},
			{Query{Statuses: []job.Status{job.Failed, job.Pending}, Live: true}, of(7, 5, 4, 3, 2, 0)},
			{Query{Statuses: []job.Status{job.Failed}, Live: true}, of()},
			{Query{Statuses: []job.Status{job.Running}}, of()},
			{Query{User: "bob"}, of(7, 5, 3, 1)},
			{Query{User: "bo"}, of()},
			{Query{Name: "TRAIN-"}, of(6, 4, 2, 0)},
			{Query{Name: "éVAL"}, of(7, 5, 3, 1)},
			{Query{Name: "[x]%"}, of(7, 5, 3, 1)},
			{Query{Name: "train-c", User: "bob"}, of()},
			{Query{Since: noon + 5*60*minute}, of(7, 6, 5)},
			{Query{Since: noon + 5*60*minute + 1}, of(7, 6)},
			{Query{Until: noon + 2*60*minute}, of(2, 1, 0)},
			{Query{Until: noon + 2*60*minute - 1}, of(1, 0)},
			{Query{Since: noon + 60*minute, Until: noon + 2*60*minute}, of(2, 1)},
			{Query{Until: noon - 1}, of()},
			{Query{Since: noon + 8*60*minute}, of()},
			{Query{Until: noon + 3*60*minute, Statuses: []job.Status{job.Succeeded}}, of(1)},
			{Query{Before: ids[3]}, of(2, 1, 0)},
			{Query{Before: ids[0]}, of()},
			{Query{Before: ids[5], User: "bob", Live: true}, of(3)},
		} {
			got, next := b.find(t, c.query)
			if diff := cmp.Diff(c.want, got); diff != "" || next != 0 {
				t.Errorf("%+v: next %d (-want +got):\n%s", c.query, next, diff)
			}
		}
	})
}

// TestFindPages ensures, for any jobs, filter and page size, also when a page may look at little, that the pages put
// together are the whole list, each job once.
//
// skypilot #5108, #7458, #10176: lists of all jobs took minutes and megabytes.
func TestFindPages(t *testing.T) {
	b := newBench(t, 3)
	rapid.Check(t, func(rt *rapid.T) {
		b.again(rt)
		users, names := rapid.SampledFrom([]string{"ada", "bob"}), rapid.SampledFrom([]string{"train", "eval", "retrain"})
		endings := rapid.SampledFrom([]job.Status{"", job.Succeeded, job.Failed})
		var all []job.Record
		at := job.Time(time.Now().UnixMilli())
		for range rapid.IntRange(0, 30).Draw(rt, "jobs") {
			at += job.Time(rapid.IntRange(0, 200_000).Draw(rt, "ms later"))
			early := job.Time(rapid.Int64Range(0, findSlack.Milliseconds()).Draw(rt, "ms early")) // within the slack in no order
			id := b.submitAs(rt, users.Draw(rt, "user"), names.Draw(rt, "name"), at-early)
			if s := endings.Draw(rt, "ended"); s != "" {
				b.end(rt, id, s)
			}
			all = append(all, b.load(rt, id))
		}
		slices.Reverse(all)
		q := Query{
			User: rapid.SampledFrom([]string{"", "ada"}).Draw(rt, "by"), Name: rapid.SampledFrom([]string{"", "train"}).Draw(rt, "named"),
			Live: rapid.Bool().Draw(rt, "live"), Limit: rapid.IntRange(0, 7).Draw(rt, "limit"), Examine: rapid.IntRange(0, 5).Draw(rt, "examine"),
		}
		if len(all) > 0 {
			bound := rapid.SampledFrom(all)
			if rapid.Bool().Draw(rt, "bounded below") {
				q.Since = bound.Draw(rt, "since").SubmittedAt
			}
			if rapid.Bool().Draw(rt, "bounded above") {
				q.Until = bound.Draw(rt, "until").SubmittedAt
			}
		}
		var want, got []job.ID
		for _, r := range all {
			if q.Matches(&r) {
				want = append(want, r.ID)
			}
		}
		for {
			ids, next := b.find(rt, q)
			if got = append(got, ids...); next == 0 {
				break
			}
			if q.Before > 0 && next >= q.Before || q.Limit > 0 && len(ids) > q.Limit {
				rt.Fatalf("a page of %d goes on before %d, after %d", len(ids), next, q.Before)
			}
			q.Before = next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%+v (-want +got):\n%s", q, diff)
		}
	})
}

// TestFindDamaged ensures that a damaged record is reported beside the others, and that one without an entry in the
// index, too, is moved and counted.
func TestFindDamaged(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		ids := b.submit(t, 3)
		b.rdb.HSet(b.ctx, b.keys.of(ids[1], "job"), "head", "{")
		page := must[Page](t)(b.Find(b.ctx, Query{}))
		if len(page.Jobs) != 2 || len(page.Damaged) != 1 {
			t.Errorf("%d jobs, damaged: %v", len(page.Jobs), page.Damaged)
		}
		shard := b.keys.prefix(b.ShardOf(ids[2]))
		b.rdb.Del(b.ctx, shard+"ix:0", shard+"nm:0", shard+"blocks")
		b.end(t, ids[2], job.Failed)
		if got, _ := b.find(t, Query{Statuses: []job.Status{job.Failed}}); !slices.Equal(got, ids[2:]) {
			t.Errorf("found %v", got)
		}
	})
}

package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestIndex ensures that every filter finds what it should among jobs of several blocks, whatever their names are, while they
// end and leave in any order, and that the index goes with the last of them.
func TestIndex(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		const jobs = 3*2*findBlock + 11
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		names := []string{"", "a", "-", "%a+", "[x", "train", "Ünïcode", "\x1e\x1f\x00", "tr\xff\x80ain", strings.Repeat("long ", 100)}
		users := []string{"", "ada", "bob", "\x1d\x1f", "\x80\x81", "ad"}
		all := map[job.ID]job.Record{}
		for i := range jobs {
			name := names[random.IntN(len(names))]
			if i%3 > 0 {
				name = fmt.Sprint(name, i)
			}
			id := b.submitAs(t, users[random.IntN(len(users))], name, job.Time(1_700_000_000_000+i*1000))
			all[id] = b.load(t, id)
		}
		check := func() {
			t.Helper()
			var some job.Record
			for _, some = range all {
				break
			}
			part := strings.ToUpper(some.Name[:min(len(some.Name), 2+random.IntN(4))])
			for _, q := range []Query{
				{}, {Live: true}, {User: some.User}, {Name: part}, {User: some.User, Name: part}, {Statuses: []job.Status{job.Failed}, User: some.User},
				{Since: some.SubmittedAt}, {Until: some.SubmittedAt, User: some.User}, {Since: some.SubmittedAt - 5000, Until: some.SubmittedAt, Name: part},
				{Name: "nobody has this"}, {User: "nobody"}, {Before: some.ID, Live: true, Name: part},
			} {
				var want []job.ID
				for id, r := range all {
					if q.Matches(&r) && (q.Before == 0 || id < q.Before) {
						want = append(want, id)
					}
				}
				slices.SortFunc(want, newestFirst)
				q.Name = strings.ToLower(q.Name)
				got, next, err := b.search(b.ctx, q)
				if diff := cmp.Diff(want, got); diff != "" || next != 0 || err != nil {
					t.Fatalf("%d jobs, %+v: next %d, %v (-want +got):\n%s", len(all), q, next, err, diff)
				}
			}
		}
		check()
		for _, i := range random.Perm(jobs) {
			id := job.ID(i + 1)
			b.end(t, id, job.Failed)
			all[id] = b.load(t, id)
			if i%2 == 0 {
				continue
			}
			b.retire(t, id)
			delete(all, id)
			if i%101 == 1 {
				check()
			}
		}
		check()
		for id := range all {
			b.retire(t, id)
		}
		for key := range b.allKeys(t) {
			if strings.Contains(key, "}:ix:") || strings.Contains(key, "}:nm:") || strings.Contains(key, "}:blocks") {
				t.Errorf("%s is left", key)
			}
		}
	})
}

// retire takes a job that is done out of the store.
func (b *bench) retire(tb fataler, id job.ID) {
	tb.Helper()
	all := must[Retired](tb)(b.LoadAll(b.ctx, id))
	if !must[bool](tb)(b.Retire(b.ctx, &all)) {
		tb.Fatalf("job %d stays", id)
	}
}

// TestIndexLate ensures that a job that comes to a block after its last place was taken is found as all others are.
func TestIndexLate(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, b *bench) {
		const at = job.Time(1_700_000_000_000)
		for range 2*findBlock - 1 {
			b.submitAs(t, "ada", "train", at)
		}
		late := job.ID(findBlock + 5)
		b.rdb.SetRange(b.ctx, "ol:{s00}:ix:1", 5, ".")
		b.rdb.Del(b.ctx, b.keys.of(late, "job"))
		req := typical(1)
		req.User, req.Name = "bob", "zebra"
		b.must(t, b.writeNew(b.ctx, Submission{Request: req, Count: 1}, late, []job.ID{late}, at+5000))
		for _, q := range []Query{{User: "bob"}, {Name: "ebr"}, {Since: at + 1}} {
			if got, _ := b.find(t, q); !slices.Equal(got, []job.ID{late}) {
				t.Errorf("%+v found %v", q, got)
			}
		}
	})
}

// TestIndexCodes ensures that Go and Lua write a status as the same letter.
func TestIndexCodes(t *testing.T) {
	src, err := luaFiles.ReadFile("lua/index.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range job.Statuses {
		if line := fmt.Sprintf("  %s = '%s'", s, codes([]job.Status{s})); !strings.Contains(strings.ReplaceAll(string(src), ", ", ",\n  "), line) {
			t.Errorf("lua/index.lua has no%s", line)
		}
	}
}

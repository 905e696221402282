package store

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
)

// The tests of this file are named after what users of other systems have reported; docs/public-reports.md has them all.

// TestG7_CancelOfManyIsOnePass ensures that to cancel thousands of jobs takes hardly more round trips than to cancel a few, and
// that each of them has the wish afterwards.
//
// skypilot #4293, #4296, #4649: to cancel 1,000 jobs took minutes, one after the other, and a processor.
func TestG7_CancelOfManyIsOnePass(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8)
	if _, _, err := b.CancelWhere(b.ctx, nil, "ada", -1); err != nil { // from here on the server knows the script
		t.Fatal(err)
	}
	trips := &roundTrips{}
	b.rdb.AddHook(trips)
	for _, n := range []int{8, 3000} {
		ids := b.submit(t, n)
		trips.n.Store(0)
		got, woken, err := b.CancelWhere(b.ctx, nil, "ada", -1)
		if err != nil || len(woken) != 8 {
			t.Fatalf("%d shards to wake: %v", len(woken), err)
		}
		if made := trips.n.Load(); made > int64(1+8+n/100) { // the time, each shard, and steps of hundreds
			t.Errorf("%d jobs took %d round trips", n, made)
		}
		if missing := slices.DeleteFunc(ids, func(id job.ID) bool { return slices.Contains(got, id) }); len(missing) > 0 {
			t.Errorf("not cancelled: %v", missing)
		}
	}
}

// TestNumbersAreNotUsedAgain ensures that a job's number is never that of another one, also when that is long gone from the store.
//
// skypilot #9278: numbers began anew with a new controller, and met those of older jobs.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		last := job.ID(0)
		for range 5 {
			id := b.submit(t, 1)[0]
			if id <= last {
				t.Fatalf("number %d came after %d", id, last)
			}
			last = id
			b.end(t, id, job.Succeeded)
			gone := must[Retired](t)(b.LoadAll(b.ctx, id))
			if !must[bool](t)(b.Retire(b.ctx, &gone)) {
				t.Fatalf("job %d stays", id)
			}
		}
	})
}

// TestEveryEndingIsRetired ensures that a job leaves the store whole, whichever way it has ended.
//
// skypilot #9974: some endings were missing in the list of those whose logs are cleaned up, and they stayed for ever.
func TestEveryEndingIsRetired(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		for _, status := range job.Statuses {
			if !status.Terminal() {
				continue
			}
			sub := Submission{Request: typical(1), Sealed: []byte("sealed")}
			id := must[[]job.ID](t)(b.Submit(b.ctx, sub))[0]
			b.end(t, id, status)
			if got := must[[]job.ID](t)(b.Retirable(b.ctx, 1<<50, 0, 10)); !slices.Equal(got, []job.ID{id}) {
				t.Errorf("%s: to be retired are %v", status, got)
			}
			all := must[Retired](t)(b.LoadAll(b.ctx, id))
			if !must[bool](t)(b.Retire(b.ctx, &all)) {
				t.Errorf("%s: the job stays", status)
			}
			for key := range b.allKeys(t) {
				if strings.HasSuffix(key, ":"+strconv.FormatInt(int64(id), 10)) {
					t.Errorf("%s: the key %s stays", status, key)
				}
			}
		}
		b.sound(t, nil)
	})
}

package store

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// roundTrips counts what a client sends.
type roundTrips struct{ n atomic.Int64 }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { r.n.Add(1); return next(ctx, cmd) }
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { r.n.Add(1); return next(ctx, cmds) }
}

// TestSubmitRoundTrips ensures that many jobs cost as many round trips as one.
//
// skypilot #4234, #4294: 20 seconds from one job to the next of a thousand. skypilot #5473: the client froze.
func TestSubmitRoundTrips(t *testing.T) {
	b := newBench(t, 64)
	b.submit(t, 1) // from here on the server knows the script
	trips := &roundTrips{}
	b.rdb.AddHook(trips)
	for _, n := range []int{1, 1000, 5000} {
		trips.n.Store(0)
		ids := b.submit(t, n)
		if got := trips.n.Load(); got != 2 {
			t.Errorf("%d jobs took %d round trips", n, got)
		}
		if len(ids) != n || ids[n-1] != ids[0]+job.ID(n)-1 {
			t.Errorf("%d jobs got the ids %d to %d", n, ids[0], ids[len(ids)-1])
		}
	}
	if got := must[map[job.Status]int64](t)(b.Statuses(b.ctx))[job.Pending]; got != 6002 {
		t.Errorf("%d jobs are counted, of 6002", got)
	}
}

// TestSubmitWritesWhatWasAsked ensures that request, rank, secrets, record and first event of each job are there.
func TestSubmitWritesWhatWasAsked(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		req := typical(2)
		ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: req, Count: 3, Sealed: []byte("sealed")}))
		for rank, id := range ids {
			want := req
			want.Rank, want.Count = rank, 3
			if diff := cmp.Diff(want, must[job.Request](t)(b.Request(b.ctx, id))); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			rec := b.load(t, id)
			fresh := job.NewRecord(job.HeadOf(id, want, rec.SubmittedAt))
			fresh.Due, fresh.Nonce = rec.Due, rec.Nonce // which is random
			if diff := cmp.Diff(fresh, rec); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if ev := must[[]job.Event](t)(b.Events(b.ctx, id)); len(ev) != 1 || ev[0].To != "PENDING" {
				t.Errorf("events %+v", ev)
			}
			if got := must[[]byte](t)(b.Secrets(b.ctx, id)); string(got) != "sealed" {
				t.Errorf("secrets %q", got)
			}
		}
		b.sound(t, ids)
		if _, err := b.Load(b.ctx, 99); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown job gave %v", err)
		}
	})
}

// TestG3_EveryJobHasANonce ensures that a job which is given the id of one that the store has lost is told from it.
func TestG3_EveryJobHasANonce(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		first := b.load(t, b.submit(t, 1)[0])
		b.must(t, b.rdb.FlushAll(b.ctx).Err())
		second := b.load(t, b.submit(t, 1)[0])
		if first.ID != second.ID || len(first.Nonce) != 12 || len(second.Nonce) != 12 || first.Nonce == second.Nonce {
			t.Errorf("jobs %d and %d have the nonces %q and %q", first.ID, second.ID, first.Nonce, second.Nonce)
		}
	})
}

// TestSubmitKey ensures that the same key makes the same jobs once, also after the client died between the parts of a
// submission, and never again when retention has taken them.
func TestSubmitKey(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		sub := Submission{Request: typical(1), Count: 3, Key: "monday ü"}
		ids := must[[]job.ID](t)(b.Submit(b.ctx, sub))
		b.unchanged(t, "a repeated key", func() {
			again := must[[]job.ID](t)(b.Submit(b.ctx, sub))
			if !slices.Equal(ids, again) {
				t.Errorf("first %v, then %v", ids, again)
			}
			b.must(t, b.rdb.DecrBy(b.ctx, deploymentPrefix+"id", 3).Err()) // the numbers that were not needed
		})

		var taken *KeyTakenError
		other := sub
		other.Count = 4
		if _, err := b.Submit(b.ctx, other); !errors.As(err, &taken) || taken.ID != ids[0] || taken.Key != sub.Key {
			t.Errorf("another job file under the same key gave %v", err)
		}

		for _, id := range ids { // retention
			b.must(t, b.rdb.Del(b.ctx, b.keys.of(id, "job")).Err())
		}
		must[[]job.ID](t)(b.Submit(b.ctx, sub))
		if _, err := b.Load(b.ctx, ids[0]); !errors.Is(err, ErrNotFound) {
			t.Errorf("a job that retention took is back: %v", err)
		}
	})
}

// TestSubmitKeyAfterCrash ensures that a repetition completes a submission that was cut off, without touching its jobs.
func TestSubmitKeyAfterCrash(t *testing.T) {
	b := newBench(t, 1)
	sub := Submission{Request: typical(1), Count: 3, Key: "k"}
	ids := must[[]job.ID](t)(b.Submit(b.ctx, sub))
	key := deploymentPrefix + "key:k"
	value := must[string](t)(b.rdb.Get(b.ctx, key).Result())
	b.must(t, b.rdb.Set(b.ctx, key, value[:len(value)-len(writtenMark)], 0).Err()) // as if it had died before the end
	b.must(t, b.rdb.Del(b.ctx, b.keys.of(ids[2], "job")).Err())
	b.must(t, b.rdb.SRem(b.ctx, b.keys.made(0, ids[0]), int64(ids[2])).Err())
	b.must(t, b.rdb.SetRange(b.ctx, b.keys.prefix(0)+"ix:0", 3, ".").Err())
	b.must(t, b.rdb.HIncrBy(b.ctx, b.keys.count(0), string(job.Pending), -1).Err())
	must[Claimed](t)(b.Begin(b.ctx, ids[0], job.StepLaunch, 1, "token", lease))

	if again := must[[]job.ID](t)(b.Submit(b.ctx, sub)); !slices.Equal(ids, again) {
		t.Errorf("first %v, then %v", ids, again)
	}
	b.sound(t, ids)
	if b.load(t, ids[0]).Fence == 0 {
		t.Error("a job that was there was written again")
	}
}

// TestSubmitKeyAfterCrashAndRetention ensures that a repetition of a submission that was cut off at its very end makes no job
// again that has run and left for the archive meanwhile: it would be a second job with the attempts of the first.
func TestSubmitKeyAfterCrashAndRetention(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		sub := Submission{Request: typical(1), Count: 3, Key: "k"}
		ids := must[[]job.ID](t)(b.Submit(b.ctx, sub))
		key := deploymentPrefix + "key:k"
		value := must[string](t)(b.rdb.Get(b.ctx, key).Result())
		b.must(t, b.rdb.Set(b.ctx, key, value[:len(value)-len(writtenMark)], 0).Err()) // as if it had died before the end
		b.end(t, ids[1], job.Failed)
		all := must[Retired](t)(b.LoadAll(b.ctx, ids[1]))
		if !must[bool](t)(b.Retire(b.ctx, &all)) {
			t.Fatal("it did not leave")
		}
		if again := must[[]job.ID](t)(b.Submit(b.ctx, sub)); !slices.Equal(ids, again) {
			t.Errorf("first %v, then %v", ids, again)
		}
		if _, err := b.Load(b.ctx, ids[1]); !errors.Is(err, ErrNotFound) {
			t.Errorf("it is back: %v", err)
		}
		b.sound(t, []job.ID{ids[0], ids[2]})
		for _, id := range ids {
			made := b.keys.made(b.ShardOf(id), ids[0])
			if ttl := must[time.Duration](t)(b.rdb.TTL(b.ctx, made).Result()); ttl <= 0 || ttl > madeLife {
				t.Errorf("%s lives for %s", made, ttl)
			}
		}
	})
}

// TestSubmitSameKeyAtOnce ensures that clients that submit under one key at the same time get the same jobs.
func TestSubmitSameKeyAtOnce(t *testing.T) {
	b := newBench(t, 4)
	sub := Submission{Request: typical(1), Count: 20, Key: "k"}
	got := make([][]job.ID, 8)
	errs := make([]error, len(got))
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = b.Submit(b.ctx, sub) })
	}
	all.Wait()
	for i := range got {
		if errs[i] != nil || !slices.Equal(got[0], got[i]) {
			t.Errorf("client %d: %v, %v", i, got[i], errs[i])
		}
	}
	b.sound(t, got[0])
}

// TestSubmitLostReplies ensures that a submission whose replies get lost, one after the other, makes its jobs once.
func TestSubmitLostReplies(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		lost := &lostReplies{before: func() {}}
		b.rdb.AddHook(lost)
		lost.before = func() { lost.on.Store(true) } // every one of them
		lost.on.Store(true)
		ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1), Count: 5, Key: "k"}))
		lost.on.Store(false)
		lost.before = func() {}
		b.sound(t, ids)
		if n := must[map[job.Status]int64](t)(b.Statuses(b.ctx))[job.Pending]; n != 5 {
			t.Errorf("%d jobs were made", n)
		}
	})
}

// TestScriptsAreFoundAgain ensures that a server that forgot the scripts, as after a restart, is taught them again.
func TestScriptsAreFoundAgain(t *testing.T) {
	b := newBench(t, 2)
	for range 2 {
		b.must(t, b.rdb.ScriptFlush(b.ctx).Err())
		b.submit(t, 3)
		must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{"fleet"}, grace))
	}
}

// TestG1_IDsOfOtherJobsAreNotGivenAgain ensures that a submission which is given the ids of jobs that there are, since the node of
// a cluster that counts has lost its last second or more and their nodes have not, gets others: no job takes the place of
// another one, none is accepted and not there, and a key belongs to the jobs that are told.
func TestG1_IDsOfOtherJobsAreNotGivenAgain(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		old := b.submit(t, 100)
		before := map[job.ID]string{}
		for _, id := range old {
			before[id] = b.load(t, id).Nonce
		}
		one, two := typical(1), typical(1)
		one.Name, two.Name = "one", "two"
		var all []job.ID
		for _, sub := range []Submission{{Request: one}, {Request: two, Count: 30}, {Request: one, Count: 30, Key: "k"}} {
			b.must(t, b.rdb.Set(b.ctx, deploymentPrefix+"id", 80, 0).Err())
			ids := must[[]job.ID](t)(b.Submit(b.ctx, sub))
			if sub.Key != "" {
				if again := must[[]job.ID](t)(b.Submit(b.ctx, sub)); !slices.Equal(ids, again) {
					t.Errorf("the key gave %v, then %v", ids, again)
				}
			}
			for i, id := range ids {
				rec := b.load(t, id)
				if rec.Name != sub.Request.Name || rec.Cancel != nil || must[job.Request](t)(b.Request(b.ctx, id)).Rank != i {
					t.Errorf("job %d is %q, cancel %+v", id, rec.Name, rec.Cancel)
				}
			}
			all = append(all, ids...)
		}
		for id, nonce := range before {
			if rec := b.load(t, id); rec.Nonce != nonce || rec.Cancel != nil {
				t.Errorf("job %d is another one now", id)
			}
		}
		slices.Sort(all)
		if n := len(all); n != 61 || len(slices.Compact(all)) != n || all[0] <= 100 {
			t.Errorf("the new jobs are %v", all)
		}
		page := must[Page](t)(b.Find(b.ctx, Query{Limit: 500}))
		for _, rec := range page.Jobs { // what was written under numbers that were not kept
			if !slices.Contains(all, rec.ID) && before[rec.ID] == "" && rec.Cancel == nil {
				t.Errorf("job %d would run, and nobody was told of it", rec.ID)
			}
		}
	})
}

package linear_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/outlast-dev/outlast/chaos/linear"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	lease = 50 * time.Millisecond // of claims: short, so that many run out
	fuzzy = 5 * time.Millisecond  // by how much Redis's clock and ours may differ within one run, and it counts whole milliseconds
)

// book holds what all clients did and were told.
type book struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
	lost  int
	token int
}

func (b *book) now() int64 { return time.Since(b.began).Nanoseconds() }

func (b *book) add(client int, c linear.Call, a linear.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ops = append(b.ops, linear.Operation(client, c, a))
	if a.Lost {
		b.lost++
	}
}

// newToken is one that nobody else has.
func (b *book) newToken() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token++
	return "token-" + strconv.Itoa(b.token)
}

// client is one who drives jobs, as a worker does, and now and then cancels or resumes one, as a user does.
type client struct {
	t     *testing.T
	id    int
	store *store.Store
	book  *book
	dice  *rand.Rand
	raise int64 // by how much its next claim raises the fence
}

// draw draws by how much the next claim raises the fence.
func (c *client) draw() int64 {
	c.raise = 1 + c.dice.Int64N(1<<20)
	return c.raise
}

// call makes one call and writes down what came of it. f gives what was told beside that it was done.
func (c *client) call(ctx context.Context, what linear.Call, f func() (linear.Answer, error)) linear.Answer {
	if what.Kind == linear.Cancel || what.Kind == linear.Resume { // they read first: without a way to Redis they write nothing
		if _, err := c.store.Now(ctx); err != nil {
			pause(ctx, 20*time.Millisecond)
			return linear.Answer{Lost: true}
		}
	}
	what.Began = c.book.now()
	a, err := f()
	a.Ended = c.book.now()
	var refusal *job.NotResumableError
	switch {
	case err == nil:
	case errors.Is(err, store.ErrStale), errors.As(err, &refusal):
		a.OK = false
	case errors.Is(err, store.ErrUnavailable):
		a = linear.Answer{Lost: true}
		pause(ctx, 20*time.Millisecond)
	default:
		c.t.Errorf("%s of job %d: %v", what.Kind, what.Job, err)
	}
	if a.Lost && what.Kind == linear.Read || neverSent(err) {
		return a
	}
	c.book.add(c.id, what, a)
	return a
}

// neverSent reports whether a call had no connection to be sent on.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// seen is what the model knows of a record.
func seen(r *job.Record) linear.Record {
	return linear.Record{
		Step: string(r.Step), Status: string(r.Status()), N: r.Dispatch, Ran: r.Ran, Fence: r.Fence, Seq: r.Seq, Cancel: r.Cancel != nil,
	}
}

// drive does what there is to be done about a job, once.
func (c *client) drive(ctx context.Context, id job.ID) {
	var rec job.Record
	a := c.call(ctx, linear.Call{Job: int64(id), Kind: linear.Read}, func() (a linear.Answer, err error) {
		rec, err = c.store.Load(ctx, id)
		return linear.Answer{OK: true, Record: seen(&rec)}, err
	})
	switch {
	case a.Lost:
	case c.dice.IntN(12) == 0:
		c.cancel(ctx, id)
	case rec.Step == job.StepDone:
		c.resume(ctx, id)
	case rec.Step == job.StepWatch:
		c.work(ctx, c.claim(ctx, id))
	case rec.Ran == rec.Dispatch:
		c.redispatch(ctx, &rec)
	default:
		c.work(ctx, c.begin(ctx, &rec))
	}
}

func (c *client) cancel(ctx context.Context, id job.ID) {
	c.call(ctx, linear.Call{Job: int64(id), Kind: linear.Cancel}, func() (linear.Answer, error) {
		w, err := c.store.Cancel(ctx, id, "ada", 0)
		return linear.Answer{OK: w.Live}, err
	})
}

func (c *client) resume(ctx context.Context, id job.ID) {
	c.call(ctx, linear.Call{Job: int64(id), Kind: linear.Resume}, func() (linear.Answer, error) {
		w, err := c.store.Resume(ctx, id, "ada")
		if errors.Is(err, store.ErrStale) { // others were faster each time: nothing is said of the record
			return linear.Answer{Lost: true}, nil
		}
		return linear.Answer{OK: w.Live}, err
	})
}

func (c *client) redispatch(ctx context.Context, rec *job.Record) {
	o := store.Overdue{Act: store.Act{ID: rec.ID, Step: rec.Step, N: rec.Dispatch}, Ran: rec.Ran}
	c.call(ctx, linear.Call{Job: int64(rec.ID), Kind: linear.Redispatch, Step: string(o.Step), N: o.N, Ran: o.Ran}, func() (linear.Answer, error) {
		n, err := c.store.Redispatch(ctx, o, time.Minute)
		return linear.Answer{OK: n > 0, N: n}, err
	})
}

// begin begins the act that must exist; nil if it is not to be. Without an answer it asks once more, as a queue does that
// brings a task again.
func (c *client) begin(ctx context.Context, rec *job.Record) *store.Claimed {
	token, raise := c.book.newToken(), c.draw()
	for range 2 {
		var got store.Claimed
		a := c.call(ctx, linear.Call{Job: int64(rec.ID), Kind: linear.Begin, Step: string(rec.Step), N: rec.Dispatch, Token: token, Raise: raise, Lease: (lease - fuzzy).Nanoseconds()}, func() (a linear.Answer, err error) {
			got, err = c.store.Begin(ctx, rec.ID, rec.Step, rec.Dispatch, token, lease)
			if err != nil {
				return a, err
			}
			return linear.Answer{OK: true, Record: seen(&got.Record)}, nil
		})
		if a.OK {
			return &got
		}
		if !a.Lost {
			break
		}
	}
	return nil
}

// claim takes a job as the watch does; nil if it is not due. Each job has a shard of its own.
func (c *client) claim(ctx context.Context, id job.ID) *store.Claimed {
	var got *store.Claimed
	what := linear.Call{Job: int64(id), Kind: linear.Claim, Raise: c.draw(), Lease: (lease - fuzzy).Nanoseconds(), Began: c.book.now()}
	due, err := c.store.Claim(ctx, c.store.ShardOf(id), 10, 0, lease, time.Minute)
	a := linear.Answer{Ended: c.book.now()}
	switch {
	case errors.Is(err, store.ErrUnavailable):
		a.Lost = true
	case err != nil:
		c.t.Errorf("claim job %d: %v", id, err)
	case len(due.Jobs) > 0:
		got = &due.Jobs[0]
		a.OK, a.Record = true, seen(&got.Record)
	case a.Ended-what.Began < what.Lease:
		return nil // nothing was taken
	default:
		a.Lost = true // it may have been taken, and by others after that, before it could be read
	}
	c.book.add(c.id, what, a)
	return got
}

// work commits a few decisions about a claimed job, and sometimes takes too long for it.
func (c *client) work(ctx context.Context, got *store.Claimed) {
	for got != nil && ctx.Err() == nil {
		pause(ctx, time.Duration(c.dice.IntN(30))*time.Millisecond)
		switch c.dice.IntN(10) {
		case 0:
			pause(ctx, 2*lease)
		case 1:
			c.handover(ctx, got)
			return
		case 2:
			if !c.beat(ctx, got) {
				return
			}
		}
		if keep := c.commit(ctx, got); !keep {
			return
		}
	}
}

func (c *client) beat(ctx context.Context, got *store.Claimed) bool {
	return c.call(ctx, linear.Call{Job: int64(got.ID), Kind: linear.Beat, Fence: got.Fence, Lease: (lease - fuzzy).Nanoseconds()}, func() (linear.Answer, error) {
		cancelled, err := c.store.Beat(ctx, got.ID, got.Fence, lease)
		return linear.Answer{OK: true, Record: linear.Record{Cancel: cancelled}}, err
	}).OK
}

func (c *client) handover(ctx context.Context, got *store.Claimed) {
	c.call(ctx, linear.Call{Job: int64(got.ID), Kind: linear.Handover, Fence: got.Fence}, func() (linear.Answer, error) {
		_, err := c.store.Handover(ctx, got)
		return linear.Answer{OK: true}, err
	})
}

// commit writes one decision, and reports whether the claim is still ours. Without an answer the very same commit is
// repeated, once.
func (c *client) commit(ctx context.Context, got *store.Claimed) bool {
	next, keep := c.decide(got)
	what := linear.Call{
		Job: int64(got.ID), Kind: linear.Commit, Fence: got.Fence, Seq: got.Seq, From: string(got.Status()), Keep: keep,
		Next: linear.Record{Step: string(next.Step), Status: string(next.Status())},
	}
	for range 2 {
		a := c.call(ctx, what, func() (linear.Answer, error) {
			results, err := c.store.Commit(ctx, c.store.ShardOf(got.ID), store.Commit{From: got, Next: next, Keep: keep})
			if err != nil {
				return linear.Answer{}, err
			}
			return linear.Answer{OK: results[0] == nil, Record: linear.Record{Cancel: keep && results[0] == nil && got.Cancel != nil}}, results[0]
		})
		if !a.Lost {
			return a.OK && keep
		}
	}
	return false
}

// decide is a life in a few steps: a cancel is honoured, and otherwise chance decides.
func (c *client) decide(got *store.Claimed) (next job.Record, keep bool) {
	next = got.Clone()
	next.Due = got.Now
	status := &next.Tasks[0].Status
	switch {
	case got.Step == job.StepCleanup:
		next.Step = job.StepDone
		return next, false
	case got.Cancel != nil:
		next.Step, *status = job.StepCleanup, job.Cancelled
	case *status == job.Pending:
		*status = job.Starting
	case c.dice.IntN(8) == 0:
		next.Step, *status = job.StepCleanup, job.Failed
	case *status == job.Running:
		next.Step, *status = job.StepRecover, job.Recovering
	default:
		next.Step, *status = job.StepWatch, job.Running
	}
	return next, c.dice.IntN(2) == 0
}

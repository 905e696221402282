package follow

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Tails is where the last moments of running attempts are.
type Tails interface {
	TailRead(ctx context.Context, id job.ID, task, attempt int, offset int64, limit int) (store.Piece, error)
}

// Store is where jobs and live tails are.
type Store interface {
	Tails
	Load(ctx context.Context, id job.ID) (job.Record, error)
	Past(ctx context.Context, id job.ID) ([]job.Attempt, error)
}

// Selection says what of a job's output is wanted.
type Selection struct {
	Job     job.ID
	Task    int  // index, or AllTasks
	Attempt int  // only this one, of each task that is selected; 0 means all
	Tail    int  // begin with so many lines of the newest attempt; 0 means with the first line of the first
	Follow  bool // until the job, or what was selected, has ended

	From Position // begin there, instead of what Tail says; the zero Position is none
}

// Position is a place in a job's output: who broke off there can go on from it. Attempts count from 1.
type Position struct {
	Task    int
	Attempt int
	Offset  int64 // of the next byte
}

// AllTasks selects the whole chain.
const AllTasks = -1

// Follower reads a job's output. Fields below Out may be left out.
type Follower struct {
	Store   Store
	Archive Archive   // nil if it cannot be had
	Out     io.Writer // a [Printer] for more than the bytes

	Begin  func(a job.Attempt)               // before the output of another attempt than the one shown before
	At     func(Position)                    // where the reading stands: before each write with what Begin tells, and after each look
	Seen   func(context.Context, job.Record) // the record, after each look
	Beat   func(context.Context)             // every BeatEvery while following
	Broken func(error)                       // something failed, and is tried again

	Removed func(archive.Notice) // the logs were removed, and why
}

const (
	// LookEvery is how often a follower looks.
	LookEvery = 200 * time.Millisecond
	// BeatEvery is how often a follower says that it is there.
	BeatEvery = time.Second
	// settle is how long the output of a job that has ended may take to reach the archive. After that there is no
	// worker, or no archive: what there is is shown.
	settle = 15 * time.Second
	// retryEvery is how often a store that does not answer is tried.
	retryEvery = time.Second
)

// Run shows the output and returns the record as it was seen last. Without Follow it shows what there is. The error is
// that of ctx if it was cancelled, and wraps [store.ErrNotFound] if there is no such job. While following, any other is
// one of Out, or came before there was anything to follow.
func (f *Follower) Run(ctx context.Context, sel Selection) (job.Record, error) {
	rec, err := f.Store.Load(ctx, sel.Job)
	if err != nil {
		return rec, err
	}
	r := &reading{f: f, out: outOf(f.Out), sel: sel, task: max(sel.Task, 0), attempt: max(sel.Attempt, 1)}
	switch {
	case sel.From != Position{}:
		if err := r.resume(&rec); err != nil {
			return rec, err
		}
	case sel.Tail > 0:
		if err := r.jump(ctx, &rec); err != nil {
			return rec, err
		}
	}
	rec, err = r.run(ctx, rec)
	if err == nil && r.shown == nil && rec.Ended() {
		f.tellRemoved(ctx, sel.Job)
	}
	return rec, err
}

// tellRemoved tells why there is no output of a job that has ended, if that is because it was removed.
func (f *Follower) tellRemoved(ctx context.Context, id job.ID) {
	if f.Archive == nil || f.Removed == nil {
		return
	}
	switch n, err := f.Archive.Notice(ctx, id); {
	case err == nil:
		f.Removed(n)
	case !errors.Is(err, archive.ErrNotFound) && f.Broken != nil:
		f.Broken(err)
	}
}

// run looks again and again until the end.
func (r *reading) run(ctx context.Context, rec job.Record) (job.Record, error) {
	look := time.NewTicker(LookEvery)
	defer look.Stop()
	var beat time.Time
	for {
		if r.sel.Follow && r.f.Beat != nil && time.Since(beat) >= BeatEvery {
			r.f.Beat(ctx)
			beat = time.Now()
		}
		if r.f.Seen != nil {
			r.f.Seen(ctx, rec)
		}
		done, err := r.step(ctx, &rec)
		r.tell()
		if done || !r.sel.Follow || errors.Is(err, errOutput) {
			return rec, err
		}
		if rec, err = r.again(ctx, rec, look.C, err); err != nil {
			return rec, err
		}
	}
}

// again waits for the next look and loads the record. A store that does not answer is waited for.
func (r *reading) again(ctx context.Context, old job.Record, look <-chan time.Time, err error) (job.Record, error) {
	if err != nil {
		r.broken(err)
	}
	for {
		select {
		case <-ctx.Done():
			return old, ctx.Err()
		case <-look:
		}
		rec, err := r.f.Store.Load(ctx, r.sel.Job)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return rec, err
		}
		if ctx.Err() != nil {
			return old, ctx.Err()
		}
		r.broken(err)
		select {
		case <-ctx.Done():
			return old, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

func (r *reading) broken(err error) {
	if r.f.Broken != nil {
		r.f.Broken(err)
	}
}

// newLog begins the output of the current attempt.
func (r *reading) newLog(rec *job.Record) *Log {
	return &Log{Store: r.f.Store, Archive: r.f.Archive, Key: archive.LogOf(&rec.Head, r.task, r.attempt)}
}

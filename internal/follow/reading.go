package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// errOutput says that the reader of the output is gone, for whom nothing else is worth trying.
var errOutput = errors.New("write the output")

// ErrNoPosition says that a job's output cannot have such a position.
var ErrNoPosition = errors.New("no such place in the output")

// reading is how far a follower has come.
type reading struct {
	f       *Follower
	out     Out
	sel     Selection
	task    int
	attempt int
	passed  bool         // the one attempt that was wanted of the task was shown
	log     *Log         // of that attempt; nil before its first byte was looked for
	shown   *job.Attempt // whose output was shown last
	ended   time.Time    // when the job was first seen to have ended
	past    map[key]job.Attempt
}

type key struct{ task, attempt int }

// stage is what an attempt means for its output.
type stage int

const (
	stageFuture stage = iota // there is no such attempt, yet
	stageLive                // more may come
	stageOver                // all there will ever be is there
)

// stageOf judges one attempt.
func stageOf(rec *job.Record, task, attempt int) stage {
	switch {
	case task > rec.Cur || attempt > rec.Tasks[task].Attempts:
		return stageFuture
	case task < rec.Cur:
		return stageOver
	}
	a := rec.Attempt(attempt)
	switch {
	case a == nil || a.Saved:
		return stageOver
	case a.Phase == job.PhaseClosing && a.StartedAt.IsZero(): // it never ran the user's code
		return stageOver
	default:
		return stageLive
	}
}

// step shows what there is now. It returns true when there will never be more.
func (r *reading) step(ctx context.Context, rec *job.Record) (bool, error) {
	if rec.Ended() && r.ended.IsZero() {
		r.ended = time.Now()
	}
	for {
		switch s := stageOf(rec, r.task, r.attempt); {
		case s == stageFuture || r.passed:
			if more := r.nextTask(rec); !more {
				return r.over(rec), nil
			}
		case s == stageLive && !r.sel.Follow:
			return true, r.rest(ctx, rec)
		case s == stageLive && !r.overdue():
			return false, r.live(ctx, rec)
		default:
			if err := r.rest(ctx, rec); err != nil {
				return false, err
			}
			if r.passed = r.sel.Attempt != 0; !r.passed {
				r.attempt, r.log = r.attempt+1, nil
			}
		}
	}
}

// nextTask goes on to the next task of the chain if nothing more can come of the current one.
func (r *reading) nextTask(rec *job.Record) bool {
	if r.sel.Task != AllTasks || !rec.Tasks[r.task].Status.Terminal() || r.task+1 >= len(rec.Tasks) {
		return false
	}
	r.task, r.attempt, r.passed, r.log = r.task+1, max(r.sel.Attempt, 1), false, nil
	return true
}

// over reports whether nothing more can come from where the reading stands.
func (r *reading) over(rec *job.Record) bool {
	if r.passed && (r.sel.Task != AllTasks || r.task+1 == len(rec.Tasks)) {
		return true
	}
	return rec.Ended() || rec.Tasks[r.task].Status.Terminal() && r.sel.Task != AllTasks
}

// overdue reports whether the job has ended so long ago that its output will not reach the archive any more.
func (r *reading) overdue() bool { return !r.ended.IsZero() && time.Since(r.ended) >= settle }

// live shows what a running attempt has written meanwhile.
func (r *reading) live(ctx context.Context, rec *job.Record) error {
	a := rec.Attempt(r.attempt)
	if a.StartedAt.IsZero() {
		return nil
	}
	_, err := r.open(rec).Live(ctx, r.output(*a))
	return err
}

// rest shows the end of an attempt that is over. What an archive out of order keeps is told and passed over; a store that
// does not answer is waited for.
func (r *reading) rest(ctx context.Context, rec *job.Record) error {
	a, err := r.describe(ctx, rec)
	if err != nil {
		return err
	}
	if a.StartedAt.IsZero() && a.Number != 0 && r.log == nil {
		return nil // known, and known never to have run
	}
	a.Task, a.Number = r.task, r.attempt
	return r.passOver(ctx, "the end", r.open(rec).Rest(ctx, r.output(a)))
}

// passOver tells that an archive out of order has kept a part of the current attempt's output. It returns the errors for
// which nothing can be shown now.
func (r *reading) passOver(ctx context.Context, part string, err error) error {
	if err == nil || errors.Is(err, errOutput) || errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	r.broken(fmt.Errorf("%s of attempt %d cannot be read: %w", part, r.attempt, err))
	return nil
}

// describe returns what is known about the current attempt: nothing if it was folded out of the history.
func (r *reading) describe(ctx context.Context, rec *job.Record) (job.Attempt, error) {
	if a := rec.Attempt(r.attempt); a != nil && a.Task == r.task {
		return *a, nil
	}
	k := key{r.task, r.attempt}
	if _, known := r.past[k]; !known {
		list, err := r.f.Store.Past(ctx, r.sel.Job)
		if err != nil {
			return job.Attempt{}, err
		}
		r.past = map[key]job.Attempt{k: {}}
		for _, a := range list {
			r.past[key{a.Task, a.Number}] = a
		}
	}
	return r.past[k], nil
}

func (r *reading) open(rec *job.Record) *Log {
	if r.log == nil {
		r.log = r.newLog(rec)
	}
	return r.log
}

// jump goes to the newest attempt that has run, and shows its last lines.
func (r *reading) jump(ctx context.Context, rec *job.Record) error {
	if r.sel.Task == AllTasks {
		r.task = rec.Cur
	}
	if r.sel.Attempt == 0 {
		newest, err := r.newest(ctx, rec)
		if err != nil {
			return err
		}
		r.attempt = newest
	}
	if stageOf(rec, r.task, r.attempt) == stageFuture {
		return nil
	}
	r.log = r.newLog(rec)
	err := r.log.Last(ctx, r.output(job.Attempt{Task: r.task, Number: r.attempt}), r.sel.Tail)
	return r.passOver(ctx, "a part", err)
}

// resume goes to where another reading broke off.
func (r *reading) resume(rec *job.Record) error {
	from := r.sel.From
	if from.Task < 0 || from.Task >= len(rec.Tasks) || from.Attempt < 1 || from.Offset < 0 {
		return fmt.Errorf("job %d: task %d, attempt %d, byte %d: %w", rec.ID, from.Task, from.Attempt, from.Offset, ErrNoPosition)
	}
	r.task, r.attempt = from.Task, from.Attempt
	r.log = r.newLog(rec)
	r.log.Begin(from.Offset)
	switch {
	case from.Offset > 0:
		r.shown = &job.Attempt{Task: from.Task, Number: from.Attempt}
	case from.Task > 0 || from.Attempt > 1: // another one was shown before: the change is told
		r.shown = &job.Attempt{}
	}
	return nil
}

// tell says where the reading stands.
func (r *reading) tell() {
	if r.f.At == nil {
		return
	}
	at := Position{Task: r.task, Attempt: r.attempt}
	if r.log != nil {
		at.Offset = r.log.Offset()
	}
	r.f.At(at)
}

// newest is the number of the newest attempt of the task that has run, or 1.
func (r *reading) newest(ctx context.Context, rec *job.Record) (int, error) {
	newest := 1
	list, err := r.f.Store.Past(ctx, r.sel.Job)
	if err != nil {
		return 0, err
	}
	for _, a := range append(list, rec.Live...) {
		if a.Task == r.task && !a.StartedAt.IsZero() {
			newest = max(newest, a.Number)
		}
	}
	return newest, nil
}

// output is where the output of an attempt goes. Before its first byte the change of attempt is told.
func (r *reading) output(a job.Attempt) *output { return &output{r: r, a: a} }

type output struct {
	r *reading
	a job.Attempt
}

// begin tells where the reading stands, and of the change of attempt.
func (o *output) begin() {
	o.r.tell()
	if was := o.r.shown; was == nil || was.Task != o.a.Task || was.Number != o.a.Number {
		if was != nil && o.r.f.Begin != nil {
			o.r.f.Begin(o.a)
		}
		o.r.shown = &o.a
	}
}

// Bytes implements [Out].
func (o *output) Bytes(offset int64, data []byte, marks []job.Mark) error {
	if len(data) == 0 {
		return nil
	}
	o.begin()
	return ofOutput(o.r.out.Bytes(offset, data, marks))
}

// Note implements [Out].
func (o *output) Note(line string) error {
	o.begin()
	return ofOutput(o.r.out.Note(line))
}

func ofOutput(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	return nil
}

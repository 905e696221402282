package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// run follows until the end, with a line for each change of attempt.
func run(ctx context.Context, w *world, sel Selection) (string, job.Record, error) {
	var out strings.Builder
	sel.Job = 7
	f := &Follower{Store: w, Archive: w.files, Out: &out}
	f.Begin = func(a job.Attempt) {
		fmt.Fprintf(&out, "-- task %d attempt %d %s\n", a.Task, a.Number, a.Offer.Provider)
	}
	f.Broken = func(err error) { fmt.Fprintf(&out, "-- %v\n", err) }
	rec, err := f.Run(ctx, sel)
	return out.String(), rec, err
}

// Ensure that a follower shows the whole output of a chain that loses a machine on the way, in order, each change of
// attempt told, attempts that never ran passed over, and ends with the user's code, not with the clean-up.
func TestFollowsOverAttemptsAndTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		go func() {
			step := func(f func(r *job.Record)) {
				time.Sleep(time.Second)
				w.change(f)
			}
			step(func(r *job.Record) {
				r.Tasks[0].Status, r.Tasks[0].Attempts = job.Running, 1
				r.Live = []job.Attempt{started(1)}
			})
			w.tail(0, 1, 0, lines(0, 2))
			time.Sleep(time.Second)
			w.tail(0, 1, 0, lines(0, 4))
			w.keep(t, 0, 1, 0, lines(0, 5))
			step(func(r *job.Record) { // the machine was lost, and two tries found none
				r.Tasks[0].Status, r.Tasks[0].Attempts, r.Live = job.Recovering, 3, nil
				w.past = []job.Attempt{started(1), {Number: 2}, {Number: 3}}
			})
			step(func(r *job.Record) {
				r.Tasks[0].Status, r.Tasks[0].Attempts = job.Running, 4
				r.Live = []job.Attempt{started(4)}
			})
			w.tail(0, 4, 0, lines(5, 7))
			step(func(r *job.Record) {
				r.Tasks[0].Status = job.Succeeded
				r.Live[0].Phase = job.PhaseClosing
			})
			w.keep(t, 0, 4, 0, lines(5, 8))
			step(func(r *job.Record) { r.Live[0].Saved = true })
			step(func(r *job.Record) {
				w.past = append(w.past, started(4))
				r.Cur, r.Live = 1, []job.Attempt{{Task: 1, Number: 1, Phase: job.PhaseStarted, StartedAt: 1}}
				r.Tasks[1].Status, r.Tasks[1].Attempts = job.Running, 1
			})
			w.keep(t, 1, 1, 0, "the end\n")
			step(func(r *job.Record) { // its machine still exists
				r.Tasks[1].Status = job.Failed
				r.Live[0].Phase, r.Live[0].Saved = job.PhaseClosing, true
			})
		}()
		out, rec, err := run(t.Context(), w, Selection{Task: AllTasks, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		want := lines(0, 5) + "-- task 0 attempt 4 local\n" + lines(5, 8) + "-- task 1 attempt 1 \nthe end\n"
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if rec.Status() != job.Failed {
			t.Errorf("status is %s, want that of the end", rec.Status())
		}
	})
}

// Ensure that a store that does not answer is a pause: following goes on where it stopped.
func TestFollowOutlastsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Running, 1, []job.Attempt{started(1)}
		w.tail(0, 1, 0, "one\n")
		go func() {
			time.Sleep(time.Second)
			w.change(func(*job.Record) { w.down = fmt.Errorf("look: %w", store.ErrUnavailable) })
			time.Sleep(time.Hour)
			w.change(func(*job.Record) { w.down = nil })
			w.tail(0, 1, 0, "one\ntwo\n")
			time.Sleep(time.Second)
			w.change(func(r *job.Record) {
				r.Tasks[0].Status, r.Tasks[1].Status, r.Live[0].Saved = job.Failed, job.Cancelled, true
			})
		}()
		out, rec, err := run(t.Context(), w, Selection{Task: AllTasks, Follow: true})
		first, _, _ := strings.Cut(out, "--")
		if err != nil || rec.Status() != job.Failed || first != "one\n" || !strings.HasSuffix(out, "two\n") || strings.Count(out, "one\n") != 1 {
			t.Errorf("status %s, error %v, output:\n%s", rec.Status(), err, out)
		}
	})
}

// Ensure that following ends a while after the job even if nobody is left to save the output.
func TestFollowEndsWithoutAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Failed, 1, []job.Attempt{started(1)}
		w.rec.Tasks[1].Status = job.Cancelled
		w.tail(0, 1, 0, "one\n")
		start := time.Now()
		out, _, err := run(t.Context(), w, Selection{Task: AllTasks, Follow: true})
		if took := time.Since(start); err != nil || out != "one\n" || took < settle || took > 2*settle {
			t.Errorf("ended after %s with %v, output:\n%s", took, err, out)
		}
	})
}

// Ensure that without following, what there is is shown at once, also of a running attempt.
func TestShowsWhatThereIs(t *testing.T) {
	running := func(t *testing.T) *world {
		w := newWorld(t)
		w.past = []job.Attempt{started(1)}
		w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Running, 2, []job.Attempt{started(2)}
		w.keep(t, 0, 1, 0, lines(0, 3))
		w.keep(t, 0, 2, 0, lines(3, 5))
		w.tail(0, 2, 7, lines(4, 6))
		return w
	}
	for _, tc := range []struct {
		name string
		sel  Selection
		want string
	}{
		{"all of it", Selection{Task: AllTasks}, lines(0, 3) + "-- task 0 attempt 2 local\n" + lines(3, 6)},
		{"one attempt", Selection{Task: AllTasks, Attempt: 1}, lines(0, 3)},
		{"an attempt that is not there", Selection{Task: AllTasks, Attempt: 3}, ""},
		{"a task that has not begun", Selection{Task: 1}, ""},
		{"the last lines, of the newest attempt", Selection{Task: AllTasks, Tail: 2}, lines(4, 6)},
		{"the last lines of an attempt", Selection{Task: 0, Tail: 1, Attempt: 1}, lines(2, 3)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, rec, err := run(t.Context(), running(t), tc.sel)
			if diff := cmp.Diff(tc.want, out); diff != "" || err != nil {
				t.Errorf("error %v, output (-want +got):\n%s", err, diff)
			}
			if rec.Status() != job.Running {
				t.Errorf("status is %s", rec.Status())
			}
		})
	}
}

// Ensure that an archive out of order is told, and what the tail has is still shown.
func TestBrokenArchive(t *testing.T) {
	w := newWorld(t)
	w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Running, 1, []job.Attempt{started(1)}
	w.tail(0, 1, 0, "one\n")
	var out strings.Builder
	var told error
	f := &Follower{Store: w, Archive: broken{}, Out: &out, Broken: func(err error) { told = err }}
	if _, err := f.Run(t.Context(), Selection{Job: 7, Task: AllTasks}); err != nil || !errors.Is(told, errBroken) || out.String() != "one\n" {
		t.Errorf("error %v, told %v, output %q", err, told, out.String())
	}
}

// Ensure that while the archive is out of order the newest output is shown all the same: from its last lines on, and behind a
// hole that only the archive could close.
func TestBrokenArchiveWhileFollowing(t *testing.T) {
	for _, tc := range []struct {
		name string
		sel  Selection
		want string
	}{
		{"from the beginning", Selection{}, "[outlast: 100 bytes are passed over here, to keep up with the output]\none\ntwo\n"},
		{"from the last line", Selection{Tail: 1}, "two\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Running, 1, []job.Attempt{started(1)}
				w.tail(0, 1, 100, "one\ntwo\n")
				var out strings.Builder
				var told error
				tc.sel.Job, tc.sel.Task, tc.sel.Follow = 7, AllTasks, true
				f := &Follower{Store: w, Archive: broken{}, Out: &out, Broken: func(err error) { told = err }}
				ctx, done := context.WithTimeout(t.Context(), time.Minute)
				defer done()
				if _, err := f.Run(ctx, tc.sel); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if out.String() != tc.want || !errors.Is(told, errBroken) {
					t.Errorf("told %v, output %q, want %q", told, out.String(), tc.want)
				}
			})
		})
	}
}

// Ensure that one attempt of a chain is that of each of its tasks, and that a task which never had it is passed over.
func TestOneAttemptOfAChain(t *testing.T) {
	for _, follow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.past = job.Succeeded, 1, []job.Attempt{started(1)}
			w.rec.Cur, w.rec.Tasks[1].Status, w.rec.Tasks[1].Attempts = 1, job.Running, 2
			second := started(2)
			second.Task = 1
			w.rec.Live = []job.Attempt{second}
			w.keep(t, 0, 1, 0, "not this one\n")
			w.keep(t, 1, 1, 0, "nor this one\n")
			w.tail(1, 2, 0, "one\n")
			later := func() {
				time.Sleep(time.Second)
				w.tail(1, 2, 0, "one\ntwo\n")
				time.Sleep(time.Second)
				w.change(func(r *job.Record) { r.Tasks[1].Status, r.Live[0].Saved = job.Failed, true })
			}
			want := "one\n"
			if follow {
				go later()
				want = "one\ntwo\n"
			}
			out, _, err := run(t.Context(), w, Selection{Task: AllTasks, Attempt: 2, Follow: follow})
			if out != want || err != nil {
				t.Errorf("follow %t: error %v, output %q, want %q", follow, err, out, want)
			}
		})
	}
}

// Ensure that following ends at once when its reader has gone or its context ends, and that an unknown job is told apart.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts, w.rec.Live = job.Running, 1, []job.Attempt{started(1)}
		w.tail(0, 1, 0, "one\n")
		r, out := io.Pipe()
		_ = r.Close()
		f := &Follower{Store: w, Archive: w.files, Out: out}
		if _, err := f.Run(t.Context(), Selection{Job: 7, Follow: true}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("with a closed pipe: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Out, f.Beat = io.Discard, func(context.Context) { time.AfterFunc(time.Minute, cancel) }
		if _, err := f.Run(ctx, Selection{Job: 7, Follow: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		w.down = fmt.Errorf("job 7: %w", store.ErrNotFound)
		if _, err := f.Run(t.Context(), Selection{Job: 7, Follow: true}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown job: %v", err)
		}
	})
}

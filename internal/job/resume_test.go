package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// resume lets the job go again, as a person does.
func (s *sim) resume() {
	next, err := job.Resumed(s.rec, "ann", s.now)
	if err != nil {
		s.fail("%v", err)
	}
	for _, e := range next.Events {
		s.checkEvent(e)
	}
	s.events = append(s.events, next.Events...)
	s.rec, s.due, s.stored = next.Clone(), s.now, nil
}

// TestResumedGoesOnWhereItFailed ensures that a chain goes again from the task that failed: what succeeded stays, attempt
// numbers go on, so that tokens and logs are never used twice, restarts are counted anew, and the history tells who
// resumed it and how it had ended.
func TestResumedGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(1, chances{})
	w.plan = func(task, attempt int) code {
		c := code{after: 10 * time.Second, exit: job.Exit{Stage: "run"}}
		if task == 1 && attempt <= 3 {
			c.exit.Code = 3
		}
		return c
	}
	s := newSim(t, w, job.TaskHead{}, job.TaskHead{Recovery: job.Recovery{MaxRestartsOnErrors: 1}}, job.TaskHead{})
	s.finish(time.Hour)
	first := s.rec
	if first.Status() != job.Failed || first.Tasks[1].Attempts != 2 || first.Tasks[1].Restarts != 1 {
		t.Fatalf("the first life: %s, %+v", first.Status(), first.Tasks[1])
	}
	s.resume()
	events := s.events[len(s.events)-2:]
	if e := events[0]; e.From != "FAILED" || e.To != "PENDING" || e.Task != 1 || e.Cause.Code != job.CodeResumed ||
		e.Cause.Text != "resumed by ann" || e.Cause.Evidence != "it was FAILED: the user's code ended with exit code 3" {
		t.Errorf("the history tells %+v", e)
	}
	if e := events[1]; e.From != "CANCELLED" || e.Task != 2 {
		t.Errorf("of the task after it, the history tells %+v", e)
	}
	if got := s.rec; got.Cur != 1 || got.Step != job.StepLaunch || got.Dispatch <= first.Dispatch || got.Status() != job.Pending {
		t.Errorf("it goes on at task %d, step %s, act %d of %d, %s", got.Cur, got.Step, got.Dispatch, first.Dispatch, got.Status())
	}
	s.finish(time.Hour)
	if s.rec.Status() != job.Succeeded {
		t.Fatalf("the second life is %s: %+v", s.rec.Status(), s.rec.Tasks)
	}
	if diff := cmp.Diff(first.Tasks[0], s.rec.Tasks[0]); diff != "" {
		t.Errorf("the task that had succeeded has changed:\n%s", diff)
	}
	if got := s.rec.Tasks[1]; got.Attempts != 4 || got.Restarts != 1 || got.Recoveries != 2 || !got.Cause.IsZero() && got.Cause.Code != job.CodeSucceeded {
		t.Errorf("the task that had failed: %+v", got)
	}
	if got := s.rec.Tasks[1]; got.SpentMS != first.Tasks[1].RunMS || got.RunMS <= got.SpentMS {
		t.Errorf("run time %d ms, of which %d before", got.RunMS, got.SpentMS)
	}
	tokens := map[string]bool{}
	for _, v := range s.vms {
		if tokens[v.token] {
			t.Errorf("the token of task %d attempt %d was used twice", v.task, v.attempt)
		}
		tokens[v.token] = true
	}
}

// TestResumeAfterCancel ensures that a cancelled job goes again, and that the old cancel does not end it again (G7 belongs
// to one life).
func TestResumeAfterCancel(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.cancel()
	s.finish(time.Hour)
	s.plan = func(int, int) code { return code{after: time.Minute, exit: job.Exit{Stage: "run"}} }
	s.resume()
	s.finish(time.Hour)
	if got := s.rec.Tasks[0]; got.Status != job.Succeeded || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}
}

// TestG5_ResumeIsRefused ensures that only a job that has ended otherwise than well, and of which nothing is left, goes
// again, and that a refusal says why.
func TestG5_ResumeIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func() *sim
		want string
	}{
		{"a job that runs", func() *sim { return running(t) }, "job 7 cannot be resumed: it is RUNNING; cancel it first"},
		{"one that is being cancelled", func() *sim {
			s := running(t)
			s.cancel()
			s.until(time.Hour, "cancelling", func() bool { return s.rec.Status() == job.Cancelling })
			return s
		}, "it is CANCELLING"},
		{"one whose machine is still there", func() *sim {
			s := running(t)
			s.vms[0].code.ends, s.vms[0].code.exit.Code = s.now, 1
			s.until(time.Hour, "failed", func() bool { return s.rec.Status() == job.Failed })
			return s
		}, "its machines are still being closed; try again"},
		{"one that succeeded", func() *sim {
			s := newSim(t, newWorld(1, chances{}))
			s.finish(time.Hour)
			return s
		}, "it has succeeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.make()
			_, err := job.Resumed(s.rec, "ann", s.now)
			var refused *job.NotResumableError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

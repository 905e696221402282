package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG7_CancelAtEveryPoint cancels before every single act in the life of a job that is preempted with and without
// notice, loses answers and is restarted. It ends CANCELLED, soon, and leaves nothing.
//
// skypilot #8202: a cancel was lost while a job changed hands.
func TestG7_CancelAtEveryPoint(t *testing.T) {
	t.Parallel()
	for point := 1; point <= 120; point++ {
		w := newWorld(5, chances{Lost: 30, Capacity: 20, Preempt: 8, Notice: 50})
		w.plan = func(_, n int) code {
			return code{after: 2 * time.Minute, exit: job.Exit{Stage: "run", Code: 7}, deaf: n%2 == 0}
		}
		s := newSim(t, w, job.TaskHead{Grace: 5 * time.Second, Recovery: job.Recovery{RecoverOnExitCodes: []int{7}}}, job.TaskHead{})
		acts := 0
		s.onDo = func(job.Do) {
			if acts++; acts == point {
				s.cancel()
			}
		}
		s.until(100*time.Hour, "cancelled", func() bool { return s.rec.Cancel != nil || acts > point })
		at := s.now
		s.chances, s.decided = chances{}, 0
		s.finish(5 * time.Minute)
		if s.decided > 120 {
			t.Fatalf("point %d: %d decisions, %s after the cancel", point, s.decided, s.now.Sub(at))
		}
		for i, task := range s.rec.Tasks {
			if task.Status != job.Cancelled {
				t.Fatalf("point %d: task %d is %s", point, i, task.Status)
			}
		}
	}
}

// TestG7_Grace ensures that a cancel gives the user's code its grace from the moment at which it was told, however
// long nobody drove the job before that.
func TestG7_Grace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		own    time.Duration
		cancel time.Duration
		want   time.Duration
	}{
		{"the default", 0, -1, 30 * time.Second},
		{"the task's own", 7 * time.Second, -1, 7 * time.Second},
		{"as the canceller says", 7 * time.Second, 3 * time.Second, 3 * time.Second},
		{"none at all", 7 * time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, job.TaskHead{Grace: tt.own})
			s.vms[0].code.deaf = true
			s.cancel()
			s.rec.Cancel.Grace = tt.cancel
			for range 2 { // the cancel is taken, the attempt is put aside, and then no worker is there
				next, _ := job.Decide(s.rec, job.Seen{}, s.rules, s.now)
				s.commit(next)
			}
			s.now = s.now.Add(time.Hour)
			var told, ended job.Time
			s.onDo = func(do job.Do) {
				if do.Kind == job.DoStop && told == 0 {
					told = s.now
					if do.Grace != tt.want {
						t.Errorf("grace %s, want %s", do.Grace, tt.want)
					}
				}
				if do.Kind == job.DoTerminate && ended == 0 {
					ended = s.now
				}
			}
			s.finish(time.Hour)
			if got := ended.Sub(told); told == 0 || got < tt.want || got > tt.want+8*time.Second {
				t.Errorf("told at %d, machine ended %s later, want %s", told, got, tt.want)
			}
		})
	}
}

// TestG7_StartedAndNotYetCommitted ensures that code which a driver started, and died before it could say so, gets its
// grace and its log is saved when the job is cancelled then; and that code whose start is still under way is not
// started after the cancel.
func TestG7_StartedAndNotYetCommitted(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{true, false} {
		w := newWorld(1, chances{})
		w.plan = forever
		s := newSim(t, w)
		s.onDo = func(do job.Do) {
			if do.Kind == job.DoStart {
				s.crash = 100
			}
		}
		s.until(time.Hour, "killed at its start", func() bool { return s.crash == 100 })
		s.crash, s.onDo = 0, nil
		v := s.vms[0]
		if started {
			s.start(s.rec.Attempt(1))
			v.code.deaf = true
		}
		s.cancel()
		acts := map[job.DoKind]int{}
		s.onDo = func(do job.Do) { acts[do.Kind]++ }
		began := s.now
		s.finish(time.Hour)
		if acts[job.DoStop] == 0 || started != (acts[job.DoSave] > 0) {
			t.Errorf("started %t: told to stop %d times, log saved %d times", started, acts[job.DoStop], acts[job.DoSave])
		}
		if started && (v.code.ends.Sub(began) < 30*time.Second || v.ends < v.code.ends) {
			t.Errorf("the code had %s, its machine ended %s later", v.code.ends.Sub(began), v.ends.Sub(v.code.ends))
		}
		if !started && !v.forbidden {
			t.Error("a late start would still be carried out")
		}
	}
}

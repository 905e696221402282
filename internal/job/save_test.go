package job_test

import (
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestG11_ArchiveAway ensures that a machine is kept for as long as it is worth while the archive does not take the end of its
// log: long if nothing else waits, shorter if the next machine does. The end is told at once where the code has ended.
func TestG11_ArchiveAway(t *testing.T) {
	t.Parallel()
	const short, long, slack = time.Minute, 10 * time.Minute, 45 * time.Second
	for _, tt := range []struct {
		what  string
		plan  func(int, int) code
		tasks []job.TaskHead
		world func(*sim)
		back  time.Duration // when the archive is there again; 0 is never
		kept  time.Duration // how long the machine is kept
		told  job.Status    // of the first task, while it is kept
	}{
		{what: "the code has succeeded", plan: exits(0), kept: long, told: job.Succeeded},
		{what: "the code has failed", plan: exits(1), kept: long, told: job.Failed},
		{what: "the archive comes back", plan: exits(1), back: 5 * time.Minute, kept: 5 * time.Minute, told: job.Failed},
		{what: "the archive comes back in time for a cancelled job", plan: forever, world: (*sim).cancel, back: 5 * time.Minute, kept: 5 * time.Minute, told: job.Cancelled},
		{what: "the job is cancelled", plan: forever, world: (*sim).cancel, kept: long, told: job.Cancelled},
		{what: "the job is cancelled and its machine is gone", plan: forever, world: func(s *sim) {
			s.cancel()
			s.take(s.vms[0], 0)
		}, kept: short, told: job.Cancelling},
		{what: "another machine is waited for", plan: exits(1, 0), tasks: []job.TaskHead{{Recovery: job.Recovery{MaxRestartsOnErrors: 1}}}, kept: short, told: job.Recovering},
		{what: "the next task waits", plan: exits(0), tasks: []job.TaskHead{{}, {}}, kept: short, told: job.Succeeded},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(1, chances{Archive: 100})
			w.plan = tt.plan
			s := newSim(t, w, tt.tasks...)
			var first, gone job.Time
			s.onDo = func(do job.Do) {
				switch {
				case do.Attempt != 1 || s.rec.Cur != 0:
				case do.Kind == job.DoSave && first == 0:
					first = s.now
				case do.Kind == job.DoTerminate && gone == 0:
					gone = s.now
				}
				if tt.back > 0 && first != 0 && s.now.Sub(first) >= tt.back {
					s.Archive = 0
				}
			}
			if tt.world != nil {
				s.until(time.Hour, "running", func() bool { return s.rec.Status() == job.Running })
				tt.world(s)
			}
			s.until(2*time.Hour, "refused by the archive", func() bool { return s.rec.Wait.For.Code == job.CodeStore })
			if got := s.rec.Tasks[0].Status; got != tt.told {
				t.Errorf("%s is told while the log is waited for, want %s", got, tt.told)
			}
			if notes := s.notes(job.CodeStore); notes != 1 {
				t.Errorf("the archive's trouble is told %d times when it begins, want once", notes)
			}
			s.until(2*time.Hour, "on the way to the machine's end", func() bool { return gone != 0 })
			if got := gone.Sub(first); got < tt.kept || got > tt.kept+slack {
				t.Errorf("the machine was kept for %s, want %s", got, tt.kept)
			}
			s.Archive = 0
			s.finish(2 * time.Hour)
		})
	}
}

// notes counts the remarks of the history with a code.
func (s *sim) notes(code job.Code) int {
	n := 0
	for _, e := range s.events {
		if e.Kind == "note" && e.Cause.Code == code {
			n++
		}
	}
	return n
}

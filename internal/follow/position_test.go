package follow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// spliced keeps what was written before each position that the follower told, and so what is left from there.
type spliced struct {
	strings.Builder
	f  *Follower
	at map[Position]int
}

func newSpliced(w *world) *spliced {
	s := &spliced{at: map[Position]int{}}
	s.f = &Follower{Store: w, Archive: w.files, Out: s}
	s.f.Begin = func(a job.Attempt) { fmt.Fprintf(s, "-- task %d attempt %d\n", a.Task, a.Number) }
	s.f.At = func(p Position) {
		if _, told := s.at[p]; !told {
			s.at[p] = s.Len()
		}
	}
	return s
}

// Ensure that who breaks off at any position that was told, and comes back with it, has every byte once.
func TestResumesAtAPosition(t *testing.T) {
	w := newWorld(t)
	w.past = []job.Attempt{started(1), {Number: 2, Phase: job.PhaseGone}, started(3)}
	w.rec.Tasks[0].Status, w.rec.Tasks[0].Attempts = job.Succeeded, 3
	w.rec.Cur, w.rec.Tasks[1].Status, w.rec.Tasks[1].Attempts = 1, job.Running, 1
	w.rec.Live = []job.Attempt{{Task: 1, Number: 1, Phase: job.PhaseStarted, StartedAt: 1}}
	w.keep(t, 0, 1, 0, lines(0, 20))
	w.keep(t, 0, 1, int64(len(lines(0, 20))), lines(20, 40))
	w.keep(t, 0, 3, 0, lines(40, 45))
	w.keep(t, 1, 1, 0, lines(45, 50))
	w.tail(1, 1, int64(len(lines(45, 48))), lines(48, 60))

	whole := newSpliced(w)
	if _, err := whole.f.Run(t.Context(), Selection{Job: 7, Task: AllTasks}); err != nil {
		t.Fatal(err)
	}
	if len(whole.at) < 5 {
		t.Fatalf("only %d positions were told", len(whole.at))
	}
	for from, length := range whole.at {
		if from == (Position{}) {
			t.Error("a position was told that means none")
		}
		rest := newSpliced(w)
		if _, err := rest.f.Run(t.Context(), Selection{Job: 7, Task: AllTasks, From: from}); err != nil {
			t.Errorf("%+v: %v", from, err)
		}
		if diff := cmp.Diff(whole.String()[length:], rest.String()); diff != "" {
			t.Errorf("from %+v (-want +got):\n%s", from, diff)
		}
	}
}

// Ensure that a position which cannot be is refused, since it may come from anybody.
func TestRefusesPositions(t *testing.T) {
	for _, from := range []Position{{Task: 2, Attempt: 1}, {Task: -1, Attempt: 1}, {Attempt: -1}, {Attempt: 1, Offset: -1}, {Offset: 3}} {
		s := newSpliced(newWorld(t))
		_, err := s.f.Run(t.Context(), Selection{Job: 7, Task: AllTasks, From: from})
		if err == nil || !errors.Is(err, ErrNoPosition) || s.Len() > 0 {
			t.Errorf("%+v: error %v, output %q", from, err, s.String())
		}
	}
}

package account

import (
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// Timeline is the picture of a job's life: for each task its attempts, each cut into segments, all on one axis of time.
// It holds times only. What draws it, a terminal or a page, gives it a width with [Timeline.Fraction].
type Timeline struct {
	Start, End Time // the axis: from the submission to the last thing that happened, or now
	Lanes      []Lane
}

// Lane is one task of the chain.
type Lane struct {
	Task   int
	Name   string
	Status job.Status
	Lost   int   // attempts before the first bar, which nobody remembers
	Bars   []Bar // oldest first
}

// Bar is one attempt. Two bars have no attempt of their own, and number 0: the wait that follows the last attempt of a
// task, and the one bar for all that [Timeline.Fold] left out.
type Bar struct {
	Attempt
	Segments []Segment // in the order of time, without overlaps; those of a folded bar lie over each other
	Open     bool      // it goes on
	Folded   int       // how many attempts it stands for, if it stands for several
}

// Segment is a part of an attempt's life.
type Segment struct {
	Kind       SegmentKind
	Start, End Time
}

// Length is how long the segment lasts.
func (s Segment) Length() time.Duration { return job.Time(s.End).Sub(job.Time(s.Start)) }

// SegmentKind says what was going on.
type SegmentKind string

// The kinds of segments, in their order within an attempt.
const (
	Waits  SegmentKind = "waiting" // for a slot, for capacity, for a back-off to pass
	Boots  SegmentKind = "booting" // a machine is sought, made and made ready
	Runs   SegmentKind = "running" // the user's code runs
	Closes SegmentKind = "closing" // the machine is being stopped and terminated
)

// TimelineOf draws a job's history as it is at a time by the store's clock.
func TimelineOf(h History, now job.Time) Timeline {
	t := Timeline{Start: h.SubmittedAt, End: h.SubmittedAt}
	since := h.SubmittedAt // when the task that is looked at could begin
	for _, task := range h.Tasks {
		lane := laneOf(task, h, since, Time(now))
		for _, b := range lane.Bars {
			for _, s := range b.Segments {
				t.Start, t.End = min(t.Start, s.Start), max(t.End, s.End)
			}
		}
		t.End = max(t.End, task.EndedAt)
		t.Lanes = append(t.Lanes, lane)
		since = task.EndedAt
	}
	if h.EndedAt == 0 {
		t.End = max(t.End, Time(now))
	}
	return t
}

// laneOf draws one task. since is when it could begin, 0 if it cannot yet.
func laneOf(task Task, h History, since, now Time) Lane {
	lane := Lane{Task: task.Index, Name: task.Name, Status: task.Status}
	if since == 0 {
		return lane
	}
	for _, at := range h.Attempts {
		if at.Task != task.Index {
			continue
		}
		if len(lane.Bars) == 0 && at.Number > 1 { // nobody knows what it waited for
			lane.Lost, since = at.Number-1, at.Intent
		}
		lane.Bars = append(lane.Bars, barOf(at, since, now))
		since = freedAt(at, now)
	}
	if last := len(lane.Bars) - 1; !task.Status.Terminal() && (last < 0 || ended(lane.Bars[last].Attempt)) && since < now {
		lane.Bars = append(lane.Bars, Bar{
			Attempt: Attempt{Task: task.Index}, Segments: []Segment{{Waits, since, now}}, Open: true,
		})
	}
	return lane
}

// barOf cuts one attempt into segments. since is when its task had nothing under way.
func barOf(at Attempt, since, now Time) Bar {
	bar := Bar{Attempt: at, Open: at.Phase != job.PhaseGone}
	from := since
	until := func(kind SegmentKind, end Time) {
		if end > from {
			bar.Segments = append(bar.Segments, Segment{kind, from, end})
			from = end
		}
	}
	until(Waits, at.Intent)
	from = first(at.Intent, since) // the last machine may be closing yet while this one is made
	end := first(at.Gone, now)
	stop := first(at.Ended, at.Closing, end)
	if at.Started != 0 {
		until(Boots, min(at.Started, end))
		until(Runs, min(stop, end))
	} else {
		until(Boots, min(first(at.Closing, at.Ended, end), end))
	}
	until(Closes, end)
	return bar
}

// freedAt is when an attempt had come so far that the next one could be sought.
func freedAt(at Attempt, now Time) Time { return min(first(at.Ended, at.Closing, at.Gone, now), now) }

// ended reports whether nothing is to come of an attempt any more.
func ended(at Attempt) bool { return at.Phase == job.PhaseClosing || at.Phase == job.PhaseGone }

// first is the first of several times that is one.
func first(times ...Time) Time {
	for _, t := range times {
		if t != 0 {
			return t
		}
	}
	return 0
}

// Fraction is where on the axis a time lies: 0 at its start, 1 at its end.
func (t Timeline) Fraction(at Time) float64 {
	length := float64(t.End - t.Start)
	if length <= 0 {
		return 0
	}
	return min(1, max(0, float64(at-t.Start)/length))
}

// Fold leaves at most so many bars to a lane (3 at least): the first one and the last ones stay, and one bar stands for
// those between them.
func (t Timeline) Fold(most int) Timeline {
	most = max(most, 3)
	lanes := make([]Lane, len(t.Lanes))
	for i, lane := range t.Lanes {
		if over := len(lane.Bars) - most; over > 0 {
			folded := Bar{Attempt: Attempt{Task: lane.Task}, Folded: over + 1}
			for _, b := range lane.Bars[1 : over+2] {
				folded.Segments = append(folded.Segments, b.Segments...)
				folded.Cost += b.Cost
			}
			lane.Bars = append([]Bar{lane.Bars[0], folded}, lane.Bars[over+2:]...)
		}
		lanes[i] = lane
	}
	t.Lanes = lanes
	return t
}

// Tick is a mark on the axis.
type Tick struct {
	At    Time
	Label string // time since the start
}

// steps are the distances between two ticks that read well.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// Ticks marks the axis with at most so many round times after its start, the start itself included.
func (t Timeline) Ticks(most int) []Tick {
	length := job.Time(t.End).Sub(job.Time(t.Start))
	ticks := []Tick{{t.Start, "0"}}
	for _, step := range steps {
		n := int(length / step)
		if n+1 > most {
			continue
		}
		for i := 1; i <= n; i++ {
			after := time.Duration(i) * step
			ticks = append(ticks, Tick{Time(job.Time(t.Start).Add(after)), render.Duration(after)})
		}
		break
	}
	return ticks
}

package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// start is when the jobs of these tests are submitted; at is so many seconds later.
const start = job.Time(1_700_000_000_000)

func at(seconds int) job.Time { return start.Add(time.Duration(seconds) * time.Second) }

// drawn writes a timeline as text: a line for each bar, with seconds since the start.
func drawn(t account.Timeline) string {
	since := func(x account.Time) int { return int(job.Time(x).Sub(job.Time(t.Start)).Seconds()) }
	var b strings.Builder
	fmt.Fprintf(&b, "0-%d\n", since(t.End))
	for _, lane := range t.Lanes {
		for _, bar := range lane.Bars {
			fmt.Fprintf(&b, "%d.%d", lane.Task, bar.Number)
			if bar.Folded > 0 {
				fmt.Fprintf(&b, " folded %d", bar.Folded)
			}
			for _, s := range bar.Segments {
				fmt.Fprintf(&b, " %s %d-%d", s.Kind, since(s.Start), since(s.End))
			}
			if bar.Open {
				b.WriteString(" ...")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// timeline draws a job whose tasks are in these statuses and began and ended at these times, with these attempts.
func timeline(now job.Time, tasks []job.Task, past, live []job.Attempt) account.Timeline {
	r := job.Record{Head: job.Head{ID: 7, SubmittedAt: start, Tasks: make([]job.TaskHead, len(tasks))}, Tasks: tasks, Live: live}
	return account.TimelineOf(account.HistoryOf(&r, past, nil, now), now)
}

// Ensure that each part of a job's life is drawn as what it was, and that what goes on ends now.
func TestTimeline(t *testing.T) {
	running := job.Attempt{Number: 1, Phase: job.PhaseStarted, IntentAt: at(2), CreatedAt: at(3), ReadyAt: at(9), StartedAt: at(10)}
	lost := running
	lost.Phase, lost.EndedAt, lost.ClosingAt, lost.GoneAt = job.PhaseGone, at(40), at(41), at(45)
	refused := job.Attempt{Number: 2, Phase: job.PhaseGone, IntentAt: at(50), ClosingAt: at(51), GoneAt: at(53)}
	for _, tc := range []struct {
		name       string
		now        job.Time
		tasks      []job.Task
		past, live []job.Attempt
		want       string
	}{
		{"just submitted", at(0), []job.Task{{Status: job.Pending}}, nil, nil, "0-0\n"},
		{"waits for a slot", at(5), []job.Task{{Status: job.Pending}}, nil, nil, "0-5\n0.0 waiting 0-5 ...\n"},
		{"runs", at(30), []job.Task{{Status: job.Running}}, nil, []job.Attempt{running},
			"0-30\n0.1 waiting 0-2 booting 2-10 running 10-30 ...\n"},
		{"lost its machine and waits", at(60), []job.Task{{Status: job.Recovering}}, []job.Attempt{lost}, nil,
			"0-60\n0.1 waiting 0-2 booting 2-10 running 10-40 closing 40-45\n0.0 waiting 40-60 ...\n"},
		{"was refused a second one", at(60), []job.Task{{Status: job.Recovering}}, []job.Attempt{lost, refused}, nil,
			"0-60\n0.1 waiting 0-2 booting 2-10 running 10-40 closing 40-45\n" +
				"0.2 waiting 40-50 booting 50-51 closing 51-53\n0.0 waiting 51-60 ...\n"},
		{"a new machine boots before the old one is gone", at(48), []job.Task{{Status: job.Recovering}}, nil,
			[]job.Attempt{
				{Number: 1, Phase: job.PhaseClosing, IntentAt: at(0), StartedAt: at(5), EndedAt: at(40), ClosingAt: at(40)},
				{Number: 2, Phase: job.PhaseBooting, IntentAt: at(40), CreatedAt: at(42)},
			},
			"0-48\n0.1 booting 0-5 running 5-40 closing 40-48 ...\n0.2 booting 40-48 ...\n"},
		{"a chain ends, the axis with the last machine", at(900),
			[]job.Task{{Status: job.Succeeded, EndedAt: at(40)}, {Status: job.Failed, EndedAt: at(70)}},
			[]job.Attempt{lost, {
				Task: 1, Number: 1, Phase: job.PhaseGone, IntentAt: at(42), StartedAt: at(50), EndedAt: at(70), ClosingAt: at(70),
				GoneAt: at(72),
			}}, nil,
			"0-72\n0.1 waiting 0-2 booting 2-10 running 10-40 closing 40-45\n1.1 waiting 40-42 booting 42-50 running 50-70 closing 70-72\n"},
		{"a cancel before anything", at(60), []job.Task{{Status: job.Cancelled, EndedAt: at(20)}}, nil, nil, "0-20\n"},
		{"what came before is forgotten", at(600), []job.Task{{Status: job.Succeeded, EndedAt: at(590)}},
			[]job.Attempt{{Number: 101, Phase: job.PhaseGone, IntentAt: at(500), StartedAt: at(510), EndedAt: at(590), GoneAt: at(595)}}, nil,
			"0-595\n0.101 booting 500-510 running 510-590 closing 590-595\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, drawn(timeline(tc.now, tc.tasks, tc.past, tc.live))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Ensure that whatever times a record holds, no segment ends before it begins, lies outside the axis, or over another of
// its bar, and that folding keeps every segment.
func TestTimelineIsSane(t *testing.T) {
	phases := []job.Phase{job.PhaseIntent, job.PhaseBooting, job.PhaseReady, job.PhaseStarted, job.PhaseClosing, job.PhaseGone}
	rapid.Check(t, func(rt *rapid.T) {
		when := rapid.Custom(func(rt *rapid.T) job.Time {
			if rapid.Bool().Draw(rt, "never") {
				return 0
			}
			return at(rapid.IntRange(0, 100).Draw(rt, "at"))
		})
		past := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) job.Attempt {
			return job.Attempt{
				Number: rapid.IntRange(1, 9).Draw(rt, "n"), Phase: rapid.SampledFrom(phases).Draw(rt, "phase"),
				IntentAt: when.Draw(rt, "intent"), StartedAt: when.Draw(rt, "started"), EndedAt: when.Draw(rt, "ended"),
				ClosingAt: when.Draw(rt, "closing"), GoneAt: when.Draw(rt, "gone"),
			}
		})).Draw(rt, "past")
		task := job.Task{Status: rapid.SampledFrom(job.Statuses).Draw(rt, "status"), EndedAt: when.Draw(rt, "end")}
		line := timeline(at(rapid.IntRange(0, 100).Draw(rt, "now")), []job.Task{task}, past, nil)
		segments := 0
		for _, bar := range line.Lanes[0].Bars {
			last := account.Time(0)
			for _, s := range bar.Segments {
				if s.End <= s.Start || s.Start < line.Start || s.End > line.End || s.Start < last {
					rt.Fatalf("bar %d of\n%s", bar.Number, drawn(line))
				}
				last = s.End
				segments++
			}
		}
		folded := line.Fold(rapid.IntRange(0, 5).Draw(rt, "most"))
		for _, bar := range folded.Lanes[0].Bars {
			segments -= len(bar.Segments)
		}
		if segments != 0 || len(folded.Lanes[0].Bars) > 5 {
			rt.Fatalf("folding leaves %d segments behind:\n%s", segments, drawn(folded))
		}
	})
}

// Ensure that many attempts are folded into few bars that still tell how many there were.
func TestTimelineFolds(t *testing.T) {
	var past []job.Attempt
	for i := range 100 {
		past = append(past, job.Attempt{
			Number: i + 1, Phase: job.PhaseGone, IntentAt: at(10 * i), StartedAt: at(10*i + 2), EndedAt: at(10*i + 8), GoneAt: at(10*i + 9),
		})
	}
	line := timeline(at(1000), []job.Task{{Status: job.Succeeded, EndedAt: at(998)}}, past, nil).Fold(6)
	var got []string
	for _, bar := range line.Lanes[0].Bars {
		got = append(got, fmt.Sprint(bar.Number, " ", bar.Folded))
	}
	want := []string{"1 0", "0 95", "97 0", "98 0", "99 0", "100 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Ensure that the marks of the axis are round times, few enough, and lie where they say.
func TestTimelineTicks(t *testing.T) {
	for _, tc := range []struct {
		length, most int
		want         string
	}{
		{0, 5, "0"}, {4, 5, "0 1s 2s 3s 4s"}, {59, 5, "0 15s 30s 45s"}, {600, 3, "0 5m 10m"}, {86400 * 3, 4, "0 1d 2d 3d"}, {59, 1, "0"},
	} {
		line := account.Timeline{Start: account.Time(start), End: account.Time(at(tc.length))}
		var got []string
		for _, tick := range line.Ticks(tc.most) {
			got = append(got, tick.Label)
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%d s in %d marks: %s, want %s", tc.length, tc.most, text, tc.want)
		}
	}
	line := account.Timeline{Start: account.Time(start), End: account.Time(at(100))}
	if f := line.Fraction(account.Time(at(25))); f != 0.25 {
		t.Errorf("25 of 100 s lie at %g", f)
	}
}

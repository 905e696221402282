package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with testdata/golden/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test ./enqueue -update writes it anew): -want +got\n%s", path, diff)
	}
}

// submitted is when the jobs of these tests were; at is so much later.
const submitted = job.Time(1_764_500_000_000)

func at(after time.Duration) job.Time { return submitted.Add(after) }

// lives is a chain of two tasks that loses two machines and is refused another.
func lives() (account.History, job.Time) {
	took := job.Cause{Code: job.CodePreempted, Text: "the provider took the machine"}
	offer := func(zone string) job.Offer {
		return job.Offer{Provider: "sim", Region: "north", Zone: zone, Type: "8cpu", Spot: true, Price: 0.48}
	}
	const m = time.Minute
	past := []job.Attempt{
		{Number: 1, Phase: job.PhaseGone, Offer: offer("north-a"), IntentAt: at(m), CreatedAt: at(m), ReadyAt: at(3 * m), StartedAt: at(3 * m), EndedAt: at(20 * m), ClosingAt: at(20 * m), GoneAt: at(21 * m), Why: took},
		{Number: 2, Phase: job.PhaseGone, Offer: offer("north-b"), IntentAt: at(20 * m), ClosingAt: at(21 * m), GoneAt: at(21 * m), Why: job.Cause{Code: job.CodeCapacity, Text: "no such machine is free"}},
		{Number: 3, Phase: job.PhaseGone, Offer: offer("north-c"), IntentAt: at(30 * m), CreatedAt: at(30 * m), StartedAt: at(33 * m), EndedAt: at(58 * m), ClosingAt: at(58 * m), GoneAt: at(59 * m), Exit: &job.Exit{Stage: "run"}, Why: job.Cause{Code: job.CodeSucceeded}},
		{Task: 1, Number: 1, Phase: job.PhaseGone, Offer: offer("north-c"), IntentAt: at(58 * m), CreatedAt: at(59 * m), StartedAt: at(61 * m), EndedAt: at(70 * m), ClosingAt: at(71 * m), GoneAt: at(72 * m), Why: took},
	}
	live := []job.Attempt{{Task: 1, Number: 2, Phase: job.PhaseStarted, Offer: offer("north-a"), IntentAt: at(75 * m), CreatedAt: at(76 * m), ReadyAt: at(77 * m), StartedAt: at(78 * m)}}
	r := job.Record{
		Head: job.Head{ID: 7, Name: "train \u202emodel", User: "ana", SubmittedAt: submitted, Tasks: []job.TaskHead{{Name: "prepare"}, {Name: "模型 fit"}}},
		Tasks: []job.Task{
			{Status: job.Succeeded, StartedAt: at(3 * m), EndedAt: at(58 * m), RunMS: (42 * m).Milliseconds(), Recoveries: 1, Attempts: 3},
			{Status: job.Running, StartedAt: at(61 * m), LastRecoveredAt: at(78 * m), RunMS: (9 * m).Milliseconds(), Recoveries: 1, Attempts: 2},
		},
		Live: live,
	}
	events := []job.Event{
		{At: submitted, Kind: "status", To: string(job.Pending), Cause: job.Cause{Text: "submitted"}},
		{At: at(3 * m), Kind: "status", Attempt: 1, From: string(job.Starting), To: string(job.Running)},
		{At: at(20 * m), Kind: "status", Attempt: 1, From: string(job.Running), To: string(job.Recovering), Cause: took},
	}
	now := at(2 * time.Hour)
	return account.HistoryOf(&r, past, events, now), now
}

// shown is what show prints on a screen.
func shown(t *testing.T, h account.History, now job.Time, form string, s screen, colours bool) string {
	t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, errs: &out, screen: s, onOut: palette{on: colours}}
	a.flags.output = form
	if err := a.showHistory(h, now); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Ensure that a job is shown as drawn in the golden files, on narrow, usual and wide screens, with and without
// characters beyond ASCII, and that no line of a table is longer than the screen.
func TestShow(t *testing.T) {
	time.Local = time.UTC
	h, now := lives()
	for _, tc := range []struct {
		name, form string
		screen     screen
	}{
		{"show-40.txt", formTable, screen{width: 40}},
		{"show-60.txt", formTable, screen{width: 60}},
		{"show-100.txt", formTable, screen{width: 100}},
		{"show-160.txt", formTable, screen{width: 160}},
		{"show-ascii.txt", formTable, screen{width: 100, ascii: true}},
		{"show-wide.txt", formWide, screen{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := shown(t, h, now, tc.form, tc.screen, false)
			golden(t, tc.name, got)
			for line := range strings.Lines(got) {
				if w := render.Width(strings.TrimSuffix(line, "\n")); tc.screen.width > 0 && w > tc.screen.width {
					t.Errorf("a line of %d cells: %s", w, line)
				}
			}
		})
	}
	t.Run("colours", func(t *testing.T) { golden(t, "show-colour.txt", shown(t, h, now, formTable, screen{width: 80}, true)) })
}

// Ensure that a job with a hundred attempts is shown with a few of them, and with all when everything is asked for.
func TestShowFolds(t *testing.T) {
	time.Local = time.UTC
	r := job.Record{
		Head:  job.Head{ID: 8, Name: "unlucky", SubmittedAt: submitted, Tasks: []job.TaskHead{{}}},
		Tasks: []job.Task{{Status: job.Recovering, Attempts: 120, Recoveries: 119}},
		Wait:  job.Waiting{For: job.Cause{Code: job.CodeBackoff, Text: "every offer failed in round 1"}, Since: at(time.Hour)},
	}
	var past []job.Attempt
	for i := 20; i < 120; i++ {
		begin := at(time.Duration(i) * time.Minute)
		past = append(past, job.Attempt{
			Number: i + 1, Phase: job.PhaseGone, Offer: job.Offer{Provider: "sim", Region: "north", Price: 1.2}, IntentAt: begin, CreatedAt: begin,
			StartedAt: begin.Add(10 * time.Second), EndedAt: begin.Add(40 * time.Second), ClosingAt: begin.Add(40 * time.Second), GoneAt: begin.Add(45 * time.Second),
			Why: job.Cause{Code: job.CodePreempted, Text: "the provider took the machine"},
		})
	}
	now := at(125 * time.Minute)
	h := account.HistoryOf(&r, past, nil, now)
	golden(t, "show-folded.txt", shown(t, h, now, formTable, screen{width: 100}, false))
	if n := strings.Count(shown(t, h, now, formWide, screen{}, false), "the provider took the machine"); n != 100 {
		t.Errorf("-o wide shows %d attempts of 100", n)
	}
}

package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// sample is the output of a setup and a run, with its marks.
var sample = struct {
	text  string
	marks []job.Mark
}{"fetch\nnote: no end of line" + "one\ntwo\nthree\n", []job.Mark{
	{Offset: 0, Kind: job.MarkSkew, Value: 90_000}, {Offset: 0, Kind: job.MarkSetup, Value: 1000},
	{Offset: 6, Value: 2000}, {Offset: 26, Value: 3000}, {Offset: 26, Kind: job.MarkRun, Value: 3000},
	{Offset: 34, Value: 4000}, {Offset: 40, Value: 5000},
}}

// Ensure that however the output comes in pieces, a plain printer writes exactly its bytes, and one with times and stages
// writes the same text as if it had come at once.
func TestPrinterDoesNotDependOnPieces(t *testing.T) {
	stamped := strings.Join([]string{
		"── setup ──", "1970-01-01T00:00:02Z fetch", "1970-01-01T00:00:03Z note: no end of line",
		"── run ──", "1970-01-01T00:00:04Z one", "1970-01-01T00:00:04Z two", "1970-01-01T00:00:05Z three", "",
	}, "\n")
	rapid.Check(t, func(t *rapid.T) {
		var plain, full strings.Builder
		var skews []time.Duration
		names := map[job.MarkKind]string{job.MarkSetup: "── setup ──\n", job.MarkRun: "── run ──\n"}
		exact := &Printer{W: &plain}
		rich := &Printer{
			W: &full, Stamp: true, Skew: func(d time.Duration) { skews = append(skews, d) },
			Stage: func(k job.MarkKind) error { full.WriteString(names[k]); return nil },
		}
		for at := 0; at < len(sample.text); {
			to := rapid.IntRange(at+1, len(sample.text)).Draw(t, "to")
			marks := sample.marks
			if rapid.Bool().Draw(t, "only its own marks") {
				marks = job.MarksOf(marks, int64(at), int64(to))
			}
			for _, p := range []*Printer{exact, rich} {
				if err := p.Bytes(int64(at), []byte(sample.text[at:to]), marks); err != nil {
					t.Fatal(err)
				}
			}
			at = to
		}
		if diff := cmp.Diff(sample.text, plain.String()); diff != "" {
			t.Errorf("plain (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(stamped, full.String()); diff != "" {
			t.Errorf("with times and stages (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{90 * time.Second}, skews); diff != "" {
			t.Errorf("skews (-want +got):\n%s", diff)
		}
	})
}

// Ensure that a run without a setup, and one whose setup wrote nothing, are not told.
func TestPrinterTellsNoLoneStage(t *testing.T) {
	for name, marks := range map[string][]job.Mark{
		"no setup":     {{Kind: job.MarkRun, Value: 1}},
		"silent setup": {{Kind: job.MarkSetup, Value: 1}, {Kind: job.MarkRun, Value: 2}},
	} {
		p := &Printer{W: &strings.Builder{}, Stage: func(job.MarkKind) error {
			t.Errorf("%s: told", name)
			return nil
		}}
		if err := p.Bytes(0, []byte("hello\n"), marks); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a note stands on a line of its own, and that lines of which nobody knows the time say so.
func TestPrinterNotes(t *testing.T) {
	var out strings.Builder
	p := &Printer{W: &out, Stamp: true}
	for _, err := range []error{
		p.Note("[first]\n"), p.Bytes(0, []byte("a\nb"), nil), p.Note("[second]\n"),
		p.Bytes(9, []byte("c\n"), []job.Mark{{Offset: 11, Value: 1000}}), p.Bytes(11, []byte("d\n"), nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "[first]\n-                    a\n-                    b\n[second]\n1970-01-01T00:00:01Z c\n1970-01-01T00:00:01Z d\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

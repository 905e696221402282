package agent

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each answer has the times of its own bytes and the stages that begin in it, however the log is cut into answers.
func TestMarks(t *testing.T) {
	t.Parallel()
	d := dir(t.TempDir())
	at := time.UnixMilli
	m := newMarker(d)
	m.stage(stageSetup, 0, at(1000))
	m.grew(10, at(2000))
	if next := m.grew(15, at(2500)); next != at(3000) {
		t.Errorf("the next mark is due at %v", next)
	}
	m.grew(20, at(3000))
	m.stage(stageRun, 25, at(3100))
	m.last(40, at(4000))

	tests := []struct {
		name     string
		from, to int64
		limit    int
		want     []Mark
		end      int64
	}{
		{"all", 0, 40, 99, []Mark{{0, 1000, "setup"}, {10, 2000, ""}, {20, 3000, ""}, {25, 3100, ""}, {25, 3100, "run"}, {40, 4000, ""}}, 40},
		{"ends between marks", 0, 5, 99, []Mark{{0, 1000, "setup"}, {5, 2000, ""}}, 5},
		{"begins at a mark", 10, 20, 99, []Mark{{20, 3000, ""}}, 20},
		{"ends where a stage begins", 20, 25, 99, []Mark{{25, 3100, ""}}, 25},
		{"begins with a stage", 25, 30, 99, []Mark{{25, 3100, "run"}, {30, 4000, ""}}, 30},
		{"beyond the last mark", 40, 50, 99, []Mark{{50, 9000, ""}}, 50},
		{"nothing", 25, 25, 99, nil, 25},
		{"more than an answer takes", 0, 40, 2, []Mark{{0, 1000, "setup"}, {10, 2000, ""}}, 10},
	}
	for _, tt := range tests {
		got, end := d.marks(tt.from, tt.to, tt.limit, at(9000))
		if diff := cmp.Diff(tt.want, got); diff != "" || end != tt.end {
			t.Errorf("%s: end %d, want %d, marks (-want +got):\n%s", tt.name, end, tt.end, diff)
		}
	}
}

// Whatever is in the file of marks, an answer has no more than it may, in order and within its bytes, and reading goes on.
func TestMarksAreNotTrusted(t *testing.T) {
	t.Parallel()
	d := dir(t.TempDir())
	encoded := func(offsets ...int64) []byte {
		var all []byte
		for _, o := range offsets {
			all = append(all, Mark{Offset: o, At: 1000, Stage: stageRun}.encode()...)
		}
		return all
	}
	for name, text := range map[string][]byte{
		"zeros": make([]byte, 100*markSize), "downwards": encoded(50, 30, 10, 5), "negative": encoded(-1, 20, -9, 30),
		"one place": encoded(10, 10, 10, 10, 10, 10, 20), "torn": encoded(20, 30)[:markSize+5],
	} {
		if err := os.WriteFile(d.path(fileMarks), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "zeros" { // as large as a file can be without taking room
			if err := os.Truncate(d.path(fileMarks), 1<<40); err != nil {
				t.Fatal(err)
			}
		}
		for from := int64(0); from < 40; {
			marks, end := d.marks(from, 40, 2, time.UnixMilli(9000))
			if end <= from || end > 40 || len(marks) > mostRead+1 {
				t.Fatalf("%s: from %d to %d, %d marks", name, from, end, len(marks))
			}
			for i, m := range marks {
				if m.Offset < from || m.Offset > end || i > 0 && m.Offset < marks[i-1].Offset {
					t.Errorf("%s: %d..%d has the marks %v", name, from, end, marks)
				}
			}
			from = end
		}
	}
}

// The marks of a real run say where setup ended and run began, and the times are those of the node.
func TestMarksOfARun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := time.Now().UnixMilli()
	st := n.finish(StartRequest{Setup: "echo one", Run: "echo two"})
	var stages []Mark
	for _, m := range st.LogMarks {
		if m.At < before || m.At > st.Clock {
			t.Errorf("a mark of %d, not within %d..%d", m.At, before, st.Clock)
		}
		if m.Stage != "" {
			stages = append(stages, Mark{Offset: m.Offset, Stage: m.Stage})
		}
	}
	want := []Mark{{Offset: 0, Stage: "setup"}, {Offset: 4, Stage: "run"}}
	if diff := cmp.Diff(want, stages); diff != "" || string(st.Log) != "one\ntwo\n" {
		t.Errorf("log %q, stages (-want +got):\n%s", st.Log, diff)
	}
}

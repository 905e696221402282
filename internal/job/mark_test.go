package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Marks come back as they were encoded, also a clock that is behind, and garbage is no panic.
func TestMarksSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Mark {
			return Mark{
				Offset: rapid.Int64Range(0, 1<<53).Draw(t, "offset"), Kind: MarkKind(rapid.IntRange(0, 3).Draw(t, "kind")),
				Value: rapid.Int64Range(-1<<50, 1<<50).Draw(t, "value"),
			}
		})).Draw(t, "marks")
		rest := rapid.SliceOfN(rapid.Byte(), 0, MarkSize-1).Draw(t, "rest")
		got := ParseMarks(append(AppendMarks(nil, marks...), rest...))
		if len(marks) == 0 {
			marks = nil
		}
		if diff := cmp.Diff(marks, got); diff != "" {
			t.Errorf("marks (-want +got):\n%s", diff)
		}
	})
}

// The marks of a piece are those that say something about its bytes.
func TestMarksOf(t *testing.T) {
	all := []Mark{{0, MarkSkew, 5}, {0, MarkSetup, 1}, {10, MarkTime, 2}, {20, MarkTime, 3}, {20, MarkRun, 3}, {30, MarkTime, 4}}
	for _, tc := range []struct {
		from, to int64
		want     []Mark
	}{
		{0, 10, []Mark{{0, MarkSkew, 5}, {0, MarkSetup, 1}, {10, MarkTime, 2}}},
		{0, 5, []Mark{{0, MarkSkew, 5}, {0, MarkSetup, 1}, {10, MarkTime, 2}}},
		{10, 20, []Mark{{20, MarkTime, 3}}},
		{15, 25, []Mark{{20, MarkTime, 3}, {20, MarkRun, 3}, {30, MarkTime, 4}}},
		{30, 40, nil},
	} {
		if diff := cmp.Diff(tc.want, MarksOf(all, tc.from, tc.to)); diff != "" {
			t.Errorf("%d..%d (-want +got):\n%s", tc.from, tc.to, diff)
		}
	}
}

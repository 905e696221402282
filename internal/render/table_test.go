package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/render"
)

func written(tb interface{ Fatal(...any) }, t render.Table) string {
	var b strings.Builder
	if err := t.Write(&b); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// Ensure that a table lines up, cuts what is too long by what is seen of it, and leaves nothing at the ends of lines.
func TestTable(t *testing.T) {
	got := written(t, render.Table{
		Columns: []render.Column{{Title: "ID", Right: true}, {Title: "NAME", Max: 6}, {Title: "NOTE"}},
		Rows: [][]string{
			{"7", "\x1b[31mtrain\x1b[0m", "x"}, {"12", "evaluation", ""}, {"9", "你好", "y"}, {"8", "e\u0301te\u0301", "z"}, {"6", "שלום", "w"},
		},
	})
	want := "ID  NAME    NOTE\n 7  \x1b[31mtrain\x1b[0m   x\n12  evalu…\n 9  你好    y\n 8  e\u0301te\u0301     z\n 6  שלום    w\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Ensure that a narrow table shrinks the widest columns first, then leaves out the least important ones, and that what
// is drawn is drawn for the width there is.
func TestTableNarrow(t *testing.T) {
	table := render.Table{
		Columns: []render.Column{
			{Title: "ID", Right: true},
			{Title: "NAME", Min: 6},
			{Title: "PICTURE", Min: 4, Max: 12, Drop: 1, Draw: func(row, width int) string {
				if row < 0 {
					return strings.Repeat("-", width)
				}
				return strings.Repeat("=", width)
			}},
			{Title: "NOTE", Min: 4, Drop: 2},
		},
		Rows: [][]string{{"7", "evaluation", "", "long note"}},
	}
	for _, tc := range []struct {
		width int
		want  string
	}{
		{0, "ID  NAME        ------------  NOTE\n 7  evaluation  ============  long note\n"},
		{34, "ID  NAME      ---------  NOTE\n 7  evaluat…  =========  long note\n"},
		{22, "ID  NAME    ----  NOTE\n 7  evalu…  ====  lon…\n"},
		{21, "ID  NAME     --------\n 7  evalua…  ========\n"},
		{12, "ID  NAME\n 7  evaluat…\n"},
		{7, "ID  NA…\n 7  ev…\n"},
	} {
		table.Width = tc.width
		if diff := cmp.Diff(tc.want, written(t, table)); diff != "" {
			t.Errorf("at %d: -want +got\n%s", tc.width, diff)
		}
	}
	table.Width, table.ASCII = 12, true
	if got := written(t, table); !strings.HasSuffix(got, "evaluat~\n") {
		t.Errorf("without Unicode:\n%s", got)
	}
}

// Ensure that no table is wider than it may be, and that each row is a line, whatever is in the cells.
func TestTableFits(t *testing.T) {
	cell := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{0,40}`), rapid.StringMatching(`[\x{4e00}-\x{4e40}a]{0,20}`))
	rapid.Check(t, func(rt *rapid.T) {
		table := render.Table{Width: rapid.IntRange(1, 120).Draw(rt, "width")}
		for range rapid.IntRange(1, 6).Draw(rt, "columns") {
			table.Columns = append(table.Columns, render.Column{
				Title: rapid.StringMatching(`[A-Z]{1,9}`).Draw(rt, "title"), Right: rapid.Bool().Draw(rt, "right"),
				Min: rapid.IntRange(0, 12).Draw(rt, "min"), Max: rapid.IntRange(0, 30).Draw(rt, "max"), Drop: rapid.IntRange(0, 3).Draw(rt, "drop"),
			})
		}
		for range rapid.IntRange(0, 4).Draw(rt, "rows") {
			row := make([]string, len(table.Columns))
			for i := range row {
				row[i] = render.Text(cell.Draw(rt, "cell"))
			}
			table.Rows = append(table.Rows, row)
		}
		lines := strings.Split(strings.TrimSuffix(written(rt, table), "\n"), "\n")
		if len(lines) != len(table.Rows)+1 {
			rt.Fatalf("%d lines for %d rows: %q", len(lines), len(table.Rows), lines)
		}
		for _, line := range lines {
			if render.Width(line) > table.Width {
				rt.Fatalf("%q is wider than %d", line, table.Width)
			}
		}
	})
}

// Ensure that a line breaks between parts where it would be too long.
func TestWrap(t *testing.T) {
	parts := []string{"1 PENDING", "\x1b[36m2 RUNNING\x1b[0m", "3 FAILED"}
	for _, tc := range []struct {
		width int
		want  string
	}{
		{0, "1 PENDING  \x1b[36m2 RUNNING\x1b[0m  3 FAILED"},
		{20, "1 PENDING  \x1b[36m2 RUNNING\x1b[0m\n3 FAILED"},
		{5, "1 PENDING\n\x1b[36m2 RUNNING\x1b[0m\n3 FAILED"},
	} {
		if got := render.Wrap(parts, "  ", tc.width); got != tc.want {
			t.Errorf("at %d: %q", tc.width, got)
		}
	}
}

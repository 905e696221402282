package render

import (
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column is a column of a [Table].
type Column struct {
	Title string
	Right bool // align to the right, for numbers
	Max   int  // longest cell in characters; what is longer is cut. 0 means as long as it comes
	Min   int  // in a narrow table cells may be cut down to this; 0 means that they must stay whole
	Drop  int  // in a table that is too narrow even so, the column with the highest number is left out first; 0 means never

	// Draw makes the cells when the width of the column is known, at least Min and at most Max. Row -1 is its title.
	Draw func(row, width int) string
}

// Table is rows below titles, without lines around them. Cells must be harmless: see [Text]. They may hold colours.
type Table struct {
	Columns []Column
	Rows    [][]string
	Width   int  // no line is longer; 0 means as wide as it comes
	ASCII   bool // what marks a cell as cut must be, too
}

// gap is between two columns.
const gap = 2

// Write writes the table. No line of it is ever wrapped.
func (t Table) Write(w io.Writer) error {
	widths := layout(t.Columns, t.natural(), t.Width)
	mark := cutMark(t.ASCII)
	out := table.NewWriter()
	out.SetStyle(plainStyle())
	out.SuppressTrailingSpaces()
	var configs []table.ColumnConfig
	for i, c := range t.Columns {
		if widths[i] == 0 {
			continue
		}
		config := table.ColumnConfig{Number: len(configs) + 1}
		if c.Right {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		configs = append(configs, config)
	}
	out.SetColumnConfigs(configs)
	out.AppendHeader(t.row(-1, widths, mark))
	for i := range t.Rows {
		out.AppendRow(t.row(i, widths, mark))
	}
	_, err := io.WriteString(w, out.Render()+"\n")
	return err
}

// row is a line of the table; -1 is that of the titles.
func (t Table) row(row int, widths []int, mark string) table.Row {
	var cells table.Row
	for i, c := range t.Columns {
		switch {
		case widths[i] == 0:
			continue
		case c.Draw != nil:
			cells = append(cells, c.Draw(row, widths[i]))
		case row < 0:
			cells = append(cells, cut(c.Title, widths[i], mark))
		default:
			cells = append(cells, cut(t.Rows[row][i], widths[i], mark))
		}
	}
	return cells
}

// natural is how wide each column would be if there were room enough.
func (t Table) natural() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		if c.Draw != nil {
			widths[i] = max(c.Min, c.Max)
			continue
		}
		for _, row := range t.Rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		if c.Max > 0 {
			widths[i] = min(widths[i], c.Max)
		}
		widths[i] = max(widths[i], Width(c.Title))
	}
	return widths
}

// layout shares a width out among columns that would rather have their natural ones: it shrinks those that may be cut,
// the widest first, then leaves columns out. It returns 0 for those.
func layout(columns []Column, natural []int, width int) []int {
	widths := slices.Clone(natural)
	if width <= 0 {
		return widths
	}
	for {
		over := total(widths) - width
		for ; over > 0; over-- {
			widest := -1
			for i, c := range columns {
				shrinks := c.Min > 0 && widths[i] > c.Min
				if shrinks && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
		if over <= 0 {
			return widths
		}
		leave := -1
		for i, c := range columns {
			if i > 0 && widths[i] > 0 && c.Drop > 0 && (leave < 0 || c.Drop > columns[leave].Drop) {
				leave = i
			}
		}
		if leave < 0 {
			return clip(widths, width)
		}
		for i := range widths { // those that were shrunk may have room now
			if widths[i] > 0 {
				widths[i] = natural[i]
			}
		}
		natural = slices.Clone(natural)
		natural[leave], widths[leave] = 0, 0
	}
}

// clip takes from the right what does not fit, when nothing else helps.
func clip(widths []int, width int) []int {
	for i := len(widths) - 1; i >= 0; i-- {
		if over := total(widths) - width; over > 0 {
			widths[i] = max(0, widths[i]-over)
		}
	}
	widths[0] = max(1, widths[0])
	return widths
}

// total is how long the lines of a table are.
func total(widths []int) int {
	n := -gap
	for _, w := range widths {
		if w > 0 {
			n += w + gap
		}
	}
	return n
}

// Width is how many cells of a terminal a text takes: two for a wide character, none for one that combines with another,
// none for colours.
func Width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// Cut shortens a text to a width and shows that it did. It keeps colours.
func Cut(s string, width int, ascii bool) string { return cut(s, width, cutMark(ascii)) }

// Wrap joins parts into lines that are no longer than a width unless a part is; 0 makes one line.
func Wrap(parts []string, separator string, width int) string {
	var b strings.Builder
	length := 0
	for i, part := range parts {
		n := Width(part)
		switch {
		case i == 0:
		case width > 0 && length+Width(separator)+n > width:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteString(separator)
			length += Width(separator)
		}
		b.WriteString(part)
		length += n
	}
	return b.String()
}

// cutMark stands at the end of what was cut.
func cutMark(ascii bool) string {
	if ascii {
		return "~"
	}
	return "…"
}

func cut(cell string, width int, mark string) string {
	if Width(cell) <= width {
		return cell // Snip would pad it
	}
	return text.Snip(cell, width, mark)
}

// plainStyle is columns two spaces apart and nothing else.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", strings.Repeat(" ", gap)
	s.Options = table.OptionsNoBordersAndSeparators
	s.Format.Header = text.FormatDefault
	return s
}

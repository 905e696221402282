package render

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column is a column of a [Table].
type Column struct {
	Title string
	Right bool // align to the right, for numbers
	Max   int  // longest cell in characters; what is longer is cut. 0 means as long as it comes
}

// Table writes rows below titles, without lines around them. Cells must be harmless: see [Text]. They may hold colours.
func Table(w io.Writer, columns []Column, rows [][]string) error {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.SuppressTrailingSpaces()
	header := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		header[i] = c.Title
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: c.Max, WidthMaxEnforcer: cut}
		if c.Right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	_, err := io.WriteString(w, t.Render()+"\n")
	return err
}

func cut(cell string, width int) string {
	if text.StringWidthWithoutEscSequences(cell) <= width {
		return cell // Snip would pad it
	}
	return text.Snip(cell, width, "…")
}

// plainStyle is columns two spaces apart and nothing else.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Options = table.OptionsNoBordersAndSeparators
	s.Format.Header = text.FormatDefault
	return s
}

package main

import (
	"strings"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// glyphs draw a timeline.
type glyphs struct {
	kinds map[account.SegmentKind]string
	open  string // at the end of what goes on
	tick  string
}

var (
	unicodeGlyphs = glyphs{
		kinds: map[account.SegmentKind]string{account.Waits: "·", account.Boots: "▒", account.Runs: "█", account.Closes: "▁"},
		open:  "▸", tick: "╷",
	}
	asciiGlyphs = glyphs{
		kinds: map[account.SegmentKind]string{account.Waits: ".", account.Boots: "-", account.Runs: "=", account.Closes: "_"},
		open:  ">", tick: "|",
	}
)

// picture draws the bars of a timeline.
type picture struct {
	line   account.Timeline
	glyphs glyphs
	colour palette
}

func (a *app) picture(t account.Timeline) picture {
	p := picture{line: t, glyphs: unicodeGlyphs, colour: a.onOut}
	if a.screen.ascii {
		p.glyphs = asciiGlyphs
	}
	return p
}

// rank says what a cell shows in which several things happened: what people look for first.
var rank = map[account.SegmentKind]int{account.Waits: 1, account.Closes: 2, account.Boots: 3, account.Runs: 4}

// cells is what each cell of a bar shows, "" for nothing. A cell shows what most of its time was spent on; but what is
// shorter than a cell is not lost, unless something of a higher rank is there.
func (p picture) cells(b account.Bar, width int) []account.SegmentKind {
	cells, spent := make([]account.SegmentKind, width), make([]float64, width)
	for _, s := range b.Segments {
		from, to := p.line.Fraction(s.Start)*float64(width), p.line.Fraction(s.End)*float64(width)
		for i := int(from); i < width && float64(i) < to; i++ {
			part := min(to, float64(i+1)) - max(from, float64(i))
			if part > spent[i] {
				cells[i], spent[i] = s.Kind, part
			}
		}
	}
	for _, s := range b.Segments { // whose middle no cell shows
		middle := job.Time(s.Start).Add(s.Length() / 2)
		i := min(width-1, int(p.line.Fraction(account.Time(middle))*float64(width)))
		if rank[s.Kind] > rank[cells[i]] && !near(cells, i, s.Kind) {
			cells[i] = s.Kind
		}
	}
	return cells
}

// near reports whether a cell or one beside it shows a kind.
func near(cells []account.SegmentKind, i int, kind account.SegmentKind) bool {
	for j := max(0, i-1); j <= min(len(cells)-1, i+1); j++ {
		if cells[j] == kind {
			return true
		}
	}
	return false
}

// bar draws one attempt in so many cells.
func (p picture) bar(b account.Bar, width int) string {
	cells := p.cells(b, width)
	var out strings.Builder
	for from := 0; from < width; {
		to := from
		for to < width && cells[to] == cells[from] {
			to++
		}
		kind := cells[from]
		if kind == "" {
			out.WriteString(strings.Repeat(" ", to-from))
		} else {
			text := strings.Repeat(p.glyphs.kinds[kind], to-from)
			if b.Open && to == width {
				text = strings.Repeat(p.glyphs.kinds[kind], to-from-1) + p.glyphs.open
			}
			out.WriteString(p.paint(kind, text))
		}
		from = to
	}
	return out.String()
}

func (p picture) paint(kind account.SegmentKind, text string) string {
	switch kind {
	case account.Runs:
		return p.colour.cyan(text)
	case account.Boots:
		return p.colour.yellow(text)
	default:
		return p.colour.dim(text)
	}
}

// axis draws the times above the bars.
func (p picture) axis(width int) string {
	out := []rune(strings.Repeat(" ", width))
	free := 0
	for _, tick := range p.line.Ticks(max(2, width/8)) {
		at := int(p.line.Fraction(tick.At) * float64(width))
		label := []rune(p.glyphs.tick + tick.Label)
		if at < free || at+len(label) > width {
			continue
		}
		copy(out[at:], label)
		free = at + len(label) + 1
	}
	return string(out)
}

// legend says what the glyphs of a picture stand for: those that are in it.
func (p picture) legend(width int) string {
	var parts []string
	for _, kind := range []account.SegmentKind{account.Waits, account.Boots, account.Runs, account.Closes} {
		if p.shows(kind) {
			parts = append(parts, p.paint(kind, strings.Repeat(p.glyphs.kinds[kind], 2))+" "+p.colour.dim(string(kind)))
		}
	}
	return render.Wrap(parts, "  ", width)
}

func (p picture) shows(kind account.SegmentKind) bool {
	for _, lane := range p.line.Lanes {
		for _, bar := range lane.Bars {
			for _, s := range bar.Segments {
				if s.Kind == kind {
					return true
				}
			}
		}
	}
	return false
}

package web

import (
	"fmt"
	"strconv"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

const (
	// pictureWidth is the width of a bar in percent, so that the page can be of any width and letters keep their form.
	pictureWidth = 100
	// thinnest is how wide a part is drawn at least, so that a short one is still seen.
	thinnest = 0.4
	// mostBars bounds the attempts drawn for one task.
	mostBars  = 24
	mostTicks = 6
	// edge is how near to an end of the axis, in percent, a label is turned inwards.
	edge = 4
)

// picture is the timeline of a job as it is drawn: one bar for each attempt, below each other, on one axis of time.
type picture struct {
	Bars  []bar
	Ticks []tick
}

// bar is one attempt, or what stands between two.
type bar struct {
	Label string // "try 1", "tries 2 to 9"
	Where string
	Text  string // the bar in words, for those who do not see it
	Fate  string // why it ended, or that it goes on
	Lost  bool   // the machine was lost
	Parts []part
}

// part is a rectangle.
type part struct {
	Kind  account.SegmentKind
	X, W  string // in percent
	Y, H  int    // in pixels: the kinds differ in height, for those who do not tell colours apart
	Title string
}

// heights are where a kind of segment lies within the 18 pixels of a bar.
var heights = map[account.SegmentKind]struct{ y, h int }{
	account.Waits: {8, 2}, account.Boots: {5, 8}, account.Runs: {0, 18}, account.Closes: {6, 6},
}

// tick is a mark below the bars.
type tick struct {
	X           string // in percent
	Label       string
	First, Last bool // near an edge, beyond which nothing can be read
}

// pictureOf draws a timeline.
func pictureOf(t account.Timeline, chain bool) picture {
	var p picture
	for _, lane := range t.Fold(mostBars).Lanes {
		for _, b := range lane.Bars {
			p.Bars = append(p.Bars, barOf(t, lane, b, chain))
		}
	}
	for _, m := range t.Ticks(mostTicks) {
		x := t.Fraction(m.At) * pictureWidth
		p.Ticks = append(p.Ticks, tick{X: units(x), Label: m.Label, First: x < edge, Last: x > pictureWidth-edge})
	}
	return p
}

func barOf(t account.Timeline, lane account.Lane, b account.Bar, chain bool) bar {
	out := bar{Where: account.Place(b.Offer), Fate: account.EndOf(b.Attempt)}
	switch {
	case b.Folded > 0:
		out.Label, out.Where = fmt.Sprintf("%d tries", b.Folded), ""
	case b.Number == 0:
		out.Label, out.Where = "waits", ""
	default:
		out.Label = "try " + tryName(lane.Task, b.Number, chain)
	}
	if chain && b.Number == 0 {
		out.Label = fmt.Sprintf("task %d %s", lane.Task, out.Label)
	}
	if b.Why != nil && b.Exit == nil && b.Started != 0 {
		out.Lost = b.Why.Code != job.CodeCancelled
	}
	if b.Open && out.Fate == "" {
		out.Fate = "goes on"
	}
	out.Text = out.Label
	for _, s := range b.Segments {
		words := string(s.Kind) + " " + render.Duration(s.Length())
		from := t.Fraction(s.Start) * pictureWidth
		width := max(thinnest, t.Fraction(s.End)*pictureWidth-from)
		out.Parts = append(out.Parts, part{
			Kind: s.Kind, X: units(min(from, pictureWidth-width)), W: units(width), Y: heights[s.Kind].y, H: heights[s.Kind].h, Title: words,
		})
		if b.Folded == 0 {
			out.Text += ", " + words
		}
	}
	return out
}

func units(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

const (
	frameWidth = 96 // columns of a line that are shown
	frameLead  = 60 // of these before the fault, if the line is longer

	maxLine = 4096 // bytes; a longer line is no line that somebody wrote, and is not shown
)

// frame shows the line of a problem with a mark below the place, as compilers do. It is fit for a terminal, and shows
// no value of envs and secrets (see mask.go).
func (r *report) frame(p Problem) string {
	if p.Line < 1 || p.Line > len(r.lines) || len(r.lines[p.Line-1]) > maxLine {
		return ""
	}
	line, cut := r.visibleLine(p.Line)
	runes := []rune(line)
	start := min(max(p.Column-1, 0), len(runes))
	end := start
	for end < len(runes) && isWord(runes[end]) {
		end++
	}
	from := 0
	if len(runes) > frameWidth && start > frameLead {
		from = start - frameLead
	}
	to := min(len(runes), from+frameWidth)
	before, mark := shown(runes[from:start]), strings.Repeat("~", max(runewidth.StringWidth(shown(runes[start:max(min(end, to), start)]))-1, 0))
	text := shown(runes[from:to])
	if from > 0 {
		text, before = "..."+text, "..."+before
	}
	if to < len(runes) || cut {
		text += "..."
	}
	number := strconv.Itoa(p.Line)
	return fmt.Sprintf("%s | %s\n%s | %s^%s", number, text, strings.Repeat(" ", len(number)), strings.Repeat(" ", runewidth.StringWidth(before)), mark)
}

// visibleLine is what may be shown of a line, and whether something behind it may not.
func (r *report) visibleLine(number int) (string, bool) {
	if r.public == nil {
		r.public = maskLines(r.lines)
	}
	line := r.public[number-1]
	for _, value := range r.hide {
		if before, _, found := strings.Cut(line, value); found {
			line = before
		}
	}
	r.public[number-1] = line // the next problem in it need not look again
	return line, line != r.lines[number-1]
}

// shown makes text harmless on a terminal, each character as wide as it was.
func shown(runes []rune) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t':
			return ' '
		case !unicode.IsPrint(c):
			return '\ufffd'
		}
		return c
	}, string(runes))
}

// isWord reports whether c goes on what a mark points at.
func isWord(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_.+-/$*<", c)
}

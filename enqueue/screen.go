package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// screen is what an output can show.
type screen struct {
	width  int  // of a line; 0 means any
	height int  // lines; 0 means any
	ascii  bool // nothing beyond ASCII
}

// usualWidth is that of a terminal that does not say.
const usualWidth = 80

// screenOf looks at an output. COLUMNS counts more than what a terminal says of itself; in a pipe without it, lines are as
// long as they come, since programs and files have no edge.
func screenOf(w io.Writer, lookup func(string) (string, bool)) screen {
	s := screen{ascii: ascii(lookup)}
	if f, ok := w.(*os.File); ok && isTerminal(w) {
		s.width = usualWidth
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			s.width, s.height = width, height
		}
	}
	if text, ok := lookup("COLUMNS"); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			s.width = n
		}
	}
	return s
}

// ascii reports whether the locale says that there are no other characters. One that says nothing has them: so it is in
// most containers, and on most terminals in there.
func ascii(lookup func(string) (string, bool)) bool {
	if name, _ := lookup("TERM"); name == "dumb" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value, _ := lookup(name); value != "" {
			upper := strings.ToUpper(value)
			return !strings.Contains(upper, "UTF-8") && !strings.Contains(upper, "UTF8")
		}
	}
	return false
}

// colours decides whether an output is coloured: on a terminal that can, unless somebody does not want it; elsewhere only
// by force (https://no-color.org, https://bixense.com/clicolors).
func colours(terminal, unwanted bool, lookup func(string) (string, bool)) bool {
	noColor, _ := lookup("NO_COLOR")
	kind, _ := lookup("TERM")
	force, _ := lookup("CLICOLOR_FORCE")
	switch {
	case unwanted || noColor != "":
		return false
	case force != "" && force != "0":
		return true
	default:
		return terminal && kind != "dumb"
	}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

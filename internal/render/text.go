package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line and with nothing in it that acts on a terminal: what cannot be printed is shown as Go
// would write it, such as \n, \x1b or \u202e.
func Text(s string) string {
	if !strings.ContainsFunc(s, acts) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case acts(r):
			b.WriteString(visible(r))
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// Bytes is a size as people read it, in units of a thousand: 850 B, 3.2 kB, 48 MB.
func Bytes(n int64) string {
	size, unit := float64(n), 0
	for size >= 999.5 && unit < 4 {
		size /= 1000
		unit++
	}
	form := "%.0f %s"
	if unit > 0 && size < 9.95 {
		form = "%.1f %s"
	}
	return fmt.Sprintf(form, size, [...]string{"B", "kB", "MB", "GB", "TB"}[unit])
}

// acts reports whether r does something to a terminal or its reader other than to appear: control characters, and
// formats that reorder or hide text (Trojan Source, CVE-2021-42574).
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// visible writes a character as Go does between quotes.
func visible(r rune) string {
	quoted := fmt.Sprintf("%+q", r)
	return quoted[1 : len(quoted)-1]
}

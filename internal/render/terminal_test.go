package render_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/render"
)

// through writes pieces to a Terminal and returns what comes out.
func through(tb interface{ Fatal(...any) }, pieces ...string) string {
	var out strings.Builder
	term := render.NewTerminal(&out)
	for _, p := range pieces {
		if n, err := term.Write([]byte(p)); n != len(p) || err != nil {
			tb.Fatal(n, err)
		}
	}
	if err := term.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// Ensure that colours and progress bars pass, and that what acts beyond the line is shown instead.
func TestTerminal(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "step 1\tof 2\n", "step 1\tof 2\n"},
		{"progress", "10%\r20%\b\b\x1b[K", "10%\r20%\b\b\x1b[K"},
		{"colour, switched off at the end", "\x1b[1;31mred", "\x1b[1;31mred\x1b[0m"},
		{"window title", "\x1b]0;owned\x07", "^[]0;owned^G"},
		{"clipboard", "\x1b]52;c;eA==\x1b\\", "^[]52;c;eA==^[\\"},
		{"clear screen", "\x1b[2Jx", "^[[2Jx"},
		{"cursor", "\x1b[1A\x1b[999D", "^[[1A^[[999D"},
		{"private mode", "\x1b[?1049h", "^[[?1049h"},
		{"single character control", "\u009b2J", `\u009b2J`},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"text that is turned round", "a\u202eb", `a\u202eb`},
		{"joined emoji", "👩\u200d🚀", "👩\u200d🚀"},
		{"unfinished", "a\x1b[3", "a^[[3"},
		{"endless", "\x1b[" + strings.Repeat("1", 100) + "m", "^[[" + strings.Repeat("1", 100) + "m"},
		{"unfinished character", "a\xe4\xbd", "a\uFFFD\uFFFD"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := through(t, tc.in); got != tc.want {
				t.Errorf("%q becomes %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

// Ensure that however output is split over writes, the same comes out, and that nothing acts but what may.
func TestTerminalInPieces(t *testing.T) {
	may := regexp.MustCompile(`\x1b\[[0-9;:]*[mK]`)
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"\x1b", "[", "]", "0", ";", "m", "K", "J", "?", "\u009b", "\xe4", "\xbd", "\xa0", "é", "\n"}),
		rapid.String(),
	)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(part).Draw(rt, "text"), "")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole, split := through(rt, text), through(rt, pieces...)
		if whole != split {
			rt.Fatalf("%q becomes %q at once and %q in pieces", text, whole, split)
		}
		left := strings.NewReplacer("\n", "", "\r", "", "\t", "", "\b", "").Replace(may.ReplaceAllString(whole, ""))
		if strings.ContainsFunc(left, unicode.IsControl) {
			rt.Fatalf("%q becomes %q", text, whole)
		}
	})
}

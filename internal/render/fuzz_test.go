package render

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// Ensure that whatever is printed, in whatever pieces, what reaches a terminal is valid text whose only escape sequences are
// colours and erase-in-line, and does not depend on the pieces.
func FuzzTerminal(f *testing.F) {
	for _, text := range []string{
		"plain\n", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J", "\x1b", "\x1b[", "caf\xc3", "\xff\xfe", "a\rb\b\t", "\u202eabc", "\x9b31m", "\x00\x7f",
	} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		shown := func(pieces ...[]byte) string {
			var out bytes.Buffer
			w := NewTerminal(&out)
			for _, p := range pieces {
				if n, err := w.Write(p); n != len(p) || err != nil {
					t.Fatalf("wrote %d of %d, %v", n, len(p), err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		whole := shown(text)
		if !utf8.ValidString(whole) {
			t.Errorf("%q is not valid text", whole)
		}
		at := max(0, min(cut, len(text)))
		if got := shown(text[:at], text[at:]); got != whole {
			t.Errorf("in pieces %q, at once %q", got, whole)
		}
		for rest := whole; ; {
			i := bytes.IndexByte([]byte(rest), 0x1b)
			if i < 0 {
				break
			}
			end := i + 1
			if end >= len(rest) || rest[end] != '[' {
				t.Fatalf("%q holds an escape that is none of ours", whole)
			}
			for end++; end < len(rest) && (rest[end] >= '0' && rest[end] <= ';'); end++ {
			}
			if end >= len(rest) || rest[end] != 'm' && rest[end] != 'K' {
				t.Fatalf("%q holds an escape that is none of ours", whole)
			}
			rest = rest[end+1:]
		}
	})
}

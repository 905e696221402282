package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Terminal is a writer for the output of users' code on its way to a terminal. Colours (SGR), erase-in-line, tabs, line
// ends, backspaces and carriage returns pass; every other control character, and so every other escape sequence, is shown
// as text: it could retitle the window, fill the clipboard or forge a screen. Sequences and characters may be split over
// writes.
type Terminal struct {
	w       io.Writer
	rest    []byte // an unfinished sequence or character
	styled  bool   // a colour was set and may still be on
	pending bytes.Buffer
}

// maxSequence bounds how much of an unfinished escape sequence is held back.
const maxSequence = 64

// NewTerminal returns a Terminal that writes to w.
func NewTerminal(w io.Writer) *Terminal { return &Terminal{w: w} }

// Write makes p harmless and passes it on. It returns len(p) unless the writer underneath failed.
func (t *Terminal) Write(p []byte) (int, error) {
	in := slices.Concat(t.rest, p)
	t.rest = nil
	for len(in) > 0 {
		n := t.next(in)
		if n == 0 {
			t.rest = bytes.Clone(in)
			break
		}
		in = in[n:]
	}
	return len(p), t.flush()
}

// Close shows what was held back and switches colours off. It does not close the writer underneath.
func (t *Terminal) Close() error {
	for _, c := range t.rest {
		switch {
		case c == 0x1b:
			t.show(0x1b)
		case c < utf8.RuneSelf:
			t.pending.WriteByte(c)
		default:
			t.pending.WriteRune(utf8.RuneError)
		}
	}
	t.rest = nil
	if t.styled {
		t.pending.WriteString("\x1b[0m")
		t.styled = false
	}
	return t.flush()
}

func (t *Terminal) flush() error {
	_, err := t.w.Write(t.pending.Bytes())
	t.pending.Reset()
	return err
}

// next takes one character or sequence from the front of in and returns its length; 0 if its end is missing.
func (t *Terminal) next(in []byte) int {
	if in[0] == 0x1b {
		return t.escape(in)
	}
	if !utf8.FullRune(in) {
		return 0
	}
	r, size := utf8.DecodeRune(in)
	switch {
	case r == utf8.RuneError && size == 1:
		t.pending.WriteRune(utf8.RuneError)
	case r == '\n' || r == '\r' || r == '\t' || r == '\b' || !acts(r) || joins(r):
		t.pending.WriteRune(r)
	default:
		t.show(r)
	}
	return size
}

// joins reports whether r is an invisible character that ordinary text needs: emoji and several scripts join with it.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// escape takes an escape character, with what follows if that is a colour or an erase-in-line.
func (t *Terminal) escape(in []byte) int {
	if len(in) == 1 {
		return 0
	}
	if in[1] != '[' {
		t.show(0x1b)
		return 1
	}
	for i := 2; i < len(in); i++ {
		switch c := in[i]; {
		case c >= '0' && c <= '9' || c == ';' || c == ':':
			if i >= maxSequence {
				t.show(0x1b)
				return 1
			}
			continue
		case c == 'm':
			t.styled = true
			t.pending.Write(in[:i+1])
			return i + 1
		case c == 'K':
			t.pending.Write(in[:i+1])
			return i + 1
		default:
			t.show(0x1b)
			return 1
		}
	}
	return 0
}

// show writes a character that acts in a form that does not.
func (t *Terminal) show(r rune) {
	if r < 0x20 {
		t.pending.WriteString("^" + string(r+'@'))
		return
	}
	fmt.Fprintf(&t.pending, "%s", visible(r))
}

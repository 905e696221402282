package seal

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Masker hides secret values in a stream of bytes without changing its length: each byte of a value becomes a '*', so that
// every other byte stays at its offset. It knows values as they are, as they look quoted and in a URL, and of a value of
// several lines also each line; what is shorter than four bytes is not hidden, as with a [Redactor]. Nil hides nothing. It may
// be used by several goroutines.
//
// A stream comes in pieces, and a value may lie across two of them. So whoever masks a piece shows the masker also the
// [Masker.Context] bytes before it, and goes on with the next piece where Mask says that a value may have begun.
type Masker struct {
	forms [][]byte // longest first
}

// maxForm bounds what is held back and read again. A value that is longer is hidden in parts of this length.
const maxForm = 4 << 10

// NewMasker makes a masker for the values of secrets; nil if there is none to hide.
func NewMasker(secrets map[string]string) *Masker {
	seen := map[string]bool{}
	m := &Masker{}
	add := func(form string) {
		if len(form) >= minSecret && !seen[form] {
			seen[form] = true
			m.forms = append(m.forms, []byte(form))
		}
	}
	for _, value := range secrets {
		if len(value) < minSecret {
			continue
		}
		for _, form := range formsOf(value) {
			for _, part := range parts(form, maxForm) {
				add(part)
			}
		}
		for line := range strings.Lines(value) {
			for _, part := range parts(strings.TrimRight(line, "\r\n"), maxForm) {
				add(part)
			}
		}
	}
	if len(m.forms) == 0 {
		return nil
	}
	slices.SortFunc(m.forms, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b))
	})
	return m
}

// parts divides a text into parts of at most so many bytes, none of them too short to be hidden.
func parts(text string, most int) []string {
	var all []string
	for len(text) > most+minSecret {
		all = append(all, text[:most])
		text = text[most:]
	}
	return append(all, text)
}

// Context is how many bytes before a piece must be shown with it.
func (m *Masker) Context() int {
	if m == nil {
		return 0
	}
	return len(m.forms[0]) - 1
}

// Mask hides in place what of the values is in data. It returns how many bytes may be shown: behind them a value may have
// begun that goes on in what comes next. With last nothing comes next: all may be shown, and the beginning of a value at
// the end is hidden. With torn the bytes before data are not known, so that it may begin with the end of a value.
func (m *Masker) Mask(data []byte, torn, last bool) int {
	if m == nil {
		return len(data)
	}
	secret := make([]bool, len(data))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			secret[i] = true
		}
	}
	show := len(data)
	for _, form := range m.forms {
		for from, hidden := 0, 0; ; from++ {
			at := bytes.Index(data[from:], form)
			if at < 0 {
				break
			}
			from += at
			hide(max(from, hidden), from+len(form)) // each byte once, also where a value lies upon itself at each byte
			hidden = from + len(form)
		}
		if torn {
			hide(0, overlap(form, data, minSecret, len(form)-1))
		}
		if last {
			hide(len(data)-overlap(data, form, minSecret, len(form)-1), len(data))
		} else {
			show = min(show, len(data)-overlap(data, form, 1, len(form)-1))
		}
	}
	for i, hidden := range secret {
		if hidden {
			data[i] = '*'
		}
	}
	return show
}

// overlap is the length of the longest end of a, of so many bytes, that b begins with; 0 if there is none.
func overlap(a, b []byte, least, most int) int {
	for n := min(len(a), len(b), most); n >= least; n-- {
		if bytes.Equal(a[len(a)-n:], b[:n]) {
			return n
		}
	}
	return 0
}

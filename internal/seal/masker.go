package seal

import (
	"bytes"
	"cmp"
	"encoding/binary"
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
	forms  [][]byte        // longest first
	sorted [][]byte        // the same in the order of their bytes
	within []int           // of each of these, the longest other one that it begins with; -1 for none
	starts [1 << 10]uint64 // a bit for what a form begins with, see startOf: most of an output is passed over by it
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
	m.index()
	return m
}

// index prepares the search. A secret may be a file of thousands of lines, and an output is looked through once for all.
func (m *Masker) index() {
	m.sorted = slices.SortedFunc(slices.Values(m.forms), bytes.Compare)
	for i, form := range m.sorted {
		start := startOf(form)
		m.starts[start/64] |= 1 << (start % 64)
		j := i - 1
		for j >= 0 && !bytes.HasPrefix(form, m.sorted[j]) {
			j = m.within[j]
		}
		m.within = append(m.within, j)
	}
}

// startOf maps the first minSecret bytes of a text to a number of 16 bits.
func startOf(text []byte) uint32 {
	return binary.LittleEndian.Uint32(text) * 2654435761 >> 16 // Knuth, The Art of Computer Programming, 6.4
}

// longest is the length of the longest form that data begins with; 0 for none.
func (m *Masker) longest(data []byte) int {
	if start := startOf(data); m.starts[start/64]&(1<<(start%64)) == 0 {
		return 0
	}
	i, same := slices.BinarySearchFunc(m.sorted, data, bytes.Compare)
	if !same {
		i-- // whatever data begins with, this one begins with
	}
	for ; i >= 0; i = m.within[i] {
		if bytes.HasPrefix(data, m.sorted[i]) {
			return len(m.sorted[i])
		}
	}
	return 0
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
	for at, hidden := 0, 0; at+minSecret <= len(data); at++ {
		end := at + m.longest(data[at:])
		hide(max(at, hidden), end) // each byte once, also where a value lies upon itself
		hidden = max(hidden, end)
	}
	show := len(data)
	for _, form := range m.forms {
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

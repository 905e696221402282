package web

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// colours are the escape sequences that render.Terminal lets pass. A page has no use for them.
var colours = regexp.MustCompile(`\x1b\[[0-9;:]*[mK]`)

// plain turns the output of users' code into text for a page, piece by piece: what would act on a terminal is shown or
// taken out, and of a line that was written over and over only its last state is left.
type plain struct {
	term *render.Terminal
	out  bytes.Buffer
}

func newPlain() *plain {
	p := &plain{}
	p.term = render.NewTerminal(&p.out)
	return p
}

// add takes a piece of output and returns the text for it.
func (p *plain) add(piece []byte) string {
	_, _ = p.term.Write(piece) // into memory
	return p.take()
}

// rest returns what was held back for its end to come.
func (p *plain) rest() string {
	_ = p.term.Close() // into memory
	return p.take()
}

func (p *plain) take() string {
	text := colours.ReplaceAllString(p.out.String(), "")
	p.out.Reset()
	return overwrite(strings.ReplaceAll(text, "\b", ""))
}

// overwrite leaves of each line what stands after its last carriage return. A carriage return at the very end stays:
// what comes next writes over the line.
func overwrite(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		body := strings.TrimRight(line, "\r\n")
		end := line[len(body):]
		if at := strings.LastIndexByte(body, '\r'); at >= 0 {
			body = "\r" + body[at+1:] // also over what an earlier piece has left there
			if b.Len() > 0 {
				body = body[1:]
			}
		}
		b.WriteString(body)
		b.WriteString(end)
	}
	return b.String()
}

// whole turns a finished piece of output into text for a page.
func whole(piece []byte) string {
	p := newPlain()
	text := p.add(piece)
	return strings.ReplaceAll(text+p.rest(), "\r", "")
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	most int
	buf  []byte
	cut  bool // its beginning was left out
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.buf = append(l.buf, p...)
	if over := len(l.buf) - l.most; over > l.most { // not at each write
		l.drop(over)
	}
	return len(p), nil
}

func (l *lastBytes) drop(n int) {
	l.buf, l.cut = append(l.buf[:0], l.buf[n:]...), true
}

// Bytes is the end, from the beginning of a line if it has one.
func (l *lastBytes) Bytes() []byte {
	if over := len(l.buf) - l.most; over > 0 {
		l.drop(over)
	}
	if l.cut {
		if at := bytes.IndexByte(l.buf, '\n'); at >= 0 {
			return l.buf[at+1:]
		}
	}
	return l.buf
}

// window takes a number of bytes of output and then no more. It implements follow.Out.
type window struct {
	left int
	buf  []byte
	next int64 // offset behind the last byte that was taken
}

func (w *window) Bytes(offset int64, data []byte, _ []job.Mark) error {
	n := min(len(data), w.left)
	w.buf, w.left, w.next = append(w.buf, data[:n]...), w.left-n, offset+int64(n)
	if n < len(data) {
		return errFull
	}
	return nil
}

func (w *window) Note(line string) error {
	if w.left == 0 {
		return errFull
	}
	if len(w.buf) > 0 && w.buf[len(w.buf)-1] != '\n' {
		w.buf = append(w.buf, '\n')
	}
	w.buf = append(w.buf, line...)
	return nil
}

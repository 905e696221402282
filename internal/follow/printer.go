package follow

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// Out takes the output of a job as it is read.
type Out interface {
	// Bytes takes what the user's code has written from an offset on, and the marks in and around it.
	Bytes(offset int64, data []byte, marks []job.Mark) error
	// Note takes a line of ours, with its end.
	Note(line string) error
}

// StampFormat is how the time of a line is written, in UTC and with a blank after it.
const StampFormat = "2006-01-02T15:04:05Z "

// Printer writes the output of a job as text: exactly its bytes, but for what is asked for here.
type Printer struct {
	W     io.Writer
	Stamp bool                           // write the time before each line, by the deployment's clock
	Stage func(stage job.MarkKind) error // called on a line of its own before setup and run, if there is a setup
	Skew  func(ahead time.Duration)      // told how far ahead the node's clock is, when that changes by a second or more

	open   bool // a line was begun
	setup  bool // the output of setup was seen
	stage  job.Mark
	skew   time.Duration
	latest job.Mark // time
}

// outOf is what a writer takes: only the text, unless it knows of more.
func outOf(w io.Writer) Out {
	if out, ok := w.(Out); ok {
		return out
	}
	return &Printer{W: w}
}

// Write writes text as it is.
func (p *Printer) Write(text []byte) (int, error) { return len(text), p.write(text) }

// Bytes implements [Out].
func (p *Printer) Bytes(offset int64, data []byte, marks []job.Mark) error {
	end := offset + int64(len(data))
	for i, m := range marks {
		if m.Kind == job.MarkSkew && m.Offset < end {
			p.tellSkew(time.Duration(m.Value) * time.Millisecond)
		}
		if m.Kind != job.MarkSetup && m.Kind != job.MarkRun || m.Offset < offset || m.Offset >= end || m == p.stage {
			continue
		}
		if silent(marks[i+1:], m.Offset) {
			continue
		}
		if err := p.lines(offset, data[:m.Offset-offset], marks); err != nil {
			return err
		}
		offset, data = m.Offset, data[m.Offset-offset:]
		if err := p.begin(m); err != nil {
			return err
		}
	}
	return p.lines(offset, data, marks)
}

// silent reports whether another stage begins at the same byte, so that the one before has written nothing.
func silent(rest []job.Mark, offset int64) bool {
	for _, m := range rest {
		if m.Offset > offset {
			return false
		}
		if m.Kind == job.MarkSetup || m.Kind == job.MarkRun {
			return true
		}
	}
	return false
}

// begin tells that a stage begins. A run without a setup before it needs no telling.
func (p *Printer) begin(m job.Mark) error {
	p.stage = m
	p.setup = p.setup && m.Offset > 0 || m.Kind == job.MarkSetup
	if p.Stage == nil || !p.setup {
		return nil
	}
	if err := p.ownLine(); err != nil {
		return err
	}
	return p.Stage(m.Kind)
}

// tellSkew tells how far ahead the node's clock is.
func (p *Printer) tellSkew(skew time.Duration) {
	if p.Skew != nil && (skew-p.skew).Abs() >= time.Second {
		p.skew = skew
		p.Skew(skew)
	}
}

// lines writes bytes, with the time before each line if that is wanted.
func (p *Printer) lines(offset int64, data []byte, marks []job.Mark) error {
	if !p.Stamp {
		return p.write(data)
	}
	var out bytes.Buffer
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line = data[:i+1]
		}
		if !p.open {
			out.WriteString(p.stamp(offset, marks))
		}
		out.Write(line)
		p.open = line[len(line)-1] != '\n'
		offset, data = offset+int64(len(line)), data[len(line):]
	}
	_, err := p.W.Write(out.Bytes())
	return err
}

// stamp is the time by which a byte had been written.
func (p *Printer) stamp(offset int64, marks []job.Mark) string {
	for _, m := range marks {
		if m.Kind != job.MarkTime {
			continue
		}
		p.latest = m
		if m.Offset > offset {
			break
		}
	}
	if p.latest == (job.Mark{}) {
		return "-                    "
	}
	return p.latest.Time().UTC().Format(StampFormat)
}

// Note implements [Out].
func (p *Printer) Note(line string) error {
	return errors.Join(p.ownLine(), p.write([]byte(line)))
}

// ownLine ends the line that was begun, if one was.
func (p *Printer) ownLine() error {
	if !p.open {
		return nil
	}
	return p.write([]byte("\n"))
}

func (p *Printer) write(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	n, err := p.W.Write(data)
	if n > 0 {
		p.open = data[n-1] != '\n'
	}
	return err
}

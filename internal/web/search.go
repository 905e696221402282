package web

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
)

const (
	longestQuery = 200
	// mostHits bounds the lines of one answer.
	mostHits = 100
	// longestLine is how much of a line is looked at in one piece.
	longestLine = 16 << 10
	// excerpt is how much of a line is shown.
	excerpt = 240
	// searchWithin bounds one search; the answer says where the next one goes on.
	searchWithin = 8 * time.Second
)

// searchForm is the form that looks for something in the output of an attempt.
type searchForm struct {
	Action  string
	Task    int
	Attempt int
	Query   string
}

// found is the answer to a search.
type found struct {
	Hits  []hit
	Next  string // URL that goes on; "" if all was searched
	Until string // how far it came
}

// hit is a line with what was looked for.
type hit struct {
	Offset             int64
	URL                string
	Before, Match, End string
}

// search looks through the output of an attempt from an offset on, in memory that does not grow with the output.
func (s *Server) search(ctx context.Context, key archive.LogKey, from int64, form searchForm) (*found, string) {
	ctx, cancel := context.WithTimeout(ctx, searchWithin)
	defer cancel()
	l := &follow.Log{Store: s.all, Archive: s.cfg.Archive, Key: key}
	l.Begin(from)
	scan := &scanner{query: lower([]byte(form.Query)), at: from, base: logURL(key.Job, key.Task, key.Attempt)}
	err := l.Rest(ctx, scan)
	scan.close()
	out := &found{Hits: scan.hits, Until: size(scan.at)}
	problem := ""
	switch {
	case errors.Is(err, errFull) || errors.Is(err, context.DeadlineExceeded):
		q := logSel{key.Task, key.Attempt}.query()
		q.Set("q", form.Query)
		q.Set("from", strconv.FormatInt(scan.at, 10))
		out.Next = form.Action + "?" + q.Encode()
	case err != nil:
		problem = s.unreadable(err)
	}
	return out, problem
}

// scanner looks for a text in what is written to it, line by line, in any case of ASCII letters.
type scanner struct {
	query []byte // in lower case
	base  string // URL of the output
	at    int64  // offset of the line that is looked at
	line  []byte
	hits  []hit
}

// Bytes implements follow.Out.
func (s *scanner) Bytes(offset int64, data []byte, _ []job.Mark) error {
	if s.at+int64(len(s.line)) != offset { // there is a hole
		s.close()
		s.at = offset
	}
	for len(data) > 0 {
		piece := data
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			piece = data[:end+1]
		}
		piece = piece[:min(len(piece), longestLine-len(s.line))]
		s.line, data = append(s.line, piece...), data[len(piece):]
		if s.line[len(s.line)-1] == '\n' || len(s.line) == longestLine {
			s.look()
			if len(s.hits) == mostHits {
				return errFull
			}
		}
	}
	return nil
}

// Note implements follow.Out. Our own lines are not searched.
func (*scanner) Note(string) error { return nil }

// close looks at a last line without an end.
func (s *scanner) close() {
	if len(s.line) > 0 && len(s.hits) < mostHits {
		s.look()
		s.at, s.line = s.at+int64(len(s.line)), s.line[:0]
	}
}

// look examines the current line and begins the next. Of a line that is too long, the end is kept for the next piece, so
// that nothing is missed where it was cut.
func (s *scanner) look() {
	at := bytes.Index(lower(s.line), s.query)
	if at >= 0 {
		s.hits = append(s.hits, s.hitAt(at))
	}
	keep := 0
	if s.line[len(s.line)-1] != '\n' && len(s.line) == longestLine && at < 0 {
		keep = len(s.query) - 1
	}
	done := len(s.line) - keep
	s.at += int64(done)
	s.line = append(s.line[:0], s.line[done:]...)
}

func (s *scanner) hitAt(at int) hit {
	line := bytes.TrimRight(s.line, "\r\n")
	end := min(at+len(s.query), len(line))
	from := max(0, at-excerpt/3)
	to := min(len(line), max(end, from+excerpt))
	return hit{
		Offset: s.at, URL: s.base + "&from=" + strconv.FormatInt(s.at, 10),
		Before: dots(from > 0) + whole(line[from:at]), Match: whole(line[at:end]), End: whole(line[end:to]) + dots(to < len(line)),
	}
}

func dots(cut bool) string {
	if cut {
		return "…"
	}
	return ""
}

// lower is bytes.ToLower for ASCII alone: it never changes the length.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// clip cuts text to a number of bytes, between two characters.
func clip(text string, most int) string {
	text = strings.TrimSpace(text)
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

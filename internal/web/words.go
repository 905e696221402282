package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// stamp is a time as a page shows it.
type stamp struct {
	Text  string // how long ago, or the time of day
	Clock bool   // it is a time of day, which the browser shows as the reader's clock has it
	Exact string // for a tooltip
	ISO   string // for the browser, which knows the reader's time zone
}

// when is how long ago something was; nil for a time that never was.
func when(at account.Time, now job.Time) *stamp {
	if at == 0 {
		return nil
	}
	s := stampOf(job.Time(at).Std().UTC())
	s.Text = render.Ago(now.Sub(job.Time(at)))
	return s
}

// clock is a time within a history, with the day if that is another one.
func clock(at account.Time, now job.Time) *stamp {
	t, today := job.Time(at).Std().UTC(), now.Std().UTC()
	s := stampOf(t)
	s.Clock, s.Text = true, t.Format(time.TimeOnly)
	if t.Format(time.DateOnly) != today.Format(time.DateOnly) {
		s.Text = t.Format("Jan 2 15:04:05")
	}
	return s
}

func stampOf(t time.Time) *stamp {
	return &stamp{Exact: t.Format("2006-01-02 15:04:05 UTC"), ISO: t.Format(time.RFC3339)}
}

// progress tells which task of a chain a job is at.
func progress(j account.Job) string {
	if len(j.Tasks) < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d", j.At(), len(j.Tasks))
}

// lines makes text of several lines harmless: what acts is shown, but for line ends and tabs.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		for i, part := range strings.Split(strings.TrimSuffix(line, "\r"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(render.Text(part))
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// count is a number that people read: 12,345.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size is a number of bytes that people read.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	f, i := float64(n)/unit, 0
	for ; f >= unit && i < 3; i++ {
		f /= unit
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + []string{"KB", "MB", "GB", "TB"}[i]
}

package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	// newestLines and newestBytes bound the output on the page of a job.
	newestLines = 300
	newestBytes = 128 << 10
	// windowSize is one page of output, in bytes.
	windowSize = 64 << 10
	// readWithin bounds the reading for a page: an archive that hangs must not make the page hang.
	readWithin = 5 * time.Second
)

// logSel is what of a job's output a page is about.
type logSel struct {
	Task    int // follow.AllTasks, or a task
	Attempt int // 0 is the newest, and those that come after it
}

// selectLog reads it from the URL.
func selectLog(r *http.Request, rec *job.Record) (logSel, error) {
	task, err := number(r, "task", follow.AllTasks)
	if err != nil {
		return logSel{}, err
	}
	attempt, err := number(r, "attempt", 0)
	if err != nil {
		return logSel{}, err
	}
	sel := logSel{Task: int(task), Attempt: int(attempt)}
	if sel.Attempt != 0 && sel.Task < 0 {
		sel.Task = 0
	}
	if sel.Task >= len(rec.Tasks) {
		return sel, badRequest("Job %d has no task %d: it has %d, numbered from 0.", rec.ID, sel.Task, len(rec.Tasks))
	}
	if sel.Attempt > 0 && sel.Attempt > rec.Tasks[sel.Task].Attempts {
		return sel, badRequest("Task %d of job %d has no attempt %d yet.", sel.Task, rec.ID, sel.Attempt)
	}
	return sel, nil
}

// logView is the newest output on the page of a job.
type logView struct {
	Text     string
	Cut      bool   // there is more before it
	Problem  string // why some of it is missing
	LiveURL  string // where what comes next is streamed; "" if nothing comes
	Choices  []logChoice
	PagesURL string // of the attempt that is shown last
	RawURL   string
	Search   searchForm
}

// logChoice leads to the output of one attempt.
type logChoice struct {
	Label string
	URL   string
	On    bool
}

// newestOutput reads the end of a job's output, and where its stream goes on. Bare leaves out the output itself.
func (s *Server) newestOutput(ctx context.Context, k known, sel logSel, bare bool) logView {
	shown := shownAttempt(k, sel)
	v := logView{
		Choices:  choices(k, sel),
		PagesURL: logURL(k.rec.ID, shown.Task, shown.Attempt),
		RawURL:   rawURL(k.rec.ID, shown.Task, shown.Attempt),
		Search:   searchForm{Action: jobURL(k.rec.ID) + "/log", Task: shown.Task, Attempt: shown.Attempt},
	}
	if bare {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	out := &lastBytes{most: newestBytes}
	at := follow.Position{Task: max(sel.Task, 0), Attempt: max(sel.Attempt, 1)}
	f := &follow.Follower{
		Store: s.all, Archive: s.cfg.Archive, Out: staged(out),
		Begin:  func(a job.Attempt) { fmt.Fprintln(out, account.BeginLine(a)) },
		At:     func(p follow.Position) { at = p },
		Broken: func(err error) { v.Problem = s.unreadable(err) },
	}
	_, err := f.Run(ctx, follow.Selection{Job: k.rec.ID, Task: sel.Task, Attempt: sel.Attempt, Tail: newestLines})
	if err != nil {
		v.Problem = s.unreadable(err)
	}
	v.Text = whole(out.Bytes())
	v.Cut = out.cut || bytes.Count(out.Bytes(), []byte("\n")) >= newestLines
	if k.rec.Step != job.StepDone {
		q := sel.query()
		q.Set("from", positionText(at))
		v.LiveURL = jobURL(k.rec.ID) + "/live?" + q.Encode()
	}
	return v
}

// unreadable tells a visitor that output cannot be had, and the worker's log why.
func (s *Server) unreadable(err error) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	s.cfg.Log.Warn().Err(err).Msg("output cannot be read for a page")
	if errors.Is(err, store.ErrUnavailable) {
		return "The store does not answer: the newest output cannot be shown now."
	}
	return "Some of the output cannot be read now. The log of the worker says why."
}

// choices are the attempts that have run, and all of them together.
func choices(k known, sel logSel) []logChoice {
	chain := len(k.rec.Tasks) > 1
	out := []logChoice{{Label: "newest", URL: jobURL(k.rec.ID) + "#output", On: sel.Attempt == 0}}
	for _, a := range k.history.Attempts {
		if a.Started == 0 {
			continue
		}
		q := logSel{a.Task, a.Number}.query()
		out = append(out, logChoice{
			Label: "try " + tryName(a.Task, a.Number, chain), URL: jobURL(k.rec.ID) + "?" + q.Encode() + "#output",
			On: sel.Attempt == a.Number && sel.Task == a.Task,
		})
	}
	return out
}

// shownAttempt is the attempt whose output a page ends with.
func shownAttempt(k known, sel logSel) logSel {
	if sel.Attempt > 0 {
		return sel
	}
	shown := logSel{max(sel.Task, 0), 1}
	for _, a := range k.history.Attempts {
		if a.Started != 0 && (sel.Task < 0 || sel.Task == a.Task) {
			shown = logSel{a.Task, a.Number}
		}
	}
	return shown
}

func (l logSel) query() url.Values {
	q := url.Values{}
	if l.Task >= 0 {
		q.Set("task", strconv.Itoa(l.Task))
	}
	if l.Attempt > 0 {
		q.Set("attempt", strconv.Itoa(l.Attempt))
	}
	return q
}

func jobURL(id job.ID) string { return "/jobs/" + strconv.FormatInt(int64(id), 10) }

func logURL(id job.ID, task, attempt int) string {
	return jobURL(id) + "/log?" + logSel{task, attempt}.query().Encode()
}

func rawURL(id job.ID, task, attempt int) string {
	return jobURL(id) + "/log/raw?" + logSel{task, attempt}.query().Encode()
}

// staged writes output with a line before setup and run, if there was a setup.
func staged(w io.Writer) *follow.Printer {
	return &follow.Printer{W: w, Stage: func(stage job.MarkKind) error {
		_, err := io.WriteString(w, stageLine(stage)+"\n")
		return err
	}}
}

func stageLine(stage job.MarkKind) string {
	if stage == job.MarkSetup {
		return "── setup ──"
	}
	return "── run ──"
}

// logPage is one window of the output of one attempt.
type logPage struct {
	ID      job.ID
	Name    string
	Label   string // of the attempt
	Text    string
	From    int64
	Next    int64
	Earlier string // URL of the window before
	Later   string // URL of the window after
	Newest  string // URL of the end, on the page of the job
	RawURL  string
	Problem string
	Search  searchForm
	Found   *found // what was looked for; nil if nothing was
	Empty   bool
}

// log shows the output of an attempt in windows, or what was found in it.
func (s *Server) log(w http.ResponseWriter, r *http.Request) error {
	k, sel, err := s.chosen(r)
	if err != nil {
		return err
	}
	id := k.rec.ID
	from, err := number(r, "from", 0)
	if err != nil {
		return err
	}
	sel = shownAttempt(k, sel)
	v := logPage{
		ID: id, Name: jobViewOf(k).Name, Label: "try " + tryName(sel.Task, sel.Attempt, len(k.rec.Tasks) > 1), From: from,
		Newest: jobURL(id) + "?" + sel.query().Encode() + "#output", RawURL: rawURL(id, sel.Task, sel.Attempt),
		Search: searchForm{Action: jobURL(id) + "/log", Task: sel.Task, Attempt: sel.Attempt, Query: clip(r.FormValue("q"), longestQuery)},
	}
	key := archive.LogOf(&k.rec.Head, sel.Task, sel.Attempt)
	if v.Search.Query != "" {
		v.Found, v.Problem = s.search(r.Context(), key, from, v.Search)
	} else {
		s.readWindow(r.Context(), key, &v)
	}
	s.show(w, r, http.StatusOK, view{
		Page: "log", Title: fmt.Sprintf("Output of %s · job %d", v.Name, id), Status: k.rec.Status(), Nav: "/", Data: v,
	})
	return nil
}

// readWindow reads the output from where the page begins.
func (s *Server) readWindow(ctx context.Context, key archive.LogKey, v *logPage) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	base := logURL(key.Job, key.Task, key.Attempt) + "&from="
	l := &follow.Log{Store: s.all, Archive: s.cfg.Archive, Key: key}
	l.Begin(v.From)
	win := &window{left: windowSize}
	err := l.Rest(ctx, win)
	more := errors.Is(err, errFull)
	if err != nil && !more {
		v.Problem = s.unreadable(err)
	}
	v.Next = win.next
	text := win.buf
	if at := bytes.LastIndexByte(text, '\n'); more && at > 0 { // end with a line
		v.Next -= int64(len(text) - at - 1)
		text = text[:at+1]
	}
	v.Text, v.Empty = whole(text), len(text) == 0
	if v.From > 0 {
		v.Earlier = base + strconv.FormatInt(max(0, v.From-windowSize), 10)
	}
	if more {
		v.Later = base + strconv.FormatInt(v.Next, 10)
	}
}

// errFull says that a page has all it can take.
var errFull = errors.New("the page is full")

// rawLog hands out the output of an attempt as it is.
func (s *Server) rawLog(w http.ResponseWriter, r *http.Request) error {
	k, sel, err := s.chosen(r)
	if err != nil {
		return err
	}
	id := k.rec.ID
	sel = shownAttempt(k, sel)
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="job-%d-task-%d-attempt-%d.log"`, id, sel.Task, sel.Attempt))
	return s.sendLog(w, r, follow.Selection{Job: id, Task: sel.Task, Attempt: sel.Attempt})
}

// sendLog writes output to somebody who reads it at their own pace, as long as they read.
func (s *Server) sendLog(w http.ResponseWriter, r *http.Request, sel follow.Selection) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	ctx, done := s.stream(r)
	defer done()
	out := &paced{w: w, c: http.NewResponseController(w)}
	defer out.extend()
	f := &follow.Follower{Store: s.all, Archive: s.cfg.Archive, Out: out, Broken: func(err error) { _ = s.unreadable(err) }}
	if sel.Follow {
		f.Seen = func(context.Context, job.Record) { _ = out.c.Flush() }
		f.Beat = s.beat(sel.Job)
	}
	_, err := f.Run(ctx, sel)
	if err != nil && out.n > 0 {
		_ = s.unreadable(err) // too late for another answer
		return nil
	}
	return err
}

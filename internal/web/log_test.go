package web_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// pre is the output on a page.
var pre = regexp.MustCompile(`(?s)<pre [^>]*aria-label="Output[^>]*>\n(.*?)</pre>`)

// Ensure that the whole output can be read from page to page, each line once, in order, also the newest that is not in
// the archive yet.
func TestOutputInPages(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("talks"))
	w.Runs(id, offerA, time.Minute)
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, "line %d of a job that talks a lot & <b>loudly</b>\n", i)
	}
	text := all.String()
	cut := int64(len(text) - 1000)
	w.Says(id, 0, 1, 0, text[:cut])
	if err := w.Store.TailAppend(t.Context(), id, 0, 1, cut, []byte(text[cut:])); err != nil {
		t.Fatal(err)
	}
	later := regexp.MustCompile(`<a href="([^"]+)" rel="next">Later`)
	got, pages := "", 0
	for path := jobPath(id) + "/log"; path != ""; pages++ {
		body := get(t, w.Server.URL()+path).body
		m := pre.FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no output on %s", path)
		}
		got += m[1]
		path = ""
		if m := later.FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	want := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	if got != want || pages < 4 {
		t.Errorf("%d pages with %d bytes, want %d", pages, len(got), len(want))
	}
	newest := pre.FindStringSubmatch(get(t, w.Server.URL()+jobPath(id)).body)[1]
	if !strings.HasSuffix(want, newest) || strings.Count(newest, "\n") != 300 {
		t.Errorf("the page of the job shows %d lines", strings.Count(newest, "\n"))
	}
	raw := get(t, w.Server.URL()+jobPath(id)+"/log/raw")
	if raw.body != text || raw.header.Get("Content-Disposition") != `attachment; filename="job-1-task-0-attempt-1.log"` || !strings.HasPrefix(raw.header.Get("Content-Type"), "text/plain") {
		t.Errorf("downloaded %d bytes, %v", len(raw.body), raw.header)
	}
}

// Ensure that the API gives output as it is: all of it, of one attempt, or the last lines.
func TestAPILogs(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("talks"))
	w.Runs(id, offerA, time.Minute)
	w.Says(id, 0, 1, 0, "one\n\x1b[31mtwo\n")
	w.Loses(id, job.Cause{Code: job.CodePreempted, Text: "taken"}, 0)
	w.Runs(id, offerA, time.Second)
	w.Says(id, 0, 2, 0, "three\nfour\n")
	w.Ends(id, job.Succeeded, job.Cause{Code: job.CodeSucceeded, Text: "done"}, 0, 0)
	for query, want := range map[string]string{
		"": "one\n\x1b[31mtwo\nthree\nfour\n", "attempt=1": "one\n\x1b[31mtwo\n", "task=0&attempt=2": "three\nfour\n", "tail=1": "four\n", "follow=1": "one\n\x1b[31mtwo\nthree\nfour\n",
	} {
		if got := get(t, w.Server.URL()+"/api/v1"+jobPath(id)+"/logs?"+query); got.code != 200 || got.body != want {
			t.Errorf("%s: %d %q, want %q", query, got.code, got.body, want)
		}
	}
	for _, bad := range []string{"task=1", "task=x", "attempt=9", "attempt=-1", "tail=x", "tail=99999999999"} {
		if got := get(t, w.Server.URL()+"/api/v1"+jobPath(id)+"/logs?"+bad); got.code != 400 {
			t.Errorf("%s: %d", bad, got.code)
		}
	}
}

// Ensure that a search finds lines anywhere in the output, shows them marked with the way there, and goes on after
// a hundred.
func TestSearch(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("talks"))
	w.Runs(id, offerA, time.Minute)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "step %d\n", i)
		if i%20 == 0 {
			fmt.Fprintf(&text, "Loss <is> %d\n", i)
		}
	}
	w.Says(id, 0, 1, 0, text.String())
	next := regexp.MustCompile(`<a href="([^"]+)" rel="next">Go on`)
	hits, pages := 0, 0
	for path := jobPath(id) + "/log?q=" + url.QueryEscape("loss <IS>"); path != ""; pages++ {
		body := get(t, w.Server.URL()+path).body
		hits += strings.Count(body, "<mark>Loss &lt;is&gt;</mark> ")
		path = ""
		if m := next.FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if hits != 150 || pages != 2 {
		t.Errorf("%d hits on %d pages, want 150 on 2", hits, pages)
	}
	body := get(t, w.Server.URL()+jobPath(id)+"/log?q=step+2999").body
	m := regexp.MustCompile(`<li><a href="([^"]+)" title="byte (\d+)">`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("the last line was not found:\n%s", body)
	}
	if at := get(t, w.Server.URL()+html.UnescapeString(m[1])).body; pre.FindStringSubmatch(at) == nil || !strings.HasPrefix(pre.FindStringSubmatch(at)[1], "step 2999\n") {
		t.Errorf("%s does not lead to the line", m[1])
	}
	if body := get(t, w.Server.URL()+jobPath(id)+"/log?q=nowhere").body; !strings.Contains(body, "0 lines, all of") {
		t.Error("nothing was found, and it does not say so")
	}
}

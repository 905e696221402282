package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// event is one of a stream.
type event struct{ kind, id, text string }

// stream opens a stream of events, which ends with the test or with the context. It returns the code of the answer, and
// what reads one event after the other.
func stream(t *testing.T, ctx context.Context, url, last string) (int, func() (event, bool)) { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 1<<20)
	return resp.StatusCode, func() (event, bool) {
		var e event
		for scan.Scan() {
			name, value, _ := strings.Cut(scan.Text(), ": ")
			switch {
			case name == "event":
				e.kind = value
			case name == "id":
				e.id = value
			case name == "data":
				if err := json.Unmarshal([]byte(value), &e.text); err != nil {
					t.Errorf("data is %q", value)
				}
			case scan.Text() == "" && e.kind != "":
				return e, true
			}
		}
		return event{}, false
	}
}

// Ensure that a stream brings the output of all attempts as it comes, tells of changes, goes on where it broke off, and
// ends when the job is done.
func TestLive(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("train"))
	w.Runs(id, offerA, time.Minute)
	if err := w.Store.TailAppend(t.Context(), id, 0, 1, 0, []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	_, next := stream(t, t.Context(), w.Server.URL()+jobPath(id)+"/live", "")
	var seen []event
	until := func(kind, text string) event {
		t.Helper()
		for {
			e, ok := next()
			if !ok {
				t.Fatalf("the stream ended before %s %q; it brought %q", kind, text, seen)
			}
			if seen = append(seen, e); e.kind == kind && strings.Contains(e.text, text) {
				return e
			}
		}
	}
	until("log", "one\n")
	if err := w.Store.TailAppend(t.Context(), id, 0, 1, 4, []byte("two\n")); err != nil {
		t.Fatal(err)
	}
	at := until("log", "two\n")
	if at.id != "0.1.8" {
		t.Errorf("the position is %s", at.id)
	}
	w.Says(id, 0, 1, 0, "one\ntwo\nthree\n")
	w.Loses(id, job.Cause{Code: job.CodePreempted, Text: "taken"}, 0)
	w.Says(id, 0, 2, 0, "four <b>\n")
	w.Runs(id, offerA, time.Second)
	until("log", "three\n")
	until("attempt", "attempt 2 on local/a")
	last := until("log", "four <b>\n")
	w.Ends(id, job.Succeeded, job.Cause{Code: job.CodeSucceeded, Text: "done"}, 0, 0)
	until("change", "SUCCEEDED")
	until("end", "")
	if _, more := next(); more {
		t.Error("something came after the end")
	}

	_, next = stream(t, t.Context(), w.Server.URL()+jobPath(id)+"/live?from=0.1.0", at.id)
	if e, _ := next(); e.text != "three\n" {
		t.Errorf("after %s came %q", at.id, e)
	}
	_, next = stream(t, t.Context(), w.Server.URL()+jobPath(id)+"/live?from="+last.id, "")
	if e, _ := next(); e.kind != "end" {
		t.Errorf("after all of it came %q", e)
	}
	for _, bad := range []string{"x", "1.2", "0.1.-5", "0.0.1", "5.1.0", "0.1.99999999999999999999"} {
		code, next := stream(t, t.Context(), w.Server.URL()+jobPath(id)+"/live?from="+bad, "")
		if e, ok := next(); code != http.StatusBadRequest && (!ok || e.kind != "end") {
			t.Errorf("position %s: %d %q", bad, code, e)
		}
	}
}

// Ensure that streams are bounded in number, free their place when the visitor goes, and end with the server at once.
func TestStreamsAreBoundedAndEnd(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("train"))
	w.Runs(id, offerA, time.Minute)
	w.Says(id, 0, 1, 0, "one\n")
	url := w.Server.URL() + jobPath(id) + "/live"
	leave := make([]context.CancelFunc, 64)
	for i := range leave {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leave[i] = cancel
		if code, _ := stream(t, ctx, url, ""); code != http.StatusOK {
			t.Fatalf("stream %d: %d", i, code)
		}
	}
	if got := get(t, url); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %d", got.code)
	}
	if got := get(t, w.Server.URL()+"/api/v1"+jobPath(id)+"/logs?follow=1"); got.code != 503 {
		t.Errorf("one follower too many: %d", got.code)
	}
	leave[0]()
	var next func() (event, bool)
	for deadline := time.Now().Add(time.Minute); ; {
		code, n := stream(t, t.Context(), url, "")
		if next = n; code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a visitor who has gone keeps a place")
		}
	}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if err := w.Server.Stop(ctx); err != nil {
		t.Errorf("streams hold up the end: %v", err)
	}
	for {
		if _, ok := next(); !ok {
			break
		}
	}
}

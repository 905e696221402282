package web_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// Ensure that asking changes nothing, that a form does once what it says, and that the page after it tells so.
func TestActions(t *testing.T) {
	w := webtest.New(t, nil)
	runs, failed := w.Submit(request("runs")), w.Submit(request("failed"))
	w.Runs(runs, offerA, time.Minute)
	w.Runs(failed, offerA, time.Minute)
	w.Ends(failed, job.Failed, job.Cause{Code: job.CodeUserExit, Text: "exit"}, 1, 0)
	var want []string
	for _, c := range []struct {
		path, body, does, says string
	}{
		{jobPath(runs) + "/cancel", "", "cancel 1 by web grace -1ns", "The job is being cancelled."},
		{jobPath(runs) + "/cancel", "grace=2m", "cancel 1 by web grace 2m0s", "The job is being cancelled."},
		{jobPath(runs) + "/preempt", "", "preempt 1 by web", "Its machine is being taken away."},
		{jobPath(failed) + "/resume", "", "resume 2 by web", "The job is being resumed."},
	} {
		asked := get(t, w.Server.URL()+c.path)
		if asked.code != 200 || !strings.Contains(asked.body, `method="post" action="`+c.path+`"`) {
			t.Errorf("%s asks %d %s", c.path, asked.code, asked.body)
		}
		if done := w.Actions.Done(); len(done) != len(want) {
			t.Fatalf("asking did %q", done)
		}
		got := ask(t, "POST", w.Server.URL()+c.path, c.body, form)
		if got.code != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", c.path, got.code, got.body)
		}
		if after := get(t, w.Server.URL()+got.header.Get("Location")); !strings.Contains(after.body, `role="status">`+c.says) {
			t.Errorf("after %s the page does not say %q", c.path, c.says)
		}
		want = append(want, c.does)
	}
	if diff := cmp.Diff(want, w.Actions.Done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// Ensure that what cannot be done is told and not done, and that a result the queue delays is told.
func TestActionsThatCannotBe(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("waits"))
	at := w.Server.URL() + jobPath(id)
	if got := get(t, at+"/preempt"); !strings.Contains(got.body, "Only a job that runs can lose its machine") {
		t.Error("taking a machine away that is not there was not refused")
	}
	for _, grace := range []string{"-1s", "soon", "25h"} {
		if got := ask(t, "POST", at+"/cancel", "grace="+grace, form); got.code != 400 || !strings.Contains(got.body, "The grace is written as") {
			t.Errorf("grace %s: %d", grace, got.code)
		}
	}
	if got := ask(t, "POST", at+"/cancel", "grace=1s&x="+strings.Repeat("x", 1<<20), form); got.code != http.StatusRequestEntityTooLarge {
		t.Errorf("a form of a megabyte: %d", got.code)
	}
	if got := ask(t, "POST", w.Server.URL()+"/jobs/99/explode", "", form); got.code != 404 {
		t.Errorf("an unknown action: %d", got.code)
	}
	for _, c := range []struct {
		fail error
		say  web.Result
		code int
		says string
	}{
		{&job.NotResumableError{ID: id, Why: "its secrets are <gone>"}, "", 409, "its secrets are &lt;gone&gt;"},
		{store.ErrUnavailable, "", 503, "This is a pause"},
		{errors.New("secret detail"), "", 500, "Something went wrong"},
		{nil, web.Later, 303, ""},
		{nil, web.TooLate, 303, ""},
	} {
		w.Actions.Fail, w.Actions.Say = c.fail, c.say
		got := ask(t, "POST", at+"/resume", "", form)
		if got.code != c.code || !strings.Contains(got.body, c.says) || strings.Contains(got.body, "secret detail") {
			t.Errorf("%v %v: %d %s", c.fail, c.say, got.code, got.body)
		}
		if c.code == 303 && !strings.HasSuffix(got.header.Get("Location"), "?said=resume-"+string(c.say)) {
			t.Errorf("%v leads to %s", c.say, got.header.Get("Location"))
		}
	}
	if body := get(t, at+"?said=%3Cscript%3E").body; strings.Contains(body, "&lt;script") {
		t.Error("the page says what its address says")
	}
}

// Ensure that the API changes a job for a program that has the token and sends JSON, and for nobody else.
func TestAPIActions(t *testing.T) {
	w := guarded(t)
	id := w.Submit(request("waits"))
	at := w.Server.URL() + "/api/v1" + jobPath(id)
	send := func(kind string, with func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			with(r)
			r.Header.Set("Content-Type", kind)
		}
	}
	basic := func(r *http.Request) { r.SetBasicAuth("ada", token) }
	for _, c := range []struct {
		name, path, body string
		with             func(*http.Request)
		code             int
		has              string
	}{
		{"a program", "/cancel", `{"grace": "5s"}`, send("application/json", bearer(token)), 202, `"result": "accepted"`},
		{"a form", "/cancel", "grace=5s", send("application/x-www-form-urlencoded", bearer(token)), 415, "send JSON"},
		{"a browser with the token", "/cancel", "{}", send("application/json", basic), 403, "Bearer"},
		{"nobody", "/cancel", "{}", send("application/json", func(*http.Request) {}), 401, ""},
		{"junk", "/cancel", "{", send("application/json", bearer(token)), 400, "no JSON object"},
		{"an unknown field", "/cancel", `{"grase": "5s"}`, send("application/json", bearer(token)), 400, "no JSON object"},
		{"a bad grace", "/cancel", `{"grace": "x"}`, send("application/json", bearer(token)), 400, "grace"},
		{"too late", "/preempt", "{}", send("application/json", bearer(token)), 409, "Only a job that runs"},
		{"an unknown action", "/explode", "{}", send("application/json", bearer(token)), 404, "no such path"},
	} {
		if got := ask(t, "POST", at+c.path, c.body, c.with); got.code != c.code || !strings.Contains(got.body, c.has) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, got.code, got.body, c.code, c.has)
		}
	}
	if done := w.Actions.Done(); len(done) != 1 || done[0] != "cancel 1 by web grace 5s" {
		t.Errorf("was done: %q", done)
	}
}

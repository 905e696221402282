package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a history is told once, also when its beginning has been cut off.
func TestAfter(t *testing.T) {
	var history []job.Event
	for i := range 5 {
		history = append(history, job.Event{At: job.Time(i), Kind: "note"})
	}
	for _, tc := range []struct {
		name string
		from []job.Event
		last job.Event
		want []job.Event
	}{
		{"nothing was told", history, job.Event{}, history},
		{"some was told", history, history[2], history[3:]},
		{"all was told", history, history[4], []job.Event{}},
		{"what was told is gone", history[3:], history[0], history[3:]},
	} {
		if diff := cmp.Diff(tc.want, after(tc.from, tc.last)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Ensure that a wait is told once, and only when it lasts.
func TestNarratorTellsLongWaits(t *testing.T) {
	n := &narrator{id: 7}
	start := time.Now()
	r := job.NewRecord(job.HeadOf(7, job.Request{Tasks: []job.TaskRequest{{Run: "true"}}}, 1))
	at := func(seconds int, code job.Code) string {
		r.Wait.For = job.Cause{Code: code, Text: string(code)}
		return n.waiting(&r, start.Add(time.Duration(seconds)*time.Second))
	}
	told := []string{
		at(0, job.CodeBooting), at(2, job.CodeBooting), at(3, ""), at(4, job.CodeBackoff), at(6, job.CodeBackoff), at(7, job.CodeBackoff), at(9, job.CodeBackoff), at(99, job.CodeLaunchSlot),
	}
	want := []string{"", "", "", "", "", "job 7 waits: backoff", "", ""}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Ensure that trouble is told, but not at every look.
func TestNarratorComplainsOnce(t *testing.T) {
	var told []string
	n := &narrator{say: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }}
	for _, text := range []string{"a", "a", "b", "b\x07"} {
		n.complain(fmt.Errorf("%s", text))
	}
	n.complain(nil)
	n.complain(fmt.Errorf("read the time: %w", context.Canceled)) // by Ctrl-C: nothing is tried again
	if diff := cmp.Diff([]string{"a; trying again", "b; trying again", `b\a; trying again`}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Ensure that each kind of event reads well.
func TestEventLine(t *testing.T) {
	lost := job.Cause{Code: job.CodePreempted, Text: "taken", Evidence: "n-1"}
	for _, tc := range []struct {
		e     job.Event
		chain bool
		want  string
	}{
		{job.Event{Kind: "status", To: "RUNNING"}, false, "RUNNING"},
		{job.Event{Kind: "status", To: "RUNNING", Cause: lost}, false, "RUNNING"},
		{job.Event{Kind: "status", To: "RECOVERING", Cause: lost, Task: 1}, true, "task 1: RECOVERING: taken (n-1)"},
		{job.Event{Kind: "attempt", To: "intent", Attempt: 2, Cause: job.Cause{Text: "on local/a"}}, false, "attempt 2 on local/a"},
		{job.Event{Kind: "attempt", To: "closing", Attempt: 2, Cause: lost}, false, "attempt 2 closing: taken"},
		{job.Event{Kind: "note", Cause: lost}, false, "taken (n-1)"},
	} {
		if got := account.EventLine(tc.e, tc.chain); got != tc.want {
			t.Errorf("%+v is %q, want %q", tc.e, got, tc.want)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that every error has its exit code and its name for programs, also when it is wrapped or joined with others.
func TestErrorsHaveCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		exit int
		code string
	}{
		{usagef("no"), exitUsage, "usage"},
		{spec.Errors{{What: "wrong"}}, exitUsage, "invalid_job"},
		{store.ErrNotFound, exitNotFound, "not_found"},
		{store.ErrUnavailable, exitError, "store_unavailable"},
		{store.ErrNoDeployment, exitError, "no_deployment"},
		{errNoRedis, exitError, "no_redis"},
		{errNoRecipient, exitError, "no_recipient"},
		{errNoCallbacks, exitError, "no_callbacks"},
		{&job.NotResumableError{ID: 7, Why: "it runs"}, exitError, "not_resumable"},
		{&store.KeyTakenError{Key: "k"}, exitError, "key_taken"},
		{&store.SchemaError{}, exitError, "schema"},
		{&store.CorruptError{Err: io.EOF}, exitError, "damaged_record"},
		{archive.ErrTooLarge, exitError, "too_large"},
		{errInterrupted, exitInterrupted, "interrupted"},
		{context.Canceled, exitInterrupted, "error"},
		{io.EOF, exitError, "error"},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("doing: %w", tc.err), errors.Join(tc.err, io.ErrUnexpectedEOF)} {
			if got := exitCode(err); got != tc.exit {
				t.Errorf("exit code of %q is %d, want %d", err, got, tc.exit)
			}
			if got := describe(err).Code; got != tc.code {
				t.Errorf("code of %q is %s, want %s", err, got, tc.code)
			}
		}
	}
	if exitCode(nil) != exitSucceeded {
		t.Error("no error is not success")
	}
}

// Ensure that every status has an exit code, and that the worst of several counts.
func TestOutcome(t *testing.T) {
	got := map[job.Status]int{}
	for _, s := range job.Statuses {
		got[s] = exitCode(outcome(s))
	}
	want := map[job.Status]int{
		job.Pending: 101, job.Starting: 101, job.Running: 101, job.Recovering: 101, job.Cancelling: 101,
		job.Succeeded: 0, job.Cancelled: 103,
		job.Failed: 100, job.FailedSetup: 100, job.FailedPrechecks: 100, job.FailedNoResource: 100, job.FailedController: 100,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit codes (-want +got):\n%s", diff)
	}
	order := []int{0, 103, 100, 102, 101}
	for i, a := range order {
		for j, b := range order {
			if got, want := worse(a, b), order[max(i, j)]; got != want {
				t.Errorf("the worse of %d and %d is %d, want %d", a, b, got, want)
			}
		}
	}
}

// Ensure that an error reaches a terminal without what acts on it, and a program as one line of JSON.
func TestReport(t *testing.T) {
	err := fmt.Errorf("job \x1b]0;owned\a: %w", store.ErrNotFound)
	for output, want := range map[string]string{
		"table": `error: job \x1b]0;owned\a: no such job` + "\nhint:  see: enqueue queue -a\n",
		"json":  `{"error":{"code":"not_found","message":"job \u001b]0;owned\u0007: no such job","hint":"see: enqueue queue -a"}}` + "\n",
	} {
		var errs strings.Builder
		a := newApp(nil, io.Discard, &errs)
		a.flags.output = output
		a.report(err)
		a.report(&outcomeError{exitFailed}) // has been told
		if diff := cmp.Diff(want, errs.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", output, diff)
		}
	}
}

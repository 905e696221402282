package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
)

// outcomeError ends the program with a code that tells how a job fared. What there is to say was said.
type outcomeError struct{ code int }

func (e *outcomeError) Error() string { return fmt.Sprintf("outcome %d", e.code) }

// usageError says that the command line is wrong.
type usageError struct {
	err     error
	command string // whose line it is, such as "enqueue launch"
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

var (
	errInterrupted = errors.New("interrupted")
	errNoRedis     = errors.New("no Redis to talk to")
	errNoCallbacks = errors.New("the workers of this deployment run no code of users")
	errNoRecipient = errors.New("the job has secrets, and this deployment has nobody to open them")
)

func isInvalidJob(err error) bool {
	var problems spec.Errors
	return errors.As(err, &problems)
}

// outcome is the error that tells how a job stands; nil if it succeeded.
func outcome(s job.Status) error {
	switch {
	case s == job.Succeeded:
		return nil
	case s == job.Cancelled:
		return &outcomeError{exitCancelled}
	case s.Failure():
		return &outcomeError{exitFailed}
	default:
		return &outcomeError{exitNotFinished}
	}
}

// failure is an error as it is told: a code for programs, a sentence, and what to do about it.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`

	Problems []problem `json:"problems,omitempty"` // of a job file
}

// problem is one thing that is wrong with a job file.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func problemsOf(err error) []problem {
	var all spec.Errors
	if !errors.As(err, &all) {
		return nil
	}
	out := make([]problem, len(all))
	for i, p := range all {
		out[i] = problem{p.File, p.Line, p.Column, p.Field, p.What, p.Want}
	}
	return out
}

// describe gives an error its code and its hint.
func describe(err error) failure {
	f := failure{Code: "error", Message: err.Error()}
	var usage *usageError
	var taken *store.KeyTakenError
	var schema *store.SchemaError
	var corrupt *store.CorruptError
	var resume *job.NotResumableError
	trouble, troubled := store.TroubleOf(err)
	switch {
	case errors.As(err, &usage):
		f.Code, f.Hint = "usage", "see: "+cmp.Or(usage.command, "enqueue")+" --help"
	case isInvalidJob(err):
		f.Code, f.Problems = "invalid_job", problemsOf(err)
	case isUnservable(err):
		f.Code, f.Hint = "unservable", "see what there is, and what rules it out: enqueue plan, with the same arguments. Flags such as --infra and --gpus stand over the file"
	case errors.Is(err, errNoRedis):
		f.Code = "no_redis"
		f.Hint = "start `worker dev` here, or name one: --redis redis://HOST:6379, OUTLAST_REDIS, or the config file"
	case errors.Is(err, store.ErrNoDeployment):
		f.Code = "no_deployment"
	case troubled:
		f.Code, f.Hint = trouble.Code, trouble.Advice
	case errors.Is(err, store.ErrUnavailable):
		f.Code, f.Hint = "store_unavailable", "jobs that run are not harmed: try again when Redis answers"
	case errors.Is(err, store.ErrNotFound):
		f.Code, f.Hint = "not_found", "see: enqueue queue -a"
	case errors.Is(err, errNoPage):
		f.Code, f.Hint = "no_page", "start a worker, or see: enqueue workers"
	case errors.Is(err, errNoCallbacks):
		f.Code, f.Hint = "no_callbacks", "take event_callback out and use webhooks, or ask for the setting callbacks"
	case errors.Is(err, errNoRecipient):
		f.Code, f.Hint = "no_recipient", "start a worker with an identity for secrets (the setting identity), then submit again"
	case errors.As(err, &taken):
		f.Code, f.Hint = "key_taken", "use another --key for another job file"
	case errors.As(err, &schema):
		f.Code = "schema"
	case errors.As(err, &corrupt):
		f.Code = "damaged_record"
	case errors.As(err, &resume):
		f.Code = "not_resumable"
	case errors.Is(err, archive.ErrTooLarge):
		f.Code, f.Hint = "too_large", "a workdir is for code: let the job read its data from a bucket"
	case errors.Is(err, errInterrupted):
		f.Code = "interrupted"
	}
	return f
}

// report tells an error on standard error, unless it has been told.
func (a *app) report(err error) {
	var outcome *outcomeError
	if errors.As(err, &outcome) || errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return
	}
	f := describe(err)
	if a.structured() {
		_ = a.encode(a.errs, map[string]failure{"error": f})
		return
	}
	var problems spec.Errors
	if errors.As(err, &problems) {
		tellProblems(a.errs, a.onErrs, problems)
		return
	}
	for _, line := range strings.Split(f.Message, "\n") {
		fmt.Fprintln(a.errs, a.onErrs.red("error: ")+render.Text(line))
	}
	if f.Hint != "" {
		fmt.Fprintln(a.errs, a.onErrs.dim("hint:  "+f.Hint))
	}
}

// tellProblems tells everything that is wrong with a job, each with the line of the file that it is in.
func tellProblems(w io.Writer, p palette, problems spec.Errors) {
	for _, one := range problems {
		fmt.Fprintln(w, p.red("error: ")+render.Text(one.String()))
		for line := range strings.Lines(one.Frame) {
			fmt.Fprintln(w, p.dim("       "+render.Text(strings.TrimRight(line, "\n"))))
		}
	}
}

package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// view is a page before it is written.
type view struct {
	Page   string // name of its template
	Title  string
	Status job.Status // shown by the title and the icon; "" for none
	Nav    string     // path of the entry of the navigation that it belongs to
	Script bool       // it changes while it is looked at
	Data   any

	Visitor visitor // filled in by show
	Login   bool
}

// mistake is what a visitor asked for and cannot have.
type mistake struct {
	code int
	text string
}

func (m *mistake) Error() string { return m.text }

var errNoPage = &mistake{http.StatusNotFound, "There is no such page."}

func badRequest(format string, args ...any) error {
	return &mistake{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// page makes a handler of one that may fail.
func (s *Server) page(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.showError(w, r, err)
		}
	}
}

// errorView is a page that tells why there is no other.
type errorView struct {
	Code int
	Text string
}

func (s *Server) showError(w http.ResponseWriter, r *http.Request, err error) {
	code, text := s.explain(r, err)
	if code == 0 {
		return
	}
	title := http.StatusText(code)
	s.show(w, r, code, view{Page: "error", Title: title, Script: code == http.StatusServiceUnavailable, Data: errorView{code, text}})
}

// explain tells a visitor why something failed, and the worker's log what exactly. The code is 0 if nobody listens.
func (s *Server) explain(r *http.Request, err error) (int, string) {
	var m *mistake
	var corrupt *store.CorruptError
	var refused *job.NotResumableError
	switch {
	case errors.As(err, &m):
		return m.code, m.text
	case errors.As(err, &refused):
		return http.StatusConflict, refused.Error()
	case errors.Is(r.Context().Err(), context.Canceled):
		return 0, ""
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, "There is no such job."
	case errors.As(err, &corrupt):
		s.cfg.Log.Error().Err(err).Msg("a page cannot be shown")
		return http.StatusInternalServerError, fmt.Sprintf("The record of job %d is damaged. The log of the worker says more.", corrupt.ID)
	case errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
		s.cfg.Log.Warn().Err(err).Msg("a page cannot be shown")
		return http.StatusServiceUnavailable, "The store does not answer. This is a pause: jobs run on, and are driven on when it is back."
	default:
		s.cfg.Log.Error().Err(err).Str("path", r.URL.Path).Msg("a page cannot be shown")
		return http.StatusInternalServerError, "Something went wrong. The log of the worker says what."
	}
}

// show writes a page. A browser that has the very same one is told so.
func (s *Server) show(w http.ResponseWriter, r *http.Request, code int, v view) {
	v.Visitor, v.Login = visitorOf(r.Context()), s.gate.needed
	var body bytes.Buffer
	if err := s.pages[v.Page].ExecuteTemplate(&body, "layout", v); err != nil {
		s.cfg.Log.Error().Err(err).Str("page", v.Page).Msg("a page cannot be written")
		http.Error(w, "this page cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if code == http.StatusOK {
		sum := sha256.Sum256(body.Bytes())
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // a visitor who has gone needs no page
}

// jobID reads the number of a job out of the path.
func jobID(r *http.Request) (job.ID, error) {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || n <= 0 {
		return 0, errNoPage
	}
	return job.ID(n), nil
}

// number reads a number from 0 on out of a parameter, or the fallback if it is not given.
func number(r *http.Request, name string, fallback int64) (int64, error) {
	text := r.FormValue(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("%s must be a number from 0 on", name)
	}
	return n, nil
}

package web

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"

	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
)

// apiError is how the API tells why something was not done.
type apiError struct {
	Error string `json:"error"`
}

// api makes a handler of one that may fail, for programs.
func (s *Server) api(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		code, text := s.explain(r, err)
		if code == 0 {
			return
		}
		if errors.Is(err, errNoPage) {
			text = "there is no such path: see /api/v1/jobs"
		}
		s.answer(w, code, apiError{text})
	}
}

func (s *Server) answer(w http.ResponseWriter, code int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		s.cfg.Log.Error().Err(err).Msg("an answer cannot be written")
		http.Error(w, "this answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // whoever has gone needs no answer
}

// apiJobs lists jobs. It takes the filter that the page takes.
func (s *Server) apiJobs(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFilter(r.URL.RawQuery)
	if err != nil {
		return err
	}
	list, err := s.list(r.Context(), f)
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, list)
	return nil
}

// apiJob tells all about a job.
func (s *Server) apiJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	k, err := s.know(r.Context(), id)
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, k.history)
	return nil
}

// mostTail bounds how many last lines can be asked for.
const mostTail = 1_000_000

// apiLogs writes output as it is: of all tasks and attempts, or of one.
func (s *Server) apiLogs(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	rec, err := s.all.Load(r.Context(), id)
	if err != nil {
		return err
	}
	sel, err := selectLog(r, &rec)
	if err != nil {
		return err
	}
	tail, err := number(r, "tail", 0)
	if err != nil {
		return err
	}
	if tail > mostTail {
		return badRequest("tail is %d at most", mostTail)
	}
	follows := r.FormValue("follow") == "1" || r.FormValue("follow") == "true"
	if follows {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
		default:
			w.Header().Set("Retry-After", "10")
			return &mistake{http.StatusServiceUnavailable, "too many follow jobs on this worker"}
		}
	}
	return s.sendLog(w, r, follow.Selection{Job: id, Task: sel.Task, Attempt: sel.Attempt, Tail: int(tail), Follow: follows})
}

// apiResult is the answer to an action.
type apiResult struct {
	ID     job.ID `json:"id"`
	Action string `json:"action"`
	Result Result `json:"result"`
}

// apiAction changes a job. A browser cannot be made to do it by a page elsewhere: where there is a token, it must be
// given as a bearer; and the content must be JSON, which a form is not.
func (s *Server) apiAction(w http.ResponseWriter, r *http.Request) error {
	id, a, err := s.wanted(r)
	if err != nil {
		return err
	}
	if s.gate.needed && !visitorOf(r.Context()).Program {
		return &mistake{http.StatusForbidden, "give the token as Authorization: Bearer"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &mistake{http.StatusUnsupportedMediaType, "send JSON, with Content-Type: application/json; {} will do"}
	}
	var body struct {
		Grace string `json:"grace"`
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return badRequest("the content is no JSON object with at most the field grace")
	}
	grace, err := parseGrace(body.Grace)
	if err != nil {
		return err
	}
	rec, err := s.changeable(r.Context(), id)
	if err != nil {
		return err
	}
	if !a.can(&rec) {
		return &mistake{http.StatusConflict, a.tooLate}
	}
	result, err := s.act(r.Context(), id, a.Name, grace)
	if err != nil {
		return err
	}
	code := http.StatusAccepted
	if result == TooLate {
		code = http.StatusConflict
	}
	s.answer(w, code, apiResult{id, string(a.Name), result})
	return nil
}

package web

import (
	"net/http"
	"strings"
	"time"
)

// loginView is the login page.
type loginView struct {
	Next    string
	Name    string
	Problem string
}

func (s *Server) askLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.FormValue("next"))
	if !s.gate.needed || visitorOf(r.Context()).Session {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	s.show(w, r, http.StatusOK, view{Page: "login", Title: "Log in", Data: loginView{Next: next}})
}

// login takes the token once, and gives a session for it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	next, name := localPath(r.PostFormValue("next")), shortName(r.PostFormValue("name"))
	if !s.gate.needed {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	switch s.gate.try(r, strings.TrimSpace(r.PostFormValue("token"))) {
	case admitted:
		value := s.gate.sessions.issue(name, s.gate.now().Add(sessionLife))
		http.SetCookie(w, s.gate.sessions.cookie(r, value, sessionLife))
		http.Redirect(w, r, next, http.StatusSeeOther)
	case tooMany:
		w.Header().Set("Retry-After", "60")
		s.show(w, r, http.StatusTooManyRequests, view{Page: "login", Title: "Log in", Data: loginView{
			Next: next, Name: name, Problem: "Too many wrong tokens came from your address. Wait a minute.",
		}})
	default:
		s.show(w, r, http.StatusUnauthorized, view{Page: "login", Title: "Log in", Data: loginView{
			Next: next, Name: name, Problem: "That is not the token of this deployment.",
		}})
	}
}

// logout takes the session from the browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, s.gate.sessions.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath is where to go after the login: a path of ours, whatever was asked for.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "/login") {
		return "/"
	}
	return next
}

package web_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

const token = "s3cret-token"

func guarded(t *testing.T) *webtest.World {
	return webtest.New(t, func(c *web.Config) { c.Token = token })
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// page makes a request one of a browser that wants a page.
func page(r *http.Request) { r.Header.Set("Accept", "text/html,*/*;q=0.8") }

// logIn logs a browser in and returns it.
func logIn(t *testing.T, w *webtest.World, name, next string) (*http.Client, answer) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.PostForm(w.Server.URL()+"/login", url.Values{"token": {token}, "name": {name}, "next": {next}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return browser, answer{code: resp.StatusCode, header: resp.Header}
}

// Ensure that with a token everything but what a login needs asks for it, that programs give it with each request, and
// that a browser is led to the login.
func TestToken(t *testing.T) {
	w := guarded(t)
	for _, c := range []struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		{"/healthz", nil, 200},
		{"/login", nil, 200},
		{"/assets/style.css", nil, 200},
		{"/readyz", nil, 401},
		{"/api/v1/jobs", nil, 401},
		{"/metrics", bearer("wrong"), 401},
		{"/metrics", bearer(""), 401},
		{"/metrics", bearer(token), 200},
		{"/api/v1/jobs", bearer(token), 200},
		{"/queues/", nil, 401},
		{"/queues/", func(r *http.Request) { r.SetBasicAuth("anybody", token) }, 200},
		{"/jobs/7", page, 303},
		{"/jobs/7", func(r *http.Request) { page(r); r.Header.Set("Sec-Fetch-Mode", "cors") }, 401}, // a script of a page whose session has ended
	} {
		got := ask(t, "GET", w.Server.URL()+c.path, "", c.change)
		if got.code != c.code {
			t.Errorf("%s: %d, want %d", c.path, got.code, c.code)
		}
		if got.code == 303 && got.header.Get("Location") != "/login?next=%2Fjobs%2F7" {
			t.Errorf("%s leads to %s", c.path, got.header.Get("Location"))
		}
		if strings.Contains(got.body, token) {
			t.Errorf("%s shows the token", c.path)
		}
	}
}

// Ensure that a login gives a session that no script and no page elsewhere can use, that it holds for pages, names who
// does something, and ends with the logout.
func TestLogin(t *testing.T) {
	w := guarded(t)
	id := w.Submit(request("train"))
	browser, got := logIn(t, w, "ada", "/workers")
	if got.code != http.StatusSeeOther || got.header.Get("Location") != "/workers" {
		t.Fatalf("login: %d to %s", got.code, got.header.Get("Location"))
	}
	c := got.header.Get("Set-Cookie")
	for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(c, attribute) {
			t.Errorf("the cookie has no %s: %s", attribute, c)
		}
	}
	if strings.Contains(c, token) || strings.Contains(c, "Secure") {
		t.Errorf("the cookie over http is %s", c)
	}
	for _, step := range []struct {
		method, path string
		code         int
		location     string
	}{
		{"GET", "/", 200, ""},
		{"GET", "/login?next=/machines", 303, "/machines"},
		{"POST", jobPath(id) + "/cancel", 303, jobPath(id) + "?said=cancel-accepted"},
		{"POST", "/api/v1" + jobPath(id) + "/cancel", 403, ""}, // with the token only
		{"POST", "/logout", 303, "/login"},
		{"GET", "/api/v1/jobs", 401, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), step.method, w.Server.URL()+step.path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		form(r)
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != step.code || resp.Header.Get("Location") != step.location {
			t.Errorf("%s %s: %d to %q, want %d to %q", step.method, step.path, resp.StatusCode, resp.Header.Get("Location"), step.code, step.location)
		}
	}
	if done := w.Actions.Done(); len(done) != 1 || done[0] != "cancel 1 by ada (web) grace -1ns" {
		t.Errorf("was done: %q", done)
	}
}

// Ensure that behind a proxy that speaks https the cookie is for https alone, and that the way back from the login is
// always a page of ours.
func TestLoginLeadsNowhereElse(t *testing.T) {
	w := guarded(t)
	for next, want := range map[string]string{
		"": "/", "/jobs/7?task=1#output": "/jobs/7?task=1#output", "//evil.example": "/", "https://evil.example": "/",
		`/\evil.example`: "/", "/\tevil": "/", "javascript:alert(1)": "/", "/login": "/",
	} {
		if _, got := logIn(t, w, "", next); got.header.Get("Location") != want {
			t.Errorf("next %q leads to %q, want %q", next, got.header.Get("Location"), want)
		}
	}
	got := ask(t, "POST", w.Server.URL()+"/login", url.Values{"token": {token}}.Encode(), func(r *http.Request) {
		form(r)
		r.Header.Set("X-Forwarded-Proto", "https")
	})
	if !strings.Contains(got.header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("over https the cookie is %s", got.header.Get("Set-Cookie"))
	}
}

// Ensure that wrong tokens are counted, however they are given, and that after some of them not even the right one is
// looked at; sessions that exist go on.
func TestGuessesAreBounded(t *testing.T) {
	w := guarded(t)
	browser, _ := logIn(t, w, "ada", "/")
	guess := func(i int) answer {
		if i%2 == 0 {
			return ask(t, "GET", w.Server.URL()+"/metrics", "", bearer("wrong"))
		}
		return ask(t, "POST", w.Server.URL()+"/login", "token=wrong&name=%3Cb%3E", form)
	}
	for i := range 10 {
		if got := guess(i); got.code != 401 {
			t.Fatalf("guess %d: %d", i, got.code)
		}
	}
	refused := 0
	for i := range 4 { // one may pass if this computer is slow
		if got := guess(i); got.code == http.StatusTooManyRequests && got.header.Get("Retry-After") != "" {
			refused++
		}
	}
	if refused < 2 {
		t.Errorf("of 4 more guesses %d were refused", refused)
	}
	resp, err := browser.Get(w.Server.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a session got %d", resp.StatusCode)
	}
	browser.CloseIdleConnections()
}

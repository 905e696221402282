package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a request got.
type answer struct {
	code   int
	body   string
	header http.Header
}

// ask sends a request, as a program does. Redirects are not followed.
func ask(t *testing.T, method, url, body string, change func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(text), resp.Header}
}

func get(t *testing.T, url string) answer {
	t.Helper()
	return ask(t, "GET", url, "", nil)
}

// form is what makes a request one of a form.
func form(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }

// queued puts one task into a queue.
func queued(t *testing.T, w *webtest.World) {
	t.Helper()
	client := asynq.NewClientFromRedisClient(w.Redis)
	if _, err := client.Enqueue(asynq.NewTask("launch", []byte("payload-of-somebody")), asynq.Queue("launch"), asynq.TaskID("launch:7:1")); err != nil {
		t.Fatal(err)
	}
}

// Ensure each page is there, and what is not ready says why.
func TestPages(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "outlast_test_total", Help: "One."}))
	w := webtest.New(t, func(c *web.Config) {
		c.Metrics = registry
		c.Ready = func(context.Context) error { return errors.New("another computer than the local provider's") }
	})
	queued(t, w)
	for _, c := range []struct {
		path string
		code int
		has  string
	}{
		{"/healthz", 200, "ok"},
		{"/readyz", 503, "another computer than the local provider's"},
		{"/metrics", 200, "outlast_test_total"},
		{"/", 200, "There is no job yet"},
		{"/machines", 200, "No worker has looked yet"},
		{"/workers", 200, "No worker has reported lately"},
		{"/queues/", 200, "<html"},
		{"/queues/api/queues", 200, `"queue":"launch"`},
		{"/queues/api/queues/launch/tasks/launch:7:1", 200, `"launch:7:1"`},
		{"/nothing", 404, "There is no such page"},
		{"/jobs/7", 404, "There is no such job"},
		{"/jobs/x", 404, "There is no such page"},
		{"/jobs/7/explode", 404, "There is no such page"},
		{"/api/v1/jobs", 200, `"jobs": []`},
		{"/api/v1/jobs/7", 404, `"error": "There is no such job."`},
		{"/api/v2", 404, `"error": "there is no such path`},
		{"/assets/style.css", 200, "prefers-color-scheme"},
		{"/assets/nothing.css", 404, ""},
		{"/login", 303, ""},
	} {
		got := get(t, w.Server.URL()+c.path)
		if got.code != c.code || !strings.Contains(got.body, c.has) {
			t.Errorf("%s: %d %.200q, want %d with %q", c.path, got.code, got.body, c.code, c.has)
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(got.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: headers %v", c.path, got.header)
		}
		if inline := strings.Contains(got.header.Get("Content-Security-Policy"), "unsafe-inline"); inline != strings.HasPrefix(c.path, "/queues/") {
			t.Errorf("%s: inline scripts allowed: %v", c.path, inline)
		}
	}
}

// Ensure asynqmon changes nothing and shows no payload (G12).
func TestG12_QueuesAreReadOnlyWithoutPayloads(t *testing.T) {
	w := webtest.New(t, nil)
	queued(t, w)
	at := w.Server.URL() + "/queues/api/queues/launch"
	if got := ask(t, "POST", at+":pause", "", nil); got.code != http.StatusMethodNotAllowed {
		t.Errorf("a queue could be paused: %d", got.code)
	}
	if got := ask(t, "DELETE", at+"/pending_tasks/launch:7:1", "", nil); got.code != http.StatusMethodNotAllowed {
		t.Errorf("a task could be deleted: %d", got.code)
	}
	for _, path := range []string{"/pending_tasks", "/tasks/launch:7:1"} {
		if got := get(t, at+path); got.code != 200 || strings.Contains(got.body, "payload-of-somebody") {
			t.Errorf("%s shows a payload: %d %s", path, got.code, got.body)
		}
	}
}

// Ensure a page elsewhere can neither read ours under its own name nor post to it.
func TestForeignPagesAreRefused(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("train"))
	if got := ask(t, "GET", w.Server.URL()+"/metrics", "", func(r *http.Request) { r.Host = "evil.example" }); got.code != http.StatusForbidden {
		t.Errorf("another name for this computer was answered: %d", got.code)
	}
	for name, change := range map[string]func(*http.Request){
		"another origin": func(r *http.Request) { form(r); r.Header.Set("Origin", "http://evil.example") },
		"another site":   func(r *http.Request) { form(r); r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"no origin":      func(r *http.Request) { form(r); r.Header.Set("Origin", "null") },
	} {
		for _, path := range []string{jobPath(id) + "/cancel", "/api/v1" + jobPath(id) + "/cancel", "/logout"} {
			if got := ask(t, "POST", w.Server.URL()+path, "", change); got.code != http.StatusForbidden {
				t.Errorf("%s: a post from %s was answered: %d", path, name, got.code)
			}
		}
	}
	if done := w.Actions.Done(); len(done) > 0 {
		t.Errorf("was done: %q", done)
	}
}

// Ensure that an address beyond this computer is not served without a token.
func TestListeningBeyondLoopbackNeedsAToken(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if _, err := web.Start(web.Config{Listen: listen}); !errors.Is(err, web.ErrNeedsToken) {
			t.Errorf("%s: everybody would have been served: %v", listen, err)
		}
	}
}

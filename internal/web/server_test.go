package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server in front of a real Redis with one task in it.
func serve(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	db := redistest.Start(t)
	rdb := db.Client(t)
	client := asynq.NewClientFromRedisClient(rdb)
	if _, err := client.Enqueue(asynq.NewTask("launch", []byte("payload-of-somebody")), asynq.Queue("launch"), asynq.TaskID("launch:7:1")); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "outlast_test_total", Help: "One."}))
	cfg := Config{
		Listen: "127.0.0.1:0", Metrics: registry,
		Ready:  func(context.Context) error { return nil },
		Queues: func() redis.UniversalClient { return redis.NewClient(db.Options()) },
	}
	if change != nil {
		change(&cfg)
	}
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

func ask(t *testing.T, method, url string, change func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
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
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// Ensure each page is there, and what is not ready says why.
func TestPages(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Ready = func(context.Context) error { return errors.New("another computer than the local provider's") }
	})
	for _, c := range []struct {
		path string
		code int
		has  string
	}{
		{"/healthz", 200, "ok"},
		{"/readyz", 503, "another computer than the local provider's"},
		{"/metrics", 200, "outlast_test_total"},
		{"/", 303, ""},
		{"/queues/", 200, "<html"},
		{"/queues/api/queues", 200, `"queue":"launch"`},
		{"/queues/api/queues/launch/tasks/launch:7:1", 200, `"launch:7:1"`},
		{"/nothing", 404, ""},
	} {
		code, body, header := ask(t, "GET", s.URL()+c.path, nil)
		if code != c.code || !strings.Contains(body, c.has) {
			t.Errorf("%s: %d %.200q, want %d with %q", c.path, code, body, c.code, c.has)
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: headers %v", c.path, header)
		}
	}
}

// Ensure asynqmon changes nothing and shows no payload (G12).
func TestG12_QueuesAreReadOnlyWithoutPayloads(t *testing.T) {
	s := serve(t, nil)
	if code, _, _ := ask(t, "POST", s.URL()+"/queues/api/queues/launch:pause", nil); code != http.StatusMethodNotAllowed {
		t.Errorf("a queue could be paused: %d", code)
	}
	if code, _, _ := ask(t, "DELETE", s.URL()+"/queues/api/queues/launch/pending_tasks/launch:7:1", nil); code != http.StatusMethodNotAllowed {
		t.Errorf("a task could be deleted: %d", code)
	}
	for _, path := range []string{"/queues/api/queues/launch/pending_tasks", "/queues/api/queues/launch/tasks/launch:7:1"} {
		if code, body, _ := ask(t, "GET", s.URL()+path, nil); code != 200 || strings.Contains(body, "payload-of-somebody") {
			t.Errorf("%s shows a payload: %d %s", path, code, body)
		}
	}
}

// Ensure a page elsewhere can neither read ours under its own name nor post to it.
func TestForeignPagesAreRefused(t *testing.T) {
	s := serve(t, nil)
	if code, _, _ := ask(t, "GET", s.URL()+"/metrics", func(r *http.Request) { r.Host = "evil.example" }); code != http.StatusForbidden {
		t.Errorf("another name for this computer was answered: %d", code)
	}
	if code, _, _ := ask(t, "POST", s.URL()+"/queues/api/queues/launch:pause", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }); code != http.StatusForbidden {
		t.Errorf("a post from elsewhere was answered: %d", code)
	}
}

// Ensure that beyond loopback a token is demanded, and with it everything but /healthz.
func TestToken(t *testing.T) {
	if _, err := Start(Config{Listen: "0.0.0.0:0"}); !errors.Is(err, ErrNeedsToken) {
		t.Errorf("everybody would have been served: %v", err)
	}
	s := serve(t, func(c *Config) { c.Token = "s3cret" })
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, c := range []struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		{"/healthz", nil, 200},
		{"/readyz", nil, 401},
		{"/metrics", bearer("wrong"), 401},
		{"/metrics", bearer("s3cret"), 200},
		{"/queues/", nil, 401},
		{"/queues/", func(r *http.Request) { r.SetBasicAuth("anybody", "s3cret") }, 200},
	} {
		if code, _, _ := ask(t, "GET", s.URL()+c.path, c.change); code != c.code {
			t.Errorf("%s: %d, want %d", c.path, code, c.code)
		}
	}
}

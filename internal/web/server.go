package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
)

// Config is what the server shows.
type Config struct {
	Listen  string // host:port; port 0 takes a free one
	Token   string // demanded of every request but /healthz; may be empty on loopback only
	Ready   func(context.Context) error
	Metrics prometheus.Gatherer
	// Queues makes a connection for asynqmon, which closes it.
	Queues func() redis.UniversalClient
}

// Server is a running HTTP server.
type Server struct {
	http   *http.Server
	mon    *monitor
	addr   net.Addr
	failed chan error
}

// ErrNeedsToken says that an address beyond this computer was to be served to everybody.
var ErrNeedsToken = errors.New("listening beyond this computer needs a token: set http_token (OUTLAST_HTTP_TOKEN), or listen on 127.0.0.1")

// Start listens and serves until Stop.
func Start(cfg Config) (*Server, error) {
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Listen, err)
	}
	if cfg.Token == "" && !loopback(host) {
		return nil, ErrNeedsToken
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Listen, err)
	}
	s := &Server{addr: l.Addr(), mon: newMonitor(cfg.Queues), failed: make(chan error, 1)}
	s.http = &http.Server{Handler: s.handler(cfg), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() { s.failed <- s.http.Serve(l) }()
	return s, nil
}

// URL is where the server can be reached.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// Stop ends the server after what is being answered, at most until ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if served := <-s.failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, s.mon.close())
}

func (s *Server) handler(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := cfg.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // what needs no Redis is wanted most when it is away
	}))
	mux.Handle(queuesPath+"/", s.mon)
	mux.Handle("GET /{$}", http.RedirectHandler(queuesPath+"/", http.StatusSeeOther))
	guarded := http.NewCrossOriginProtection().Handler(headers(mux))
	return authorize(cfg.Token, knownHost(cfg.Token != "", guarded))
}

// headers keep a page of ours from being framed and what untrusted text it shows from being run.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		// asynqmon's page has its configuration in a script of its own
		h.Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// authorize demands the token as a bearer, or as the password of basic authentication so that a browser can give it.
func authorize(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, given, _ = r.BasicAuth()
		}
		if r.URL.Path != "/healthz" && subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="outlast", charset="UTF-8"`)
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost refuses requests without a token for another name than this computer's: a page elsewhere could otherwise
// read ours by pointing its own name at 127.0.0.1.
func knownHost(token bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !token && !loopback(host) {
			http.Error(w, "unknown host", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

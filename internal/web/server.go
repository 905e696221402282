package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/history"
	"github.com/outlast-dev/outlast/internal/store"
)

// Config is what the server shows.
type Config struct {
	Listen  string // host:port; port 0 takes a free one
	Token   string // demanded of every request but those of open paths; may be empty on loopback only
	Ready   func(context.Context) error
	Metrics prometheus.Gatherer
	// Profiles serves what Go tells of the process at /debug/pprof/.
	Profiles bool
	// Queues makes a connection for asynqmon, which closes it.
	Queues func() redis.UniversalClient

	Store   *store.Store
	Archive Archive // nil if it cannot be had
	Actions Actions // what forms do; nil shows none
	Log     zerolog.Logger
}

// Server is a running HTTP server.
type Server struct {
	cfg     Config
	all     history.Jobs // all jobs, also those that have left the store
	http    *http.Server
	mon     *monitor
	gate    *gate
	pages   pages
	addr    net.Addr
	failed  chan error
	streams chan struct{}   // one for each that is open
	closing context.Context //nolint:containedctx // the life of the server: streams end with it
	close   context.CancelFunc
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
	s := &Server{
		cfg: cfg, all: jobsOf(cfg), addr: l.Addr(), mon: newMonitor(cfg.Queues), gate: newGate(cfg.Token), pages: loadPages(),
		failed: make(chan error, 1), streams: make(chan struct{}, maxStreams),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		WriteTimeout: time.Minute, // of what is no stream: those are paced
	}
	s.http.RegisterOnShutdown(s.close)
	go func() {
		defer close(s.failed)
		s.failed <- s.http.Serve(l)
	}()
	return s, nil
}

// URL is where the server can be reached.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// Stop ends streams, and the server after what is being answered, at most until ctx ends. It may be called again.
func (s *Server) Stop(ctx context.Context) error {
	defer s.close()
	err := s.http.Shutdown(ctx)
	if served := <-s.failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, s.mon.close())
}

// handler is who answers which path.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // what needs no Redis is wanted most when it is away
	}))
	if s.cfg.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	mux.Handle("GET "+queuesPath+"/", queuesPolicy(s.mon))
	mux.HandleFunc("GET /assets/", serveAsset)
	mux.HandleFunc("GET /login", s.askLogin)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)

	mux.HandleFunc("GET /{$}", s.page(s.jobs))
	mux.HandleFunc("GET /jobs/{id}", s.page(s.job))
	mux.HandleFunc("GET /jobs/{id}/log", s.page(s.log))
	mux.HandleFunc("GET /jobs/{id}/log/raw", s.page(s.rawLog))
	mux.HandleFunc("GET /jobs/{id}/live", s.page(s.live))
	mux.HandleFunc("GET /jobs/{id}/{action}", s.page(s.askAction))
	mux.HandleFunc("POST /jobs/{id}/{action}", s.page(s.doAction))
	mux.HandleFunc("GET /machines", s.page(s.machines))
	mux.HandleFunc("GET /workers", s.page(s.workers))

	mux.HandleFunc("GET /api/v1/jobs", s.api(s.apiJobs))
	mux.HandleFunc("GET /api/v1/jobs/{id}", s.api(s.apiJob))
	mux.HandleFunc("GET /api/v1/jobs/{id}/logs", s.api(s.apiLogs))
	mux.HandleFunc("POST /api/v1/jobs/{id}/{action}", s.api(s.apiAction))
	mux.HandleFunc("GET /api/", s.api(func(http.ResponseWriter, *http.Request) error { return errNoPage }))

	mux.HandleFunc("GET /", s.page(func(http.ResponseWriter, *http.Request) error { return errNoPage }))
	return headers(bounded(bringWithin, s.gate.guard(knownHost(s.cfg.Token != "", http.NewCrossOriginProtection().Handler(mux)))))
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

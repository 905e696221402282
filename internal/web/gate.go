package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// guessBurst and guessEvery bound the wrong tokens from one address: ten at once, for people who mistype, then one
	// every six seconds, with which even a short token is not found.
	guessBurst = 10
	guessEvery = 6 * time.Second
	// maxGuessers bounds the memory of addresses.
	maxGuessers = 4096
)

// gate lets in who shows the token: a program as a bearer, or as the password of basic authentication; a browser with a
// session.
type gate struct {
	token    [sha256.Size]byte
	needed   bool
	sessions sessions
	now      func() time.Time

	mu      sync.Mutex
	guesses map[netip.Addr]*rate.Limiter // of addresses with wrong tokens
}

func newGate(token string) *gate {
	return &gate{
		token: sha256.Sum256([]byte(token)), needed: token != "", sessions: newSessions(token), now: time.Now,
		guesses: map[netip.Addr]*rate.Limiter{},
	}
}

// visitor is who asks.
type visitor struct {
	Name    string // as they call themselves; "" if they do not
	Session bool   // came with a session, which can be ended
	Program bool   // came with the token itself
}

// by is how the visitor is named in a job's history.
func (v visitor) by() string {
	if v.Name == "" {
		return "web"
	}
	return v.Name + " (web)"
}

type visitorKey struct{}

func visitorOf(ctx context.Context) visitor {
	v, _ := ctx.Value(visitorKey{}).(visitor)
	return v
}

// open reports whether a path is for everybody: what a login page needs, and whether the process lives.
func open(path string) bool {
	return path == "/healthz" || path == "/login" || strings.HasPrefix(path, "/assets/")
}

// guard demands the token, if there is one. A browser that asks for a page is led to the login.
func (g *gate) guard(next http.Handler) http.Handler {
	if !g.needed {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, verdict := g.judge(r)
		switch {
		case verdict == admitted:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
		case open(r.URL.Path):
			next.ServeHTTP(w, r)
		case verdict == tooMany:
			refuseGuess(w)
		case wantsPage(r):
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			if r.Header.Get("Sec-Fetch-Mode") == "" { // a script of ours must not make the browser ask
				w.Header().Set("WWW-Authenticate", `Basic realm="outlast", charset="UTF-8"`)
			}
			http.Error(w, "a token is needed", http.StatusUnauthorized)
		}
	})
}

// verdict is what the gate thinks of a request.
type verdict int

const (
	unknown verdict = iota
	admitted
	tooMany // wrong tokens from there
)

func (g *gate) judge(r *http.Request) (visitor, verdict) {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	name, password, basic := r.BasicAuth()
	switch {
	case bearer:
		return visitor{Program: true}, g.try(r, given)
	case basic:
		return visitor{Name: shortName(name)}, g.try(r, password)
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		if name, ok := g.sessions.read(c.Value, g.now()); ok {
			return visitor{Name: name, Session: true}, admitted
		}
	}
	return visitor{}, unknown
}

// try compares a token with ours, unless too many wrong ones came from the same address.
func (g *gate) try(r *http.Request, given string) verdict {
	limit := g.limiter(r)
	if limit != nil && limit.TokensAt(g.now()) < 1 {
		return tooMany
	}
	sum := sha256.Sum256([]byte(given)) // of one length, whatever was given
	if subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 {
		return admitted
	}
	g.wrong(r)
	return unknown
}

func (g *gate) limiter(r *http.Request) *rate.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guesses[addressOf(r)]
}

// wrong counts a wrong token.
func (g *gate) wrong(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.guesses) >= maxGuessers {
		for addr, l := range g.guesses {
			if l.TokensAt(g.now()) >= guessBurst {
				delete(g.guesses, addr)
			}
		}
		if len(g.guesses) >= maxGuessers { // whoever has so many addresses is not stopped by counting them
			clear(g.guesses)
		}
	}
	addr := addressOf(r)
	if g.guesses[addr] == nil {
		g.guesses[addr] = rate.NewLimiter(rate.Every(guessEvery), guessBurst)
	}
	g.guesses[addr].AllowN(g.now(), 1)
}

// addressOf is whom wrong tokens are counted for: an address, or a network of IPv6, of which one person has many.
func addressOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

func refuseGuess(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "60")
	http.Error(w, "too many wrong tokens from your address: wait a minute", http.StatusTooManyRequests)
}

// wantsPage reports whether a browser asks for a page to show, not a script of it or a program.
func wantsPage(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		return false
	}
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// shortName is a visitor's name as it is kept.
func shortName(name string) string {
	name = strings.TrimSpace(strings.ToValidUTF8(name, ""))
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	return name
}

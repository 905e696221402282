package web

import (
	"net"
	"net/http"
	"strings"
)

// ourPolicy is what a page of ours may load: nothing inline, and nothing from elsewhere.
const ourPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// asynqmonPolicy is what its page needs: it has its configuration in a script of its own.
const asynqmonPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'"

// headers keep a page of ours from being framed, what untrusted text it shows from being run, and what it shows from
// being kept by anybody in between.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "private, no-cache")
		h.Set("Content-Security-Policy", ourPolicy)
		next.ServeHTTP(w, r)
	})
}

func queuesPolicy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", asynqmonPolicy)
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

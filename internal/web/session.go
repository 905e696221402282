package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	sessionCookie = "outlast_session"
	sessionLife   = 12 * time.Hour
	// longestName bounds the name that a visitor may give: it goes into events.
	longestName = 60
)

// sessions makes and reads session cookies. A cookie is its own proof: it carries its end and the visitor's name, signed
// with a key made of the token. So no worker keeps sessions, any worker of the deployment takes them, and another token
// ends them all.
type sessions struct{ key []byte }

func newSessions(token string) sessions {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("outlast session 1"))
	return sessions{mac.Sum(nil)}
}

func (s sessions) sign(payload string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(payload))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// issue returns the value of a cookie that is good until a time.
func (s sessions) issue(name string, until time.Time) string {
	payload := strconv.FormatInt(until.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(name))
	return payload + "." + s.sign(payload)
}

// read returns the visitor's name, and whether the cookie's value is one of ours and still good.
func (s sessions) read(value string, now time.Time) (string, bool) {
	at := strings.LastIndexByte(value, '.')
	if at < 0 || !hmac.Equal([]byte(s.sign(value[:at])), []byte(value[at+1:])) {
		return "", false
	}
	end, encoded, _ := strings.Cut(value[:at], ".")
	until, err := strconv.ParseInt(end, 10, 64)
	if err != nil || now.Unix() >= until {
		return "", false
	}
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(name), err == nil
}

// cookie is the session as a browser keeps it: out of reach of scripts, and never sent along by a page elsewhere.
func (s sessions) cookie(r *http.Request, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r),
	}
}

// secure reports whether the browser came over https, to us or to a proxy before us. A false word of a proxy only
// costs the one who gave it.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

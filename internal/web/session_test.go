package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Ensure that a session is read back whatever the name, until its end, and only with the token it was made with.
func TestSessions(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	rapid.Check(t, func(rt *rapid.T) {
		name := shortName(rapid.String().Draw(rt, "name"))
		s := newSessions("one")
		value := s.issue(name, now.Add(sessionLife))
		if got, ok := s.read(value, now.Add(sessionLife-time.Second)); !ok || got != name {
			rt.Fatalf("%q was read as %q, %v", name, got, ok)
		}
		if _, ok := s.read(value, now.Add(sessionLife)); ok {
			rt.Fatal("it is good after its end")
		}
		if _, ok := newSessions("two").read(value, now); ok {
			rt.Fatal("it is good with another token")
		}
		at := rapid.IntRange(0, len(value)-1).Draw(rt, "at")
		forged := value[:at] + string(rapid.SampledFrom([]byte("0A.-")).Draw(rt, "by")) + value[at+1:]
		if _, ok := s.read(forged, now); ok && forged != value && !sameBits(forged, value) {
			rt.Fatalf("%q was taken for %q", forged, value)
		}
	})
	for _, junk := range []string{"", ".", "..", "x.y.z", "9999999999..", strings.Repeat("a", 5000)} {
		if _, ok := newSessions("one").read(junk, now); ok {
			t.Errorf("%.20q is a session", junk)
		}
	}
}

// sameBits reports whether two values differ only in the last character, whose low bits base64 does not use.
func sameBits(a, b string) bool { return a[:len(a)-1] == b[:len(b)-1] }

// Ensure that the wrong tokens of one address are no burden to others, that waiting helps, and that the memory for
// addresses is bounded.
func TestGate(t *testing.T) {
	g := newGate("right")
	now := time.Unix(1_800_000_000, 0)
	g.now = func() time.Time { return now }
	from := func(addr string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = addr
		return r
	}
	for range guessBurst {
		if v := g.try(from("192.0.2.1:1"), "wrong"); v != unknown {
			t.Fatalf("a wrong token: %v", v)
		}
	}
	for addr, want := range map[string]verdict{
		"192.0.2.1:2": tooMany, "[::ffff:192.0.2.1]:3": tooMany, "192.0.2.2:1": admitted, "[2001:db8::1]:1": admitted,
	} {
		if v := g.try(from(addr), "right"); v != want {
			t.Errorf("the right token from %s: %v, want %v", addr, v, want)
		}
	}
	now = now.Add(guessEvery)
	if v := g.try(from("192.0.2.1:1"), "right"); v != admitted {
		t.Errorf("after a wait: %v", v)
	}
	for range guessBurst {
		g.try(from("[2001:db8::1]:1"), "wrong")
	}
	if v := g.try(from("[2001:db8::2]:1"), "right"); v != tooMany {
		t.Errorf("from the same network: %v", v)
	}
	for i := range 3 * maxGuessers {
		g.try(from(fmt.Sprintf("10.%d.%d.%d:1", i/62500, i/250%250, i%250)), "wrong")
	}
	if len(g.guesses) > maxGuessers {
		t.Errorf("%d addresses are kept", len(g.guesses))
	}
}

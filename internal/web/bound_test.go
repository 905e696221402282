package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// send writes a request without waiting for its end, and returns the answer.
func send(t *testing.T, h http.Handler, method, path, header, body string) (int, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // for a server that waits for ever
		t.Fatal(err)
	}
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n%s", method, path, header, body)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Ensure that nobody, known or not, fills memory or the temporary folder with a request, of whatever kind.
func TestNoRequestBringsMuch(t *testing.T) {
	s := &Server{gate: newGate("token"), pages: loadPages()}
	h := s.handler()
	part := "--x\r\nContent-Disposition: form-data; name=\"next\"; filename=\"f\"\r\n\r\n"
	header := "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000000000"
	for _, method := range []string{"GET", "POST"} {
		code, _ := send(t, h, method, "/login", header, part+strings.Repeat("x", maxForm+1-len(part)))
		if code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s with a file without end: %d", method, code)
		}
	}
}

// Ensure that a request which announces something and does not bring it holds nothing for long.
func TestNoRequestIsWaitedForLong(t *testing.T) {
	h := bounded(50*time.Millisecond, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was handled") }))
	if code, text := send(t, h, "POST", "/login", "Content-Length: 10", "tok"); code != http.StatusRequestTimeout {
		t.Errorf("%d %s", code, text)
	}
}

// Ensure that what was brought in time is there, and that the time is not that of the handler.
func TestABoundedRequestIsWhole(t *testing.T) {
	h := bounded(time.Second, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			t.Error("the request was given up")
		case <-time.After(1500 * time.Millisecond):
		}
		_, _ = io.WriteString(w, r.FormValue("a"))
	}))
	code, text := send(t, h, "POST", "/", "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7", "a=hello")
	if code != http.StatusOK || text != "hello" {
		t.Errorf("%d %q", code, text)
	}
}

// lastDeadline remembers the deadline that was set last.
type lastDeadline struct {
	http.ResponseWriter
	at time.Time
}

func (l *lastDeadline) SetWriteDeadline(at time.Time) error {
	l.at = at
	return nil
}

// Ensure that the end of an answer has time of its own: it may come long after the last piece.
func TestTheEndOfAStreamHasTime(t *testing.T) {
	w := &lastDeadline{ResponseWriter: httptest.NewRecorder()}
	p := &paced{w: w, c: http.NewResponseController(w)}
	if _, err := io.WriteString(p, "a piece"); err != nil {
		t.Fatal(err)
	}
	before := w.at
	w.at = time.Time{}
	p.extend()
	if w.at.Before(before) {
		t.Errorf("the end must be written by %s, the piece before it by %s", w.at, before)
	}
}

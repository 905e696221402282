package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// maxForm bounds what a request may bring: there are forms of a few fields, and nothing else is sent to us.
	maxForm = 16 << 10
	// bringWithin bounds how long it may take to bring it.
	bringWithin = 10 * time.Second
	// writeWithin bounds the writing of an answer, and of each piece of one that goes on.
	writeWithin = 30 * time.Second
)

// bounded reads what a request brings before anything looks at it, in bounded memory and time. Whoever asks need not be
// known yet, and the parsing of forms has no such bounds by itself: of any request, a GET as well, it puts files into the
// temporary folder for as long as they come.
func bounded(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(time.Now().Add(within)) // all our connections can
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
		_ = c.SetReadDeadline(time.Time{}) // else the request would count as given up when the time is over
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, "that is too much for one form", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			w.Header().Set("Connection", "close")
			http.Error(w, "what was announced did not come", http.StatusRequestTimeout)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// paced gives each write a deadline of its own: a reader may be slow, but not for ever.
type paced struct {
	w http.ResponseWriter
	c *http.ResponseController
	n int64
}

func (p *paced) Write(b []byte) (int, error) {
	p.extend()
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

// extend gives what is written next its time. The end of an answer is written, too, maybe long after the piece before it.
func (p *paced) extend() { _ = p.c.SetWriteDeadline(time.Now().Add(writeWithin)) }

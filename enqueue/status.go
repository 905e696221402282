package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/internal/render"
)

// redrawEvery is how often the status line moves.
const redrawEvery = 120 * time.Millisecond

// status is one line at the bottom of a terminal that tells what is going on and for how long. It is drawn over and over
// again, and wiped before anything else is written, so that it never stays behind in what people scroll back to. In a
// pipe, and when results are for programs, there is none. The nil status is none, too.
type status struct {
	out    io.Writer // the terminal
	screen screen
	colour palette
	now    func() time.Time

	mu     sync.Mutex
	text   string // "" draws nothing
	since  time.Time
	frame  int
	drawn  bool
	middle bool // somebody's line is not finished: the cursor is behind it
	quit   chan struct{}
	ticker sync.WaitGroup
}

var (
	unicodeFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	asciiFrames   = []string{"|", "/", "-", `\`}
)

// set says what is going on from now on. It may be said again and again.
func (s *status) set(format string, args ...any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if text == s.text {
		return
	}
	if s.text == "" || text == "" {
		s.since = s.now()
	}
	s.text = text
	if text == "" {
		s.wipe()
		return
	}
	s.draw()
	if s.quit == nil {
		quit := make(chan struct{})
		s.quit = quit
		s.ticker.Go(func() { s.turn(quit) })
	}
}

// turn moves the line until it is told to quit.
func (s *status) turn(quit <-chan struct{}) {
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			s.mu.Lock()
			s.frame++
			s.draw()
			s.mu.Unlock()
		}
	}
}

// close wipes the line for good.
func (s *status) close() {
	if s == nil {
		return
	}
	s.set("")
	s.mu.Lock()
	quit := s.quit
	s.quit = nil
	s.mu.Unlock()
	if quit != nil {
		close(quit)
		s.ticker.Wait()
	}
}

func (s *status) draw() {
	if s.text == "" || s.middle {
		return
	}
	frames := unicodeFrames
	if s.screen.ascii {
		frames = asciiFrames
	}
	line, lasts := frames[s.frame%len(frames)]+" "+s.text, ""
	if d := s.now().Sub(s.since).Truncate(time.Second); d > 0 {
		lasts = " " + render.Duration(d)
	}
	if width := s.screen.width; width > 0 { // the last column stays free: writing there may wrap
		line = render.Cut(line, max(1, width-1-render.Width(lasts)), s.screen.ascii)
	}
	line += lasts
	fmt.Fprint(s.out, "\r\x1b[K"+s.colour.dim(line))
	s.drawn = true
}

func (s *status) wipe() {
	if s.drawn {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.drawn = false
	}
}

// beside returns a writer for the same terminal that the line makes way for.
func (s *status) beside(w io.Writer) io.Writer {
	if s == nil {
		return w
	}
	return besideStatus{s, w}
}

type besideStatus struct {
	status *status
	w      io.Writer
}

func (b besideStatus) Write(p []byte) (int, error) {
	s := b.status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	if len(p) > 0 {
		s.middle = p[len(p)-1] != '\n'
	}
	return b.w.Write(p)
}

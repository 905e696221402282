package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Ensure that the status line tells what is going on and since when, makes way for everything else, waits for the end of
// an unfinished line, and leaves nothing behind.
func TestStatus(t *testing.T) {
	var terminal bytes.Buffer
	clock := time.Unix(1_764_500_000, 0)
	s := &status{out: &terminal, screen: screen{width: 30, ascii: true}, now: func() time.Time { return clock }, quit: make(chan struct{})}
	drawn := func() string {
		defer terminal.Reset()
		return terminal.String()
	}
	const wiped = "\r\x1b[K"
	expect := func(what, want string) {
		t.Helper()
		if got := drawn(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	s.set("packing %s", "src")
	expect("at once", wiped+"| packing src")
	s.set("packing src")
	expect("said again", "")
	clock = clock.Add(3 * time.Second)
	s.set("uploading 34.0 MB")
	expect("another phase", wiped+"| uploading 34.0 MB 3s")
	s.set("%s", strings.Repeat("long ", 20))
	expect("cut to the screen", wiped+"| long long long long lon~ 3s")
	out := s.beside(&terminal)
	_, _ = out.Write([]byte("epoch 1\n"))
	expect("makes way", wiped+"epoch 1\n")
	s.set("waits")
	expect("comes back", wiped+"| waits 3s")
	_, _ = out.Write([]byte("50%"))
	expect("makes way for a part of a line", wiped+"50%")
	s.set("waits longer")
	expect("does not write over it", "")
	_, _ = out.Write([]byte(" done\n"))
	s.set("waits")
	expect("and comes back", " done\n"+wiped+"| waits 3s")
	s.set("")
	expect("nothing is left", wiped)
	s.close()
	expect("nor drawn again", "")
}

// Ensure that where there is no terminal there is no line.
func TestNoStatus(t *testing.T) {
	var pipe bytes.Buffer
	var s *status
	s.set("packing")
	_, _ = s.beside(&pipe).Write([]byte("out"))
	s.close()
	if pipe.String() != "out" {
		t.Errorf("%q", pipe.String())
	}
}

package follow

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/archive"
)

// Ensure that a log of which archive and tail together have every byte is shown byte by byte, whatever the archive has
// already, wherever the tail begins, and however both move on between two looks.
func TestLogStitchesArchiveAndTail(t *testing.T) {
	const size = 400
	whole := []byte(lines(0, 50))[:size]
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		l := &Log{Store: w, Archive: w.files, Key: archive.LogKey{Job: 7, Attempt: 1}}
		var out bytes.Buffer
		kept, end := 0, 0
		for range rapid.IntRange(0, 4).Draw(rt, "looks") {
			end = rapid.IntRange(end, size).Draw(rt, "end")
			next := rapid.IntRange(kept, end).Draw(rt, "kept")
			w.keep(t, 0, 1, int64(kept), string(whole[kept:next]))
			kept = next
			base := rapid.IntRange(0, kept).Draw(rt, "base") // the archive has what the tail has not
			w.tail(0, 1, int64(base), string(whole[base:end]))
			if _, err := l.Live(context.Background(), &Printer{W: &out}); err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), whole[:end]) {
				rt.Fatalf("after a look at %d bytes, %d of them archived, tail from %d:\n%s", end, kept, base, cmp.Diff(string(whole[:end]), out.String()))
			}
		}
		w.keep(t, 0, 1, int64(kept), string(whole[kept:]))
		if err := l.Rest(context.Background(), &Printer{W: &out}); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), whole) {
			rt.Fatalf("at the end:\n%s", cmp.Diff(string(whole), out.String()))
		}
	})
}

// Ensure that a running log waits for the archive to close a hole, and tells of the hole when it lasts.
func TestLogTellsOfAHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &Log{Store: w, Archive: w.files, Key: archive.LogKey{Job: 7, Attempt: 1}}
		var out bytes.Buffer
		printer := &Printer{W: &out}
		look := func() string {
			t.Helper()
			if _, err := l.Live(t.Context(), printer); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		w.tail(0, 1, 0, "one\n")
		look()
		w.tail(0, 1, 8, "three\n")
		if got := look(); got != "one\n" {
			t.Errorf("shown at once:\n%s", got)
		}
		w.keep(t, 0, 1, 0, "one\ntwo\n")
		if got := look(); got != "one\ntwo\nthree\n" {
			t.Errorf("shown when the archive had it:\n%s", got)
		}
		w.tail(0, 1, 20, "five\n")
		look()
		time.Sleep(patience) // fake time
		if got, want := look(), "one\ntwo\nthree\n[outlast: 6 bytes are passed over here, to keep up with the output]\nfive\n"; got != want {
			t.Errorf("shown after waiting (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}

// Ensure that the end of a log shows what is missing for good, once, and goes on behind it.
func TestRestTellsOfHoles(t *testing.T) {
	w := newWorld(t)
	l := &Log{Store: w, Archive: w.files, Key: archive.LogKey{Job: 7, Attempt: 1}}
	w.keep(t, 0, 1, 0, "one\n")
	w.keep(t, 0, 1, 10, "four\n")
	w.tail(0, 1, 18, "six\n")
	var out bytes.Buffer
	printer := &Printer{W: &out}
	for range 2 {
		if err := l.Rest(t.Context(), printer); err != nil {
			t.Fatal(err)
		}
	}
	want := "one\n[outlast: 6 bytes are missing here]\nfour\n[outlast: 3 bytes are missing here]\nsix\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// Ensure that the last lines are those of archive and tail together.
func TestLast(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kept   string
		base   int64
		tail   string
		n      int
		want   string
		offset int64
	}{
		{"of the archive", lines(0, 9), 0, "", 2, lines(7, 9), 63},
		{"of the tail", "", 0, lines(0, 9), 2, lines(7, 9), 63},
		{"over both", lines(0, 5), 28, lines(4, 7), 4, lines(3, 7), 49},
		{"more than there are", lines(0, 2), 7, lines(1, 3), 9, lines(0, 3), 21},
		{"without a line end", "a\nb", 3, "c\nd", 2, "bc\nd", 6},
		{"of nothing", "", 0, "", 5, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			l := &Log{Store: w, Archive: w.files, Key: archive.LogKey{Job: 7, Attempt: 1}}
			w.keep(t, 0, 1, 0, tc.kept)
			if tc.tail != "" {
				w.tail(0, 1, tc.base, tc.tail)
			}
			var out strings.Builder
			if err := l.Last(t.Context(), &Printer{W: &out}, tc.n); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" || l.Offset() != tc.offset {
				t.Errorf("offset %d, want %d; output (-want +got):\n%s", l.Offset(), tc.offset, diff)
			}
		})
	}
}

package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that output becomes text as a terminal would show it, without what acts on one.
func TestPlain(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"one\ntwo\n", "one\ntwo\n"},
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"10%\r20%\r30%\n", "30%\n"},
		{"a\r\nb\r\n", "a\nb\n"},
		{"first\n10%\r20%\x1b[K\nlast", "first\n20%\nlast"},
		{"\x1b]0;title\x07", "^[]0;title^G"},
		{"a\xffb\x00", "a\uFFFDb^@"},
		{"a\u202eb", `a\u202eb`},
		{"unfinished \xe4\xbd", "unfinished \uFFFD\uFFFD"},
	} {
		if got := whole([]byte(c.in)); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

// Ensure that output that comes in pieces becomes the text that it would become at once, but for carriage returns, of which the
// page itself takes care.
func TestPlainInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\x1b[0;1mKé👩\u202e\x07")), 0, 60, -1).Draw(rt, "text"))
		p := newPlain()
		var got strings.Builder
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "n")
			got.WriteString(p.add(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(p.rest())
		if want := whole(text); got.String() != want {
			rt.Fatalf("%q became %q, at once %q", text, got.String(), want)
		}
	})
}

// Ensure that a scanner finds every line with a text, however the output is cut into pieces and however long its lines
// are, and says where each begins.
func TestScanner(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var text []byte
		want := map[int64]bool{}
		for range rapid.IntRange(0, 8).Draw(rt, "lines") {
			at := int64(len(text))
			text = append(text, strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 100, longestLine - 4, longestLine, 3 * longestLine}).Draw(rt, "before"))...)
			if rapid.Bool().Draw(rt, "hit") {
				text = append(text, "Needle"...)
				want[at] = true
			}
			text = append(text, '\n')
		}
		s := &scanner{query: []byte("needle")}
		for at := 0; at < len(text); {
			n := min(len(text)-at, rapid.SampledFrom([]int{1, 7, 1000, 64 << 10}).Draw(rt, "piece"))
			if err := s.Bytes(int64(at), text[at:at+n], nil); err != nil {
				rt.Fatal(err)
			}
			at += n
		}
		s.close()
		if len(s.hits) != len(want) || s.at != int64(len(text)) {
			rt.Fatalf("%d hits, want %d; came to %d of %d", len(s.hits), len(want), s.at, len(text))
		}
		for _, h := range s.hits {
			if line := strings.LastIndexByte(string(text[:h.Offset]), '\n') + 1; !want[int64(line)] || h.Match != "Needle" {
				rt.Fatalf("a hit %q at %d", h.Match, h.Offset)
			}
			if len(h.Before)+len(h.End) > 2*excerpt {
				rt.Fatalf("an excerpt of %d bytes", len(h.Before)+len(h.End))
			}
		}
	})
}

// Ensure that the address of a filter is read back as the same filter, so that links keep what was asked for.
func TestFilterURL(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := filter{
			Live: rapid.Bool().Draw(rt, "live"), User: rapid.String().Draw(rt, "user"), Name: rapid.String().Draw(rt, "name"),
			Since: rapid.SampledFrom([]string{"", "30m", "7d", "2w", "1.5h"}).Draw(rt, "since"), Before: job.ID(rapid.IntRange(0, 1e9).Draw(rt, "before")),
			Limit: rapid.IntRange(0, maxPageSize).Draw(rt, "limit"),
		}
		f.Statuses = rapid.SliceOfDistinct(rapid.SampledFrom(job.Statuses), func(s job.Status) job.Status { return s }).Draw(rt, "statuses")
		u, err := url.Parse(f.URL())
		if err != nil {
			rt.Fatal(err)
		}
		got, err := parseFilter(u.RawQuery)
		if err != nil || got.URL() != f.URL() {
			rt.Fatalf("%s is read as %s, %v", f.URL(), got.URL(), err)
		}
		s := rapid.SampledFrom(job.Statuses).Draw(rt, "status")
		if twice := f.toggled(s).toggled(s); len(twice.Statuses) != len(f.Statuses) {
			rt.Fatalf("taken twice, %s changes %v to %v", s, f.Statuses, twice.Statuses)
		}
	})
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "7d": 7 * 24 * time.Hour, "0.5w": 84 * time.Hour, "9999999w": longestAge} {
		if got, err := parseAge(text); got != want || err != nil {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, bad := range []string{"d", "-1d", "0s", "NaNd", "Infw", "1y", "<b>"} {
		if got, err := parseAge(bad); err == nil {
			t.Errorf("%s is %s", bad, got)
		}
	}
}

// Ensure that a picture stays within its frame and draws each attempt, many of them folded.
func TestPicture(t *testing.T) {
	start := job.TimeOf(time.Unix(1_800_000_000, 0))
	at := func(s int) account.Time { return account.Time(start.Add(time.Duration(s) * time.Second)) }
	h := account.History{Job: account.Job{SubmittedAt: at(0), Tasks: []account.Task{{Status: job.Running}}}}
	for i := range 100 {
		h.Attempts = append(h.Attempts, account.Attempt{
			Number: i + 1, Phase: job.PhaseGone, Intent: at(10 * i), Created: at(10*i + 1), Started: at(10*i + 2), Ended: at(10*i + 8), Gone: at(10*i + 9),
			Why: &job.Cause{Code: job.CodePreempted, Text: "taken"},
		})
	}
	h.Attempts = append(h.Attempts, account.Attempt{Number: 101, Phase: job.PhaseStarted, Intent: at(1000), Created: at(1001), Started: at(1002)})
	p := pictureOf(account.TimelineOf(h, job.Time(at(1100))), false)
	if len(p.Bars) > mostBars || p.Bars[0].Label != "try 1" || p.Bars[len(p.Bars)-1].Label != "try 101" || !p.Bars[0].Lost || p.Bars[len(p.Bars)-1].Fate != "goes on" {
		t.Errorf("%d bars from %+v to %+v", len(p.Bars), p.Bars[0], p.Bars[len(p.Bars)-1])
	}
	for _, b := range p.Bars {
		for _, part := range b.Parts {
			var x, w float64
			fmt.Sscan(part.X, &x)
			fmt.Sscan(part.W, &w)
			if x < 0 || w < thinnest || x+w > pictureWidth+0.02 {
				t.Errorf("%s: %s from %v wide %v", b.Label, part.Kind, x, w)
			}
		}
	}
}

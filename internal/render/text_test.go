package render_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/render"
)

// Ensure that words are shown as they are unless they would act on a terminal.
func TestText(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"train", "train"},
		{"größe 你好 👩", "größe 你好 👩"},
		{"a\nb\tc", `a\nb\tc`},
		{"\x1b[31mred\x07", `\x1b[31mred\a`},
		{"\u009b31m", `\u009b31m`},
		{"abc\u202edef", `abc\u202edef`},
		{"\xff\xfe", `\xff\xfe`},
		{"", ""},
	} {
		if got := render.Text(tc.in); got != tc.want {
			t.Errorf("Text(%q) is %q, want %q", tc.in, got, tc.want)
		}
	}
}

// Ensure that no text whatever keeps a control character or a line end.
func TestTextIsHarmless(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text")
		got := render.Text(in)
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			rt.Fatalf("Text(%q) is %q", in, got)
		}
	})
}

// Ensure that durations and ages read well at their edges.
func TestDurations(t *testing.T) {
	for _, tc := range []struct {
		d             time.Duration
		duration, ago string
	}{
		{-time.Second, "0s", "just now"},
		{0, "0s", "just now"},
		{850 * time.Millisecond, "850ms", "just now"},
		{59 * time.Second, "59s", "59s ago"},
		{time.Minute, "1m", "1m ago"},
		{200 * time.Second, "3m 20s", "3m ago"},
		{125 * time.Minute, "2h 5m", "2h ago"},
		{47 * time.Hour, "1d 23h", "47h ago"},
		{76 * time.Hour, "3d 4h", "3d ago"},
	} {
		if d, ago := render.Duration(tc.d), render.Ago(tc.d); d != tc.duration || ago != tc.ago {
			t.Errorf("%d ns is %q, %q; want %q, %q", tc.d, d, ago, tc.duration, tc.ago)
		}
	}
}

// Ensure that sizes read well at their edges.
func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9999: "10 kB", 999_499: "999 kB", 999_999: "1.0 MB", 48_200_000: "48 MB", 5_000_000_000: "5.0 GB",
		1 << 60: "1152922 TB",
	} {
		if got := render.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

package config

import (
	"testing"

	"pgregory.net/rapid"
)

// Ensure that amounts are read as people write them, and anything else is refused.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "512": 512, "256MiB": 256 * MiB, "1.5 GB": 1_500_000_000, "10g": 10 * GiB, "1TiB": TiB, " 64kib ": 64 * KiB,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1e9", "many", "1 XB", "1.GB", "999999999TiB", "0x10"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// Ensure that what is shown of an amount means the same amount.
func TestBytesAreShownExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, 1<<52).Draw(t, "bytes"))
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Errorf("%d is shown as %s, which is %d, %v", b, b, got, err)
		}
	})
}

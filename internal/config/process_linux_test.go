package config

import (
	"errors"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	rest := " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"
	for _, c := range []struct {
		name, stat string
		want       uint64
		gone, ok   bool
	}{
		{"running", "5 (worker) S" + rest, 4711, false, true},
		{"a name made to confuse", "5 (x) Z 1 (y) R" + rest, 4711, false, true},
		{"zombie", "5 (worker) Z" + rest, 0, true, false},
		{"cut off", "5 (worker) S 1", 0, false, false},
		{"no number", "5 (worker) S" + strings.Replace(rest, "4711", "x", 1), 0, false, false},
	} {
		got, err := parseStat([]byte(c.stat))
		if (err == nil) != c.ok || errors.Is(err, errNoProcess) != c.gone || c.ok && got != c.want {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
	}
}

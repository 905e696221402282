package redisproc

import (
	"slices"
	"testing"
)

// Ensure that the server's environment has none of our settings: they may hold keys and tokens (G12).
func TestG12_ServerGetsNoSettings(t *testing.T) {
	got := environment([]string{"PATH=/bin", "OUTLAST_IDENTITY_KEY=secret", "OUTLAST_HTTP_TOKEN=secret", "LANG=C"})
	if !slices.Equal(got, []string{"PATH=/bin", "LANG=C"}) {
		t.Errorf("the environment is %q", got)
	}
}

//go:build planted

package linear_test

import (
	"os"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/outlast-dev/outlast/internal/planted"
)

// Ensure that a commit that looks at no fence is found.
func TestG2_PlantedBugIsFound(t *testing.T) {
	if os.Getenv("OUTLAST_PLANT") != string(planted.G2) {
		t.Skip("run it with OUTLAST_PLANT=G2")
	}
	if result, _, ops := attack(t); result != porcupine.Illegal {
		t.Errorf("G2 is planted, and nothing was found in %d calls: %s", len(ops), result)
	}
}

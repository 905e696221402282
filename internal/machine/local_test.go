package machine_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/machine/shelltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// This computer is a node like any other.
func TestLocalShell(t *testing.T) {
	t.Parallel()
	shelltest.Run(t, func(*testing.T) machine.Shell { return machine.LocalShell{} })
}

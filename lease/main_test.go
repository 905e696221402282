package lease

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the driver that is frozen, as a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sleeperArg {
		os.Exit(sleeperMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

package devredis

import (
	"context"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// roleVariable makes the test binary act as a worker that a test can kill; see TestServerEndsWithItsWorker.
const roleVariable = "DEVREDIS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleVariable); dir != "" {
		actAsWorker(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// actAsWorker starts a server, says where it is, and waits to be killed.
func actAsWorker(dir string) {
	s, err := Start(context.Background(), dir, zerolog.Nop())
	if err != nil {
		_, _ = os.Stdout.WriteString("error: " + err.Error() + "\n")
		return
	}
	_, _ = os.Stdout.WriteString(s.Options().Addr + "\n")
	<-s.Done()
}

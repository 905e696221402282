package tasks_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud/local"
)

// The test binary is also the machines, the agents on them, and the workers, each a process of its own that can be
// killed and frozen like the real ones.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "machine":
			os.Exit(local.MachineMain(os.Args[2:]))
		case "agent":
			os.Exit(agent.Program{Self: []string{self, "agent"}}.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "worker":
			var cfg workerConfig
			if err := json.Unmarshal([]byte(os.Args[2]), &cfg); err != nil {
				panic(err)
			}
			os.Exit(workerMain(cfg))
		}
	}
	os.Exit(m.Run())
}

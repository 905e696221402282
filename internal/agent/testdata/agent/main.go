// Command agent is the agent alone, as the tests start it.
package main

import (
	"os"

	"github.com/outlast-dev/outlast/internal/agent"
)

func main() {
	p := agent.Program{Self: []string{"/proc/self/exe"}}
	os.Exit(p.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Command worker drives jobs. Any number of workers may serve one deployment, and any of them may die.
//
//	worker run   one of a fleet, on a Redis that is there
//	worker dev   everything in one process, Redis included, for a laptop
//	worker identity   the key that opens the secrets of jobs
//
// The same binary is what runs on the machines of the local provider: "worker machine" is the machine itself and "worker
// agent" the agent on it. Both are called by workers, not by people.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud/local"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/version"
)

// self is how this binary starts itself, also after its file was replaced.
const self = "/proc/self/exe"

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(agent.Program{Self: []string{self, "agent"}}.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "machine":
			os.Exit(local.MachineMain(os.Args[2:]))
		}
	}
	os.Exit(people())
}

// people runs a command that a person, or a service manager, has given. It returns the exit code.
func people() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 2
	default:
		fmt.Fprintln(os.Stderr, "worker:", err)
		if trouble, ok := store.TroubleOf(err); ok {
			fmt.Fprintln(os.Stderr, "hint:  ", trouble.Advice)
		}
		return 1
	}
}

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "worker",
		Short:         "Drive jobs that outlast their machines",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{
			HiddenDefaultCmd: true,
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(runCommand(), devCommand(), identityCommand())
	return root
}

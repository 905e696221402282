// Command enqueue hands jobs to an Outlast deployment and tells how they fare.
//
// It talks to Redis and to the archive and to nothing else: no provider, no machine, no worker. Results go to standard
// output, everything else to standard error, so that the output of `enqueue launch` and `enqueue logs` is exactly that
// of the user's code. With -o json results and errors are JSON.
package main

//go:generate go test -run ^TestReference$ -update .

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/store"
)

// Exit codes. Those of launch, logs and wait tell how the job fared (SkyPilot: exceptions.py, JobExitCode).
const (
	exitSucceeded   = 0
	exitError       = 1
	exitUsage       = 2
	exitFailed      = 100
	exitNotFinished = 101
	exitNotFound    = 102
	exitCancelled   = 103
	exitInterrupted = 130
)

// quiet keeps go-redis from writing to standard error by itself: what fails is told once, by us.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(quiet{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second interrupt ends the program at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	a := newApp(in, out, errs)
	root := newRoot(a)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !a.prepared { // the line was wrong before anything ran
		a.flags.output = formOf(args)
		_ = a.prepare()
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		usage.command = command.CommandPath()
	}
	err = errors.Join(err, a.close())
	if err != nil {
		a.report(err)
	}
	return exitCode(err)
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var outcome *outcomeError
	var usage *usageError
	switch {
	case err == nil:
		return exitSucceeded
	case errors.As(err, &outcome):
		return outcome.code
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), isInvalidJob(err), isUnservable(err):
		return exitUsage
	case errors.Is(err, store.ErrNotFound):
		return exitNotFound
	default:
		return exitError
	}
}

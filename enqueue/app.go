package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/outlast-dev/outlast/internal/render"
)

// app is what the commands share: the streams, the global flags, and the deployment once it is open.
type app struct {
	in        io.Reader
	out, errs io.Writer
	onOut     palette // for standard output
	onErrs    palette // for standard error
	terminal  bool    // standard output is one
	screen    screen  // what standard output can show
	status    *status // on standard error, if that is a terminal

	settings *pflag.FlagSet // the global flags, for config.Load
	flags    struct {
		output  string
		noColor bool
	}
	prepared bool
	closers  []func() error
}

func newApp(in io.Reader, out, errs io.Writer) *app {
	return &app{in: in, out: out, errs: errs, terminal: isTerminal(out)}
}

// prepare checks the global flags and looks at the streams, before any command runs.
func (a *app) prepare() error {
	a.prepared = true
	a.screen = screenOf(a.out, os.LookupEnv)
	a.onOut = palette{on: colours(a.terminal, a.flags.noColor, os.LookupEnv)}
	a.onErrs = palette{on: colours(isTerminal(a.errs), a.flags.noColor, os.LookupEnv)}
	err := a.checkFormat()
	if isTerminal(a.errs) && !a.structured() && os.Getenv("TERM") != "dumb" {
		a.status = &status{out: a.errs, screen: screenOf(a.errs, os.LookupEnv), colour: a.onErrs, now: time.Now}
		a.errs = a.status.beside(a.errs)
	}
	return err
}

// say writes a remark for people, which is no result. Whatever others wrote into it does nothing to a terminal.
func (a *app) say(format string, args ...any) {
	if a.structured() {
		return
	}
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = render.Text(line)
	}
	fmt.Fprintln(a.errs, a.onErrs.dim(strings.Join(lines, "\n")))
}

// table writes rows as wide as standard output is.
func (a *app) table(columns []render.Column, rows [][]string) error {
	return render.Table{Columns: columns, Rows: rows, Width: a.screen.width, ASCII: a.screen.ascii}.Write(a.out)
}

func (a *app) close() error {
	a.status.close()
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}

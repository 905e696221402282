package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// app is what the commands share: the streams, the global flags, and the deployment once it is open.
type app struct {
	in        io.Reader
	out, errs io.Writer
	onOut     palette // for standard output
	onErrs    palette // for standard error
	terminal  bool    // standard output is one

	settings *pflag.FlagSet // the global flags, for config.Load
	flags    struct {
		output  string
		noColor bool
	}
	closers []func() error
}

func newApp(in io.Reader, out, errs io.Writer) *app {
	return &app{in: in, out: out, errs: errs, terminal: isTerminal(out)}
}

// prepare checks the global flags, before any command runs.
func (a *app) prepare() error {
	switch a.flags.output {
	case "table", "json":
	default:
		output := a.flags.output
		a.flags.output = "table"
		return usagef("-o %q: it must be table or json", output)
	}
	plain := a.flags.noColor || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	a.onOut = palette{on: !plain && a.terminal}
	a.onErrs = palette{on: !plain && isTerminal(a.errs)}
	return nil
}

// json reports whether results and errors are for programs.
func (a *app) json() bool { return a.flags.output == "json" }

// printJSON writes a result for programs, on one line.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say writes a remark for people, which is no result.
func (a *app) say(format string, args ...any) {
	if !a.json() {
		fmt.Fprintln(a.errs, a.onErrs.dim(fmt.Sprintf(format, args...)))
	}
}

func (a *app) close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

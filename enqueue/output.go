package main

import (
	"io"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/render"
)

// The forms of results.
const (
	formTable = "table" // for people
	formWide  = "wide"  // the same with all there is to tell, and times as dates
	formJSON  = "json"  // for programs, on one line
	formYAML  = "yaml"  // the same shape
)

var forms = []string{formTable, formWide, formJSON, formYAML}

// checkFormat refuses a form that there is not.
func (a *app) checkFormat() error {
	given := a.flags.output
	if slices.Contains(forms, given) {
		return nil
	}
	a.flags.output = formTable // of the error
	meant := ""
	if near := didyoumean.Nearest(given, forms); near != "" {
		meant = " (did you mean " + near + "?)"
	}
	return usagef("-o %q: it must be %s or %s%s", given, strings.Join(forms[:3], ", "), forms[3], meant)
}

// structured reports whether results and errors are for programs.
func (a *app) structured() bool { return a.flags.output == formJSON || a.flags.output == formYAML }

// wide reports whether tables tell all there is.
func (a *app) wide() bool { return a.flags.output == formWide }

// print writes a result: its shape for programs, or what table writes for people. It is the one place where results
// take their form.
func (a *app) print(shape any, table func() error) error {
	if a.structured() {
		return a.encode(a.out, shape)
	}
	return table()
}

// encode writes a shape for programs.
func (a *app) encode(w io.Writer, shape any) error {
	if a.flags.output == formYAML {
		return render.YAML(w, shape)
	}
	return render.JSON(w, shape)
}

// formOf finds the form that a command line asks for which could not be parsed as a whole: its error takes that form, too.
func formOf(args []string) string {
	form := formTable
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value := ""
		switch {
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, "--output="):
			value = strings.TrimPrefix(arg, "--output=")
		case strings.HasPrefix(arg, "-o"):
			value = strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")
		}
		if slices.Contains(forms, value) {
			form = value
		}
	}
	return form
}

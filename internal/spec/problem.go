package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxProblems bounds a report: nobody reads further, and a hostile file must not fill a terminal.
const maxProblems = 100

// Problem is one thing that is wrong with a job file or with an option of the command line.
type Problem struct {
	File   string // as given to Parse; "" for an option
	Line   int    // from 1; 0 for an option, and for the file as a whole
	Column int
	Field  string // path such as resources.any_of[0].cpus, "" for the file as a whole
	What   string // what is wrong
	Want   string // what would be right, "" if that is clear
	Frame  string // the line with a mark below the place, for people; "" if there is nothing to show
}

// String returns file:line:column: field: what is wrong (what would be right), fit for a terminal.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(visible(p.File) + ":")
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
		}
		b.WriteByte(' ')
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.What)
	if p.Want != "" {
		b.WriteString(" (" + p.Want + ")")
	}
	return b.String()
}

// Errors is everything that is wrong with a job, in the order of the file. It is never empty.
type Errors []Problem

// Error lists the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// position is a place in the file; the zero position is the file as a whole. What a flag says has no place in it.
type position struct {
	line, column int
	flag         string
}

// report collects problems while a file is read.
type report struct {
	file     string
	problems Errors
	more     int      // problems beyond maxProblems
	lines    []string // of the file, to show them
	public   []string // what of each may be shown
	hide     []string // values that no line may show
}

// add notes a problem at a place of the file.
func (r *report) add(at position, field, what, want string) {
	if at.flag != "" {
		r.option(at.flag, what, want)
		return
	}
	r.append(Problem{File: r.file, Line: at.line, Column: at.column, Field: field, What: what, Want: want})
}

// option notes a problem with an option of the command line.
func (r *report) option(flag, what, want string) {
	r.append(Problem{Field: flag, What: what, Want: want})
}

func (r *report) append(p Problem) {
	if len(r.problems) >= maxProblems {
		r.more++
		return
	}
	// A faulty part that is used twice, through an alias or by two tasks, is one problem.
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// err returns the problems in the order of the file, or nil.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	out := slices.Clone(r.problems)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for i := range out {
		out[i].Frame = r.frame(out[i])
		out[i].What = r.hidden(out[i].What)
	}
	if r.more > 0 {
		out = append(out, Problem{File: r.file, What: fmt.Sprintf("and %d more problems", r.more)})
	}
	return out
}

// hidden returns what is wrong without the values that must not be shown: an alias brings them anywhere. Only what is in
// quotes comes from the file.
func (r *report) hidden(what string) string {
	before, rest, _ := strings.Cut(what, `"`)
	i := strings.LastIndex(rest, `"`)
	if i < 0 {
		return what
	}
	inside, after := rest[:i], rest[i:]
	for _, value := range r.hide {
		value = strings.Trim(quote(value), `".`)
		inside = strings.ReplaceAll(inside, value, "***")
	}
	return before + `"` + inside + after
}

// quote returns s in quotes, short and without anything that acts on a terminal.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return strconv.Quote(s)
}

// visible returns s as it is if it is harmless on a terminal, else in quotes.
func visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || s == "" {
		return strconv.Quote(s)
	}
	return s
}

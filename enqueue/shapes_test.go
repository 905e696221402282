package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/job"
)

// shapes are the results for programs, with how the reference begins to tell each.
var shapes = []struct {
	name  string
	begin string // in docs/reference.md
	value any
}{
	{"job", "* *job*:", account.Job{}},
	{"show", "| `show`", struct {
		Cost     float64 `json:"cost"`
		Attempts int     `json:"attempts"`
		Events   int     `json:"events"`
	}{}}, // beside those of a job
	{"task", "* *task*:", account.Task{}},
	{"cause", "* *cause*:", job.Cause{}},
	{"attempt", "* *attempt*:", account.Attempt{}},
	{"offer", "* *attempt*:", job.Offer{}},
	{"exit", "* *attempt*:", job.Exit{}},
	{"event", "* *event*:", account.Event{}},
	{"machine", "* *machine*:", machine{}},
	{"worker", "| `workers`", workerAccount{}},
	{"page", "| `dashboard`", page{}},
	{"setting", "| `config view`", config.Value{}},
	{"version", "| `version` | `{", versionInfo{}},
	{"waited", "| `wait`", waited{}},
	{"preempted", "| `preempt`", preempted{}},
	{"failure", "| any error", failure{}},
	{"problem", "* *problem*", problem{}},
}

// Ensure that no field of a result for programs is taken away, renamed, or added without a word in the reference.
func TestShapes(t *testing.T) {
	reference, err := os.ReadFile("../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(reference), "### JSON")
	var all strings.Builder
	for _, s := range shapes {
		fields := fieldsOf(reflect.TypeOf(s.value))
		fmt.Fprintf(&all, "%s: %s\n", s.name, strings.Join(fields, ", "))
		_, told, found := strings.Cut(part, s.begin)
		if !found {
			t.Errorf("docs/reference.md does not tell the shape of %s (%s)", s.name, s.begin)
			continue
		}
		if end := regexp.MustCompile(`\n(\* |\||\n)`).FindStringIndex(told); end != nil {
			told = told[:end[0]]
		}
		for _, f := range fields {
			if !regexp.MustCompile("(^|[^a-z_])" + regexp.QuoteMeta(f) + "([^a-z_?]|$)").MatchString(told) {
				t.Errorf("docs/reference.md does not name the field %s of %s", f, s.name)
			}
		}
	}
	golden(t, "shapes.txt", all.String())
}

// fieldsOf lists the fields of a type as JSON names them, with a mark at those that may be left out.
func fieldsOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && tag == "":
			out = append(out, fieldsOf(f.Type)...)
		case name == "-" || !f.IsExported():
		case strings.Contains(options, "omit"):
			out = append(out, name+"?")
		default:
			out = append(out, name)
		}
	}
	return out
}

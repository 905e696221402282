package spec

import (
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/didyoumean"
)

// fieldInfo is all that is known of one field of a job file. What is accepted, what is suggested for a slip, the JSON
// Schema ([Schema]) and the reference ([Reference]) come from it, so that they cannot differ.
type fieldInfo struct {
	name    string
	form    string // what may be written, for people
	schema  schema // what may be written, for editors
	unset   string // what holds if it is not written
	means   string // for people
	example string // as after the name and a colon
	by      string // who honours it
	kind    fieldKind
	instead string // of a refused field, or one in the wrong place: what to do
}

// fieldKind says where a field comes from, and what becomes of it.
type fieldKind int

const (
	known     fieldKind = iota // from SkyPilot, and served
	extension                  // an extension of Outlast
	older                      // an older spelling that SkyPilot still takes, and so do we
	refused                    // from SkyPilot, and not served
)

// section lists the fields of one kind of mapping, in the order of the reference.
type section struct {
	title  string // of its table in the reference
	intro  string
	fields []fieldInfo
}

// find returns the field with that name.
func (s *section) find(name string) (fieldInfo, bool) {
	i := slices.IndexFunc(s.fields, func(f fieldInfo) bool { return f.name == name })
	if i < 0 {
		return fieldInfo{}, false
	}
	return s.fields[i], true
}

// served returns the names of the fields that may be written.
func (s *section) served() []string {
	var names []string
	for _, f := range s.fields {
		if f.kind != refused {
			names = append(names, f.name)
		}
	}
	return names
}

// pick returns the fields with these names.
func (s *section) pick(names ...string) []fieldInfo {
	var out []fieldInfo
	for _, name := range names {
		if f, ok := s.find(name); ok {
			out = append(out, f)
		}
	}
	return out
}

// secretive are the fields whose values are never shown.
var secretive = []string{"envs", "secrets"}

// checkFields reports the fields of n that may not be written there.
func (r *report) checkFields(n *node, path string, s *section) {
	for _, f := range n.fields {
		info, ok := s.find(f.name)
		switch {
		case !ok:
			if didyoumean.Nearest(f.name, secretive) != "" { // whoever mistypes the key writes the values below it
				r.hideValue(f.value)
			}
			r.add(f.at, join(path, f.name), "is not a field of a job file", suggestion(f.name, s))
		case info.kind == refused && f.value.kind != kindNull:
			r.add(f.at, join(path, f.name), "is known but not supported", info.instead)
		}
	}
}

// suggestion says what the writer of an unknown field may have meant.
func suggestion(name string, here *section) string {
	if near := didyoumean.Nearest(name, here.served()); near != "" {
		return "did you mean " + near + "?"
	}
	for _, elsewhere := range []struct {
		section *section
		where   string
	}{
		{taskSection, "at the top of the task"},
		{resourcesSection, "under resources"},
		{recoverySection, "under resources.job_recovery"},
	} {
		f, ok := elsewhere.section.find(name)
		switch {
		case ok && f.kind == refused:
			return "SkyPilot knows it " + elsewhere.where + ", but it is not supported: " + f.instead
		case ok:
			return "it belongs " + elsewhere.where
		}
	}
	names := here.served()
	slices.Sort(names)
	return "fields here are " + strings.Join(names, ", ")
}

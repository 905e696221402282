package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxVariable is the longest NAME=value that Linux hands to a program (MAX_ARG_STRLEN, 128 KiB with the final NUL).
const maxVariable = 128<<10 - 1

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variables reads envs or secrets, and puts what the command line gave with flag over them. A null value is required
// to be given there. Values are taken as written and never shown.
func (d *decoder) variables(f field, given map[string]string, flag string) map[string]string {
	out := make(map[string]string)
	if f.value != nil {
		d.hideValue(f.value)
		if f.value.kind != kindMapping {
			d.add(f.value.at, f.name, "is "+f.value.kind.String(), "it must be a mapping of names to values")
		}
		for _, v := range f.value.fields {
			d.variable(v, f.name, given, flag, out)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		d.hideText(given[name])
		if what := badVariable(name, given[name]); what != "" {
			d.option(flag+" "+visible(name), what, "")
			continue
		}
		out[name] = given[name]
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// minHidden is the length from which a value is looked for in every line that is shown. A shorter one is part of too
// many words, and masked where it stands.
const minHidden = 4

// hideValue keeps the lines of a value out of what is shown, wherever they stand in the file.
func (r *report) hideValue(n *node) {
	r.hideText(n.text)
	for _, item := range n.items {
		r.hideValue(item)
	}
	for _, f := range n.fields {
		r.hideValue(f.value)
	}
}

func (r *report) hideText(s string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); len(line) >= minHidden && len(r.hide) < maxNodes {
			r.hide = append(r.hide, line)
		}
	}
}

// variable reads one entry of envs or secrets into out.
func (d *decoder) variable(v field, section string, given map[string]string, flag string, out map[string]string) {
	path := join(section, v.name)
	_, overridden := given[v.name]
	switch {
	case v.value.kind == kindNull && overridden:
	case v.value.kind == kindNull:
		d.add(v.at, path, "has no value", fmt.Sprintf("give one with %s %s=...", flag, visible(v.name)))
	case v.value.kind >= kindMapping:
		d.add(v.value.at, path, "is "+v.value.kind.String(), "it must be text, a number or a boolean")
	default:
		if what := badVariable(v.name, v.value.text); what != "" {
			d.add(v.at, path, what, "")
			return
		}
		out[v.name] = v.value.text
		return
	}
	if what := badVariable(v.name, ""); what != "" {
		d.add(v.at, path, what, "")
	}
}

// badVariable says what keeps a variable out of an environment, or "". It does not show the value.
func badVariable(name, value string) string {
	switch {
	case !variableName.MatchString(name):
		return "is not the name of a variable: letters, digits and _ only, not starting with a digit"
	case Reserved(name):
		return "is set by Outlast itself for every task"
	case strings.ContainsRune(value, 0):
		return "has a value with a NUL character, which no program can be given"
	case !utf8.ValidString(value):
		return "has a value that is not UTF-8 text"
	case len(name)+1+len(value) > maxVariable:
		return fmt.Sprintf("has a value longer than an environment variable may be, %d bytes with its name", maxVariable)
	}
	return ""
}

// secretNames returns the names of the secrets in order. One that is also an env would be stored in clear.
func (d *decoder) secretNames(n *node, envs, secrets map[string]string) []string {
	for _, f := range n.get("secrets").children() {
		d.secrets[f.name] = true // also one that has no value yet, which is said already
	}
	names := slices.Sorted(maps.Keys(secrets))
	for _, name := range names {
		d.secrets[name] = true
		if _, both := envs[name]; both {
			at := n.at
			if s := n.get("secrets"); s != nil {
				at = s.at
			}
			d.add(at, join("secrets", name), "is also among envs", "keep it in one of the two, and give it with the option of that one")
		}
	}
	return names
}

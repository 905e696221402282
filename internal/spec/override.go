package spec

import (
	"slices"
	"strings"
)

// Override is what a flag of the command line says about one field of every task. It is checked as the field is, and
// what is wrong with it is said of the flag.
type Override struct {
	Flag   string   // as it was written, for errors: "--cpus"
	Field  string   // where its value goes: "resources.cpus", "num_nodes"
	Values []string // as after the field in a file; several make a list. The word none alone takes the field out
}

// none takes a field out of the file, as SkyPilot's flags do.
const none = "none"

// replaces lists the older spellings that a field must not stand beside.
var replaces = map[string][]string{
	"infra":        {"cloud", "region", "zone"},
	"job_recovery": {"spot_recovery"},
	"accelerators": {"gpus"},
}

// override returns the task with what the command line says put over it. A field of resources also goes over the
// entries of any_of and ordered, as in SkyPilot: a flag is the last word.
func (d *decoder) override(task *node) *node {
	for _, o := range d.opt.Overrides {
		value := flagNode(o)
		field, under := strings.CutPrefix(o.Field, "resources.")
		if !under {
			task = task.with(o.Field, value)
			continue
		}
		resources := task.get("resources")
		switch {
		case resources == nil:
			resources = &node{kind: kindMapping, at: value.at}
		case resources.kind != kindMapping:
			continue // which is a problem of its own
		}
		for _, old := range replaces[field] {
			resources = resources.without(old)
		}
		resources = resources.with(field, value)
		for _, choices := range []string{"any_of", "ordered"} {
			if list := resources.get(choices); list != nil {
				resources = resources.with(choices, list.eachWithout(append([]string{field}, replaces[field]...)))
			}
		}
		task = task.with("resources", resources)
	}
	return task
}

// flagNode is the value of an override as if it stood in a file.
func flagNode(o Override) *node {
	at := position{flag: o.Flag}
	if len(o.Values) == 1 {
		return flagScalar(o.Values[0], at)
	}
	list := &node{kind: kindList, at: at, size: 1}
	for _, v := range o.Values {
		list.items = append(list.items, flagScalar(v, at))
		list.size++
	}
	return list
}

// flagScalar takes a word of the command line for what it would be in a file.
func flagScalar(text string, at position) *node {
	n := &node{kind: kindText, at: at, text: text, size: 1}
	switch text {
	case none:
		n.kind = kindNull
	case "true", "false":
		n.kind = kindBool
	default:
		if i, ok := wholeNumber(text); ok {
			n.kind, n.integer = kindInteger, i
		}
	}
	return n
}

// with returns the mapping n with name set to value. Nodes are shared by aliases, so n itself is left alone.
func (n *node) with(name string, value *node) *node {
	out := n.without(name)
	out.fields = append(out.fields, field{name, value.at, value})
	return out
}

// without returns the mapping n without the field.
func (n *node) without(name string) *node {
	out := *n
	out.fields = slices.DeleteFunc(slices.Clone(n.fields), func(f field) bool { return f.name == name })
	return &out
}

// eachWithout returns the list n with its mappings without the fields.
func (n *node) eachWithout(names []string) *node {
	out := *n
	out.items = slices.Clone(n.items)
	for i, item := range out.items {
		for _, name := range names {
			if item.kind == kindMapping {
				item = item.without(name)
			}
		}
		out.items[i] = item
	}
	return &out
}

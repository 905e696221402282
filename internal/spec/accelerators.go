package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// accelerator is a kind of accelerator and how many of it a machine has.
type accelerator struct {
	name  string
	count float64
}

var (
	acceleratorForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,62})(?:: ?([0-9]{1,5}(?:\.[0-9]{1,5})?))?$`)
	// gpuMemoryForm asks for any accelerator with so much memory.
	gpuMemoryForm = regexp.MustCompile(`(?i)^(?:[a-z]+:)?[0-9]+(?:\.[0-9]+)?(?:GB|MB|TB)\+?(?::[0-9]+)?$`)
)

const rightAccelerator = "write a name and a count, such as A100:8"

// accelerators reads all forms of SkyPilot: NAME, NAME:COUNT, {NAME: COUNT}; several of these in a list, tried in that
// order, or in a set ({A100:1, V100:1}), of which any will do.
func (d *decoder) accelerators(n *node, path string) (choices []accelerator, ordered bool) {
	switch n.kind {
	case kindMapping:
		choices = d.acceleratorSet(n, path)
	case kindList:
		ordered = true
		for i, item := range n.items {
			at := fmt.Sprintf("%s[%d]", path, i)
			if item.kind == kindMapping && len(item.fields) == 1 {
				choices = append(choices, d.acceleratorSet(item, at)...)
			} else if a, ok := d.accelerator(item, at); ok {
				choices = append(choices, a)
			}
		}
	default:
		a, ok := d.accelerator(n, path)
		if !ok {
			return nil, false
		}
		return []accelerator{a}, false
	}
	if n.size == 1 {
		d.add(n.at, path, "is "+describe(n), rightAccelerator)
	}
	return choices, ordered
}

// acceleratorSet reads {A100: 8}, and the sets {A100:1, V100:1} and {A100, V100}, which YAML takes for mappings to
// nothing.
func (d *decoder) acceleratorSet(n *node, path string) []accelerator {
	var out []accelerator
	for _, f := range n.fields {
		at := join(path, f.name)
		text := f.name
		switch f.value.kind {
		case kindNull:
		case kindInteger, kindFloat, kindText:
			text += ":" + f.value.text
		default:
			d.add(f.value.at, at, "is "+describe(f.value), "it must be a count")
			continue
		}
		if a, ok := d.accelerator(&node{kind: kindText, text: text, at: f.at}, at); ok {
			out = append(out, a)
		}
	}
	return out
}

// accelerator reads NAME or NAME:COUNT. A fraction of one is some clouds' way to share it.
func (d *decoder) accelerator(n *node, path string) (accelerator, bool) {
	m := acceleratorForm.FindStringSubmatch(n.text)
	switch {
	case n.kind != kindText:
		d.add(n.at, path, "is "+describe(n), rightAccelerator)
		return accelerator{}, false
	case gpuMemoryForm.MatchString(n.text):
		d.add(n.at, path, quote(n.text)+" asks for memory of an accelerator, which is not supported", "name the accelerators that have it: [A100:1, H100:1]")
		return accelerator{}, false
	case m == nil:
		d.add(n.at, path, "is "+describe(n), rightAccelerator)
		return accelerator{}, false
	case m[2] == "":
		return accelerator{strings.TrimSpace(m[1]), 1}, true
	}
	count, err := strconv.ParseFloat(m[2], 64)
	if err != nil || count == 0 {
		d.add(n.at, path, "is "+describe(n), "the count must be more than 0")
		return accelerator{}, false
	}
	return accelerator{m[1], count}, true
}

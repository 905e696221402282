package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// isMapping reports n if it is not a mapping.
func (r *report) isMapping(n *node, path string) bool {
	if n.kind == kindMapping {
		return true
	}
	r.add(n.at, path, "is "+describe(n), "it must be a mapping of fields")
	return false
}

// asText reads text. What looks like a number or a boolean to YAML must be in quotes: 1.10 would otherwise be read as
// 1.1 by some programs and as 1.10 by others.
func (r *report) asText(n *node, path string) string {
	switch {
	case n.kind != kindText:
		right := "it must be text"
		if n.kind < kindMapping {
			right = "write it in quotes if it is meant as text"
		}
		r.add(n.at, path, "is "+n.kind.String(), right)
		return ""
	case strings.ContainsRune(n.text, 0):
		r.add(n.at, path, "contains a NUL character", "no program can be given one")
		return ""
	}
	return n.text
}

// integer reads an integer between least and most. A number in quotes is text, and not accepted for one.
func (r *report) integer(n *node, path string, least, most int) (int, bool) {
	if n.kind != kindInteger || n.integer < int64(least) || n.integer > int64(most) {
		r.add(n.at, path, "is "+describe(n), fmt.Sprintf("it must be an integer from %d to %d", least, most))
		return 0, false
	}
	return int(n.integer), true
}

// wholeNumber reads what YAML would take for an integer, in the one form that needs no knowledge of YAML.
func wholeNumber(s string) (int64, bool) {
	i, err := strconv.ParseInt(s, 10, 64)
	return i, err == nil && s == strconv.FormatInt(i, 10)
}

// boolean reads true or false, and the other words that SkyPilot's YAML 1.1 takes for them.
func (r *report) boolean(n *node, path string) bool {
	if n.kind == kindBool || n.kind == kindText {
		switch strings.ToLower(n.text) {
		case "true", "yes", "on":
			return true
		case "false", "no", "off":
			return false
		}
	}
	r.add(n.at, path, "is "+describe(n), "it must be true or false")
	return false
}

// describe says what n is, for values that are no secrets.
func describe(n *node) string {
	switch n.kind {
	case kindNull:
		return n.kind.String()
	case kindMapping, kindList:
		if n.size == 1 {
			return n.kind.String() + " without entries"
		}
		return n.kind.String()
	default:
		return quote(n.text)
	}
}

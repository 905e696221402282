package spec

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

const (
	maxDepth = 32     // the deepest field of a job file is at 6
	maxNodes = 20_000 // with every alias counted as what it stands for
)

// kind is what a node of a job file is.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindInteger
	kindFloat
	kindText
	kindMapping
	kindList
)

// String returns the word for people.
func (k kind) String() string {
	return [...]string{"nothing", "a boolean", "an integer", "a number", "text", "a mapping", "a list"}[k]
}

// node is one value of a job file, with aliases resolved and merge keys carried out.
type node struct {
	kind    kind
	at      position
	text    string // of a scalar, as written, quotes and escapes resolved
	integer int64  // of kindInteger
	fields  []field
	items   []*node
	size    int // nodes in it, itself included
}

// field is one entry of a mapping.
type field struct {
	name  string
	at    position
	value *node
}

// get returns the value of a field, or nil if there is none or it is null: the two are alike in a job file.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name && f.value.kind != kindNull {
			return f.value
		}
	}
	return nil
}

// children returns the fields of a mapping; none if there is no such node.
func (n *node) children() []field {
	if n == nil {
		return nil
	}
	return n.fields
}

// builder makes the nodes of one document. A node that can not be made is reported and nil.
type builder struct {
	*report
	anchors map[string]*node // nil value: still being built
	nodes   int
	over    bool // too many nodes were reported
}

// documents returns the root of each document that is not empty.
func (r *report) documents(bodies []ast.Node) []*node {
	var out []*node
	total := 0
	for _, body := range bodies {
		b := &builder{report: r, anchors: make(map[string]*node), nodes: total}
		n := b.build(body, "", 0)
		total = b.nodes
		if n != nil && n.kind != kindNull {
			out = append(out, n)
		}
	}
	return out
}

// build converts what the parser made. It returns nil for what it reported.
func (b *builder) build(in ast.Node, path string, depth int) *node {
	at := place(in)
	if depth > maxDepth {
		b.add(at, path, fmt.Sprintf("is nested more than %d deep", maxDepth), "")
		return nil
	}
	n := &node{at: at, size: 1}
	if !b.count(at, path, 1) {
		return nil
	}
	switch v := in.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
	case *ast.BoolNode:
		n.kind, n.text = kindBool, v.Token.Value
	case *ast.IntegerNode:
		return b.integer(n, v, path)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = kindFloat, in.GetToken().Value
	case *ast.StringNode:
		n.kind, n.text = kindText, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = kindText, v.Value.Value
	case *ast.TagNode:
		return b.tagged(v, path, depth)
	case *ast.AnchorNode:
		return b.anchor(v, path, depth)
	case *ast.AliasNode:
		return b.alias(v, path)
	case *ast.SequenceNode:
		return b.list(n, v, path, depth)
	case *ast.MappingNode:
		return b.mapping(n, v.Values, path, depth)
	case *ast.MappingValueNode:
		return b.mapping(n, []*ast.MappingValueNode{v}, path, depth)
	default:
		b.add(at, path, "is a kind of YAML that job files do not use", "")
		return nil
	}
	return n
}

// count adds n nodes to what the document stands for, and reports once that they are too many.
func (b *builder) count(at position, path string, n int) bool {
	b.nodes += n
	if b.nodes <= maxNodes {
		return true
	}
	if !b.over {
		b.add(at, path, fmt.Sprintf("is more than %d values, aliases resolved", maxNodes), "")
	}
	b.over = true
	return false
}

func (b *builder) integer(n *node, v *ast.IntegerNode, path string) *node {
	n.kind, n.text = kindInteger, v.Token.Value
	switch i := v.Value.(type) {
	case int64:
		n.integer = i
	case uint64:
		n.integer = int64(min(i, 1<<63-1)) // every range ends far below
	default:
		b.add(n.at, path, "is not an integer", "")
		return nil
	}
	return n
}

// tagged handles !!str, which is how careful people write text that looks like a number.
func (b *builder) tagged(v *ast.TagNode, path string, depth int) *node {
	n := b.build(v.Value, path, depth+1)
	if v.Start.Value != "!!str" {
		b.add(place(v), path, "has the YAML tag "+quote(v.Start.Value), "leave tags out")
		return nil
	}
	if n != nil && n.kind < kindMapping {
		text := *n
		text.kind = kindText
		return &text
	}
	return n
}

func (b *builder) anchor(v *ast.AnchorNode, path string, depth int) *node {
	name := scalarText(v.Name)
	b.anchors[name] = nil
	n := b.build(v.Value, path, depth+1)
	if n == nil {
		delete(b.anchors, name)
		return nil
	}
	b.anchors[name] = n
	return n
}

// alias returns the very node that the anchor names. It is not copied, but counted as if it were, so that an alias of
// aliases of aliases is refused before anything walks through it.
func (b *builder) alias(v *ast.AliasNode, path string) *node {
	name := scalarText(v.Value)
	n, ok := b.anchors[name]
	switch {
	case !ok:
		b.add(place(v), path, "*"+visible(name)+" refers to nothing", `write it in quotes if any place is meant: infra: "*"`)
		return nil
	case n == nil:
		b.add(place(v), path, "*"+visible(name)+" is inside of what it refers to", "")
		return nil
	case !b.count(place(v), path, n.size):
		return nil
	}
	return n
}

func (b *builder) list(n *node, v *ast.SequenceNode, path string, depth int) *node {
	n.kind = kindList
	for i, item := range v.Values {
		c := b.build(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if c == nil {
			c = &node{at: place(item), size: 1} // reported; the list keeps its length
		}
		n.items = append(n.items, c)
		n.size += c.size
	}
	return n
}

func (b *builder) mapping(n *node, values []*ast.MappingValueNode, path string, depth int) *node {
	n.kind = kindMapping
	if len(values) > 0 {
		n.at = place(values[0].Key)
	}
	var merged []*node
	seen := make(map[string]position, len(values))
	for _, v := range values {
		at := place(v.Key)
		if v.Key.IsMergeKey() {
			merged = append(merged, b.sources(v, path, depth)...)
			continue
		}
		name, ok := keyText(v.Key)
		if !ok {
			b.add(at, path, "has a key that is not plain text", "")
			continue
		}
		if first, twice := seen[name]; twice && !isSet(path) {
			b.add(at, join(path, name), fmt.Sprintf("is given twice, first in line %d", first.line), "keep one")
			continue
		}
		seen[name] = at
		value := b.build(v.Value, join(path, name), depth+1)
		if value == nil {
			value = &node{at: at, size: 1} // reported already; null is what nobody complains about again
		}
		if value.kind == kindNull {
			value.at = at
		}
		n.fields = append(n.fields, field{name, at, value})
		n.size += value.size
	}
	b.merge(n, merged, seen, path)
	return n
}

// isSet reports whether the mapping at path is one of SkyPilot's sets: in {A100:4, A100:8} the YAML parser sees a mapping
// with one name twice, though YAML has two names there.
func isSet(path string) bool {
	return strings.HasSuffix(path, ".accelerators") || strings.HasSuffix(path, ".gpus")
}

// sources returns the mappings that a merge key (<<) names.
func (b *builder) sources(v *ast.MappingValueNode, path string, depth int) []*node {
	value := b.build(v.Value, path, depth+1)
	if value == nil {
		return nil
	}
	list := []*node{value}
	if value.kind == kindList {
		list = value.items
	}
	for _, m := range list {
		if m.kind != kindMapping {
			b.add(place(v.Key), path, "<< merges "+m.kind.String(), "it must name a mapping")
			return nil
		}
	}
	return list
}

// merge adds the fields that a merge key brings: what the mapping says itself wins, then the earlier source.
func (b *builder) merge(n *node, from []*node, seen map[string]position, path string) {
	for _, m := range from {
		for _, f := range m.fields {
			if _, own := seen[f.name]; own || !b.count(n.at, path, f.value.size) {
				continue
			}
			seen[f.name] = f.at
			n.fields = append(n.fields, f)
			n.size += f.value.size
		}
	}
}

// keyText returns the name that a key stands for.
func keyText(k ast.MapKeyNode) (string, bool) {
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		scalar, ok := explicit.Value.(ast.ScalarNode)
		if !ok {
			return "", false
		}
		return scalarText(scalar), true
	}
	if _, ok := k.(ast.ScalarNode); !ok {
		return "", false
	}
	return scalarText(k), true
}

func scalarText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return tokenOf(n).Value
}

func place(n ast.Node) position { return tokenPlace(tokenOf(n)) }

func tokenPlace(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{line: 1, column: 1}
	}
	return position{line: max(t.Position.Line, 1), column: max(t.Position.Column, 1)}
}

// tokenOf returns the token that a node starts with, or an empty one.
func tokenOf(n ast.Node) *token.Token {
	if n != nil {
		if t := n.GetToken(); t != nil {
			return t
		}
	}
	return &token.Token{}
}

// join appends a name to a path of fields.
func join(path, name string) string {
	if len(name) > 60 || strings.ContainsAny(name, ".[] ") {
		name = quote(name)
	}
	name = visible(name)
	if path == "" {
		return name
	}
	return path + "." + name
}

package config

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/outlast-dev/outlast/internal/didyoumean"
)

// parseFile reads a configuration file, and refuses keys that mean nothing. The parser's own errors are shortened to
// their place: they quote the lines around it, which may hold a password.
func parseFile(path string, text []byte) (map[string]any, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	schema := knownKeys()
	var mistakes []error
	for _, doc := range file.Docs {
		mistakes = append(mistakes, schema.check(path, doc.Body, ""))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, syntaxError(path, err)
	}
	return values, nil
}

func syntaxError(path string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return fmt.Errorf("%s:%d: not valid YAML: %s", path, at.GetToken().Position.Line, at.GetMessage())
	}
	return fmt.Errorf("%s: not valid YAML", path)
}

// keys says which keys there may be in each mapping, by the path of the mapping: "" is the top, "local.zones" stands
// for each mapping in that list.
type keys map[string][]string

func knownKeys() keys {
	k := keys{}
	for _, s := range settings() {
		if s.noFile {
			continue
		}
		section, name := splitKey(s.key)
		k[section] = append(k[section], name)
		if section != "" && len(k[section]) == 1 {
			k[""] = append(k[""], section)
		}
	}
	for _, s := range zoneSettings() {
		k[zonesKey] = append(k[zonesKey], s.key)
	}
	return k
}

// splitKey splits "unreachable.probes" into its section and its name; a key at the top has the section "".
func splitKey(key string) (section, name string) {
	for i := range key {
		if key[i] == '.' {
			return key[:i], key[i+1:]
		}
	}
	return "", key
}

// check reports every key below node that is not known. path is that of the mapping that node should be, or of a value.
func (k keys) check(file string, node ast.Node, path string) error {
	names, section := k[path]
	var mistakes []error
	switch n := node.(type) {
	case nil, *ast.NullNode: // nothing is set
	case ast.MapNode:
		for it := n.MapRange(); section && it.Next(); {
			mistakes = append(mistakes, k.checkKey(file, it, path, names))
		}
	case *ast.SequenceNode:
		if section && path != zonesKey {
			return mappingWanted(file, n, path)
		}
		for _, item := range n.Values {
			mistakes = append(mistakes, k.check(file, item, path))
		}
	default:
		if section && path != zonesKey {
			return mappingWanted(file, n, path)
		}
	}
	return errors.Join(mistakes...) // that a value is of the wrong kind is said when it is assigned
}

func mappingWanted(file string, node ast.Node, path string) error {
	line := node.GetToken().Position.Line
	if path == "" {
		return fmt.Errorf("%s:%d: must be a mapping of keys to values", file, line)
	}
	return fmt.Errorf("%s:%d: %q must be a mapping of keys to values", file, line, path)
}

func (k keys) checkKey(file string, it *ast.MapNodeIter, path string, names []string) error {
	name := it.Key().GetToken().Value
	full := name
	if path != "" {
		full = path + "." + name
	}
	for _, known := range names {
		if name == known {
			return k.check(file, it.Value(), full)
		}
	}
	line := it.Key().GetToken().Position.Line
	if meant := didyoumean.Nearest(name, names); meant != "" {
		return fmt.Errorf("%s:%d: unknown key %q: did you mean %q?", file, line, full, meant)
	}
	return fmt.Errorf("%s:%d: unknown key %q", file, line, full)
}

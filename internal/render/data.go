package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// JSON writes v as JSON on one line. Characters that would act on a terminal are escaped: the names in it are untrusted,
// and people look at it, too.
func JSON(w io.Writer, v any) error {
	text, err := toJSON(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// YAML writes v as YAML. It has the shape that JSON gives it, down to the order of its fields.
func YAML(w io.Writer, v any) error {
	text, err := toJSON(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(node); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = io.WriteString(w, escaped(out.String(), func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}))
	return err
}

func toJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	return []byte(escaped(text, func(r rune) string { // only strings can hold such characters
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})), nil
}

// escaped replaces every character that acts on a terminal but the line end.
func escaped(text string, escape func(rune) string) string {
	if !strings.ContainsFunc(text, mustEscape) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if mustEscape(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func mustEscape(r rune) bool { return r != '\n' && acts(r) }

// yamlNode reads the next value of a JSON text as a YAML one.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() { // keys and values come in turn
			item, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token() // the end of it
		return n, err
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t}
		if strings.ContainsFunc(t, acts) || oldBooleans[strings.ToLower(t)] { // only this style has escapes
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	default: // a number or a truth value, which YAML writes alike
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(t)}, nil
	}
}

// oldBooleans are texts that readers of YAML 1.1 take for truth values.
var oldBooleans = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true}

package spec

import (
	"regexp"
	"strings"
)

// The lines of a job file are shown beside what is wrong with them, and a file that is wrong may not be YAML at all. So
// what must not be shown is found in its text, and generously: in doubt, a line is cut. A value is taken for secret
//
//   - from the key envs or secrets on, or one that somebody may have written for it, to the end of what is indented below it, in the same brackets, or in the same
//     quotes; only names at the first level below the key are shown;
//   - from an anchor on, likewise: an alias may put it among the secrets.

var (
	secretKey  = regexp.MustCompile(`(?i)(?:^|[\s{,?])["']?(?:envs?|secrets?|env_?vars|environment|variables|credentials|tokens?|passwords?|api_?keys?)["']?\s*(?::|$)`)
	anchorMark = regexp.MustCompile(`(?:^|[\s{\[,:?-])&[^\s,\[\]{}]+`)
	childKey   = regexp.MustCompile(`^\s*["']?[A-Za-z0-9_.-]{1,60}["']?\s*:(?:\s|$)`)
)

// maskLines returns what may be shown of each line: a part from its start.
func maskLines(lines []string) []string {
	out := make([]string, len(lines))
	m := masker{}
	for i, line := range lines {
		out[i] = line[:m.next(line)]
	}
	return out
}

// masker remembers what goes on from one line to the next.
type masker struct {
	active bool // below a key
	parent int  // indentation of the line with the key
	child  int  // of the first line below it, -1 before it
	depth  int  // open brackets within the value
	quote  byte // the open quote within the value, 0 for none
}

// next returns how much of the line may be shown.
func (m *masker) next(line string) int {
	if strings.HasPrefix(line, "---") && m.depth == 0 && m.quote == 0 {
		*m = masker{}
		return len(line)
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	rest := line[indent:]
	switch {
	case m.depth > 0 || m.quote != 0:
		m.scan(line)
		return 0
	case strings.TrimSpace(line) == "":
		return len(line)
	case m.active && m.below(indent, rest):
		return m.inside(line, indent)
	}
	*m = masker{}
	shown := len(line)
	for _, mark := range []*regexp.Regexp{secretKey, anchorMark} {
		if at := mark.FindStringIndex(line); at != nil {
			shown = min(shown, at[1])
		}
	}
	if shown < len(line) || secretKey.MatchString(line) || anchorMark.MatchString(line) {
		m.active, m.parent, m.child = true, indent, -1
		m.scan(line[shown:])
	}
	return shown
}

// below reports whether a line with that indentation belongs to the key. Lists, explicit values and what is in brackets
// or quotes may stand as far left as the key itself.
func (m *masker) below(indent int, rest string) bool {
	return indent > m.parent || strings.IndexByte("\t-:", rest[0]) >= 0 || m.child < 0 && strings.IndexByte(`{["'|>`, rest[0]) >= 0
}

// inside is the part to show of a line below the key: the name, if it stands at the first level.
func (m *masker) inside(line string, indent int) int {
	if line[indent] == '#' {
		return indent
	}
	if m.child < 0 {
		m.child = indent
	}
	name := childKey.FindString(line)
	if indent != m.child {
		name = ""
	}
	shown := max(len(name), indent)
	m.scan(line[shown:])
	return shown
}

// scan follows brackets and quotes through a piece of a value.
func (m *masker) scan(s string) {
	value := strings.TrimLeft(s, " ")
	if m.depth == 0 && m.quote == 0 && (value == "" || strings.IndexByte(`{["'`, value[0]) < 0) {
		return // plain text, in which brackets and quotes mean nothing
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case m.quote != 0:
			if c == '\\' && m.quote == '"' {
				i++
			} else if c == m.quote {
				m.quote = 0
			}
		case c == '"' || c == '\'':
			m.quote = c
		case c == '{' || c == '[':
			m.depth++
		case c == '}' || c == ']':
			m.depth = max(m.depth-1, 0)
		}
	}
}

package spec

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// ReadEnvFile reads the variables of a file in the form of --env-file and --secret-file (see [ParseEnvFile]).
func ReadEnvFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	return ParseEnvFile(path, data)
}

// ParseEnvFile reads variables in the form that is known from .env files: NAME=value in each line, with an optional
// export before it, empty lines and comments between them. A value in quotes may hold anything, line ends included:
// 'single' as it is, "double" with the escapes \n \r \t \" \\ and \$. One without quotes ends before a # that follows a
// blank. Nothing is substituted. The later of two lines with the same name counts.
//
// name is how errors call the file. The error, if any, is an [Errors]; it never shows a value.
func ParseEnvFile(name string, data []byte) (map[string]string, error) {
	p := &envFile{report: &report{file: name}, out: make(map[string]string), line: 1}
	if text, ok := p.text(data); ok {
		for rest := text; rest != ""; {
			rest = p.next(rest)
		}
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.out, nil
}

// envFile is a file of variables on the way.
type envFile struct {
	*report
	out  map[string]string
	line int
}

// next reads one line, with those that a value in quotes goes on for, and returns the rest.
func (p *envFile) next(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	defer func() { p.line++ }()
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" || trimmed[0] == '#' {
		return rest
	}
	if after, ok := strings.CutPrefix(trimmed, "export "); ok {
		trimmed = strings.TrimLeft(after, " \t")
	}
	at := position{line: p.line, column: 1 + utf8.RuneCountInString(line[:len(line)-len(trimmed)])}
	name, value, given := strings.Cut(trimmed, "=")
	name = strings.TrimRight(name, " \t")
	switch {
	case !given: // what stands here may be a secret by itself
		p.add(at, "", "is not NAME=value", "write NAME= if the value is empty")
		return rest
	case !variableName.MatchString(name):
		p.add(at, "", "is not NAME=value", "a name has letters, digits and _ only, and does not start with a digit")
		return rest
	}
	value = strings.TrimLeft(value, " \t")
	if value == "" || value[0] != '"' && value[0] != '\'' {
		p.out[name] = strings.TrimRight(comment(value), " \t")
		return rest
	}
	quoted := text[len(line)-len(value):] // from the quote to the end of the file
	content, length, what := unquote(quoted)
	if what != "" {
		p.add(at, name, what, "")
		return rest
	}
	p.line += strings.Count(quoted[:length], "\n")
	after, rest, _ := strings.Cut(quoted[length:], "\n")
	if after = strings.TrimSpace(after); after != "" && after[0] != '#' {
		p.add(at, name, "has something after the closing quote", `write \" for a quote inside of "..."`)
		return rest
	}
	p.out[name] = content
	return rest
}

// comment returns what stands before a comment.
func comment(s string) string {
	for i, c := range s {
		if c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			return s[:i]
		}
	}
	return s
}

// escapes are those of a value in double quotes.
var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '$': '$'}

// unquote reads the value in quotes that s begins with. length is how far it goes, what is what is wrong.
func unquote(s string) (value string, length int, what string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), i + 1, ""
		case c == '\\' && s[0] == '"' && i+1 < len(s):
			i++
			plain, ok := escapes[s[i]]
			if !ok {
				return "", 0, `has a \ before something that needs none`
			}
			b.WriteByte(plain)
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, "has a quote that is not closed"
}

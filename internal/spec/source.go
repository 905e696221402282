package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxBytes is far above any job file; a larger one is a data file given by mistake.
	maxBytes = 1 << 20
	// maxTokens keeps the YAML parser, whose time grows with the square of some inputs, below a quarter of a second.
	maxTokens = 20_000
)

// parse turns the text of a job file into one syntax tree for each document, or reports why it can not. The YAML parser
// stops at its first error, so there is at most one problem for each document here.
func (r *report) parse(data []byte) []ast.Node {
	text, ok := r.text(data)
	if !ok {
		return nil
	}
	r.lines = strings.Split(text, "\n")
	tokens, err := scan(text)
	if err != nil {
		r.add(position{line: 1, column: 1}, "", "is not YAML", "")
		return nil
	}
	if len(tokens) > maxTokens {
		r.add(position{line: 1, column: 1}, "", fmt.Sprintf("has more than %d YAML tokens", maxTokens), "a job file is a few hundred")
		return nil
	}
	var docs []ast.Node
	for _, part := range split(tokens) {
		if body := r.document(text, part); body != nil {
			docs = append(docs, body)
		}
	}
	return docs
}

// split divides tokens into those of each document, without comments, directives and separators. The parser could do
// that as well, but goccy/go-yaml 1.19 drops all documents that follow an empty one.
func split(tokens token.Tokens) []token.Tokens {
	var (
		parts []token.Tokens
		part  token.Tokens
	)
	end := func() {
		if len(part) > 0 && part[0].Type != token.DirectiveType { // such as %YAML 1.1, which belongs to no document
			parts = append(parts, part)
		}
		part = nil
	}
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
		case token.DocumentHeaderType, token.DocumentEndType:
			end()
		default:
			part = append(part, t)
		}
	}
	end()
	return parts
}

// document parses one document. It returns nil for what it reported.
func (r *report) document(text string, tokens token.Tokens) (body ast.Node) {
	// The parser is other people's code on text that anybody wrote: if it fails in a way its authors did not foresee,
	// that is an error of this file and not the end of the program.
	defer func() {
		if p := recover(); p != nil {
			r.add(tokenPlace(tokens[0]), "", "is not understood as YAML", "")
			body = nil
		}
	}()
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	switch {
	case err != nil:
		r.syntax(text, err)
		return nil
	case len(file.Docs) != 1:
		r.add(tokenPlace(tokens[0]), "", "is not understood as YAML", "")
		return nil
	}
	return file.Docs[0].Body
}

// text checks the encoding and returns the file with one kind of line end and without a byte order mark, as YAML
// wants a reader to do.
func (r *report) text(data []byte) (string, bool) {
	if len(data) > maxBytes {
		r.add(position{}, "", fmt.Sprintf("is larger than %d bytes", maxBytes), "data belongs into the workdir or a bucket")
		return "", false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	if !strings.HasSuffix(s, "\n") {
		s += "\n" // the YAML scanner drops blanks before an end of file without one
	}
	line, column := 1, 1
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			r.add(position{line: line, column: column}, "", "is not UTF-8 text", "save the file as UTF-8")
			return "", false
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			r.add(position{line: line, column: column}, "", fmt.Sprintf("is not text: it has the control character %U", c), "give a text file")
			return "", false
		case c == '\n':
			line, column = line+1, 1
		default:
			column++
		}
	}
	return s, true
}

// scan splits text into tokens. Its time is linear, so it can be done before they are counted.
func scan(text string) (token.Tokens, error) {
	var s scanner.Scanner
	s.Init(text)
	var tokens token.Tokens
	for {
		more, err := s.Scan()
		tokens.Add(more...)
		if errors.Is(err, io.EOF) || more.InvalidToken() != nil {
			return tokens, nil // the parser reports an invalid token, with its place
		}
		if err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
	}
}

// syntax reports what the parser found. Only its message is shown, never its excerpt of the file: that may be a secret.
func (r *report) syntax(text string, err error) {
	var se *yaml.SyntaxError
	if !errors.As(err, &se) {
		r.add(position{line: 1, column: 1}, "", "is not YAML", "")
		return
	}
	at := tokenPlace(se.Token)
	switch {
	case tabIndented(text, at.line):
		r.add(at, "", "is indented with a tab", "YAML wants spaces")
	case se.Message == "undefined alias name":
		r.add(at, "", "* refers to nothing", `write it in quotes if any place is meant: infra: "*"`)
	default:
		r.add(at, "", "is not YAML: "+visible(se.Message), "")
	}
}

func tabIndented(text string, line int) bool {
	lines := strings.Split(text, "\n")
	if line > len(lines) {
		return false
	}
	content := strings.TrimLeft(lines[line-1], " \t")
	return strings.Contains(lines[line-1][:len(lines[line-1])-len(content)], "\t")
}

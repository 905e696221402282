package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// FromCommand makes a job of one task that runs argv, each argument handed on exactly as it is: bash sees quotes where
// it would otherwise change something. The job is named after the program unless opt says otherwise. The error, if
// any, is an [Errors].
func FromCommand(argv []string, opt Options) (Job, error) {
	d := newDecoder("", opt)
	if len(argv) == 0 {
		d.option("command", "is empty", "write it after --")
	}
	for i, a := range argv {
		if strings.ContainsRune(a, 0) || !utf8.ValidString(a) {
			d.option(fmt.Sprintf("argument %d", i), "is not UTF-8 text without NUL characters", "")
		}
	}
	task := &node{kind: kindMapping}
	d.jobName(nil, []*node{task}, programName(argv))
	d.command = commandLine(argv)
	d.task(task, 0, 1)
	return d.finish()
}

// programName returns what a job for argv is called by default.
func programName(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return filepath.Base(argv[0])
}

// plain are arguments that mean themselves to bash wherever they stand, except as the first word.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@:,./+=-]+$`)

// reserved are the plain words that bash does not take for a command's name at the start of a line.
var reserved = []string{
	"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
	"time", "until", "while",
}

// commandLine writes argv so that bash splits it into the same words again.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		special := i == 0 && (strings.Contains(a, "=") || slices.Contains(reserved, a))
		if plain.MatchString(a) && !special {
			words[i] = a
			continue
		}
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

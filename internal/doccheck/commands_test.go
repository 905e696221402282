package doccheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ensure that every command line of enqueue in the documents names a command that there is, with flags that it has. The
// page of commands, which is made from them, says what there is.
func TestCommandLinesAreReal(t *testing.T) {
	commands := map[string]string{}
	for _, part := range strings.Split(read(t, "docs/cli.md"), "\n## enqueue")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		commands[strings.TrimSpace(name)] = body
	}
	block := regexp.MustCompile("(?s)```(?:console|sh)\n(.*?)```")
	line := regexp.MustCompile(`(?m)^(\$ )?(?:[A-Z_]+=\S+ )*enqueue ([a-z]+)(.*)$`)
	seen := 0
	for path, text := range documents(t) {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			for _, m := range line.FindAllStringSubmatch(b[1], -1) {
				seen++
				name, args := m[2], m[3]
				help, ok := commands[name]
				if !ok {
					if name != "qeue" { // the one that is mistyped on purpose
						t.Errorf("%s: there is no command enqueue %s", path, name)
					}
					continue
				}
				for _, flag := range flagsOf(args) {
					if !regexp.MustCompile(`[ ,]` + regexp.QuoteMeta(flag) + `[ ,=\[\n]`).MatchString(help + commands[""]) {
						t.Errorf("%s: enqueue %s has no flag %s", path, name, flag)
					}
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// flagsOf are the flags in a command line, up to the command that it submits, a pipe or a remark.
func flagsOf(args string) []string {
	var flags []string
	for _, word := range strings.Fields(args) {
		if slices.Contains([]string{"--", "|", "#", "&", "&&"}, word) {
			break
		}
		if strings.HasPrefix(word, "-") && len(word) > 1 {
			name, _, _ := strings.Cut(word, "=")
			flags = append(flags, name)
		}
	}
	return flags
}

// Ensure that the map of the documents leads to every page.
func TestMapHasEveryPage(t *testing.T) {
	pages := read(t, "docs/README.md")
	for path := range documents(t) {
		name, err := filepath.Rel("docs", path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "..") || name == "README.md" {
			continue
		}
		if !strings.Contains(pages, "]("+filepath.ToSlash(name)+")") {
			t.Errorf("docs/README.md does not lead to %s", path)
		}
	}
}

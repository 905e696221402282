package doccheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ensure that each public report of the list is named, with its number, in the comment of a test that its row names.
func TestPublicReportsAreNamedByTheirTests(t *testing.T) {
	const doc = "docs/public-reports.md"
	rows := regexp.MustCompile(`(?m)^\| (\[.+) \| .+ \| .+ \| (.+) \|$`).FindAllStringSubmatch(read(t, doc), -1)
	if len(rows) < 20 {
		t.Fatalf("the list has %d rows", len(rows))
	}
	comments := commentsOfTests(t)
	for _, row := range rows {
		shown := regexp.MustCompile("`(\\w+)` \\(([a-z/]+)\\)").FindAllStringSubmatch(row[2], -1)
		if len(shown) == 0 {
			t.Errorf("%s: %s names no test with its package", doc, row[1])
		}
		for _, report := range regexp.MustCompile(`\[([a-z-]+) (#\d+)\]`).FindAllStringSubmatch(row[1], -1) {
			project, number := report[1], regexp.MustCompile(report[2]+`\b`)
			if !slices.ContainsFunc(shown, func(test []string) bool {
				comment := comments[test[2]+"/"+test[1]]
				return strings.Contains(comment, project+" #") && number.MatchString(comment)
			}) {
				t.Errorf("%s: no test of %s %s has it in its comment", doc, project, report[2])
			}
		}
	}
}

// commentsOfTests are the comments of all tests by package and name.
func commentsOfTests(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	declaration := regexp.MustCompile(`(?m)((?:^//.*\n)+)^func (Test\w+)\(`)
	walk(t, "_test.go", func(path string) {
		for _, m := range declaration.FindAllStringSubmatch(read(t, path), -1) {
			comments[filepath.ToSlash(filepath.Dir(path))+"/"+m[2]] = m[1]
		}
	})
	return comments
}

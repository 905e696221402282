package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/job"
)

// root is the repository, from here.
const root = "../.."

// guarantees is how many there are: G1, G2 and so on.
const guarantees = 13

// Ensure that every guarantee has a section with at least one test, that all others which the documents name exist, and
// that each lies in the package that is said to hold it.
func TestGuaranteesNameTheirTests(t *testing.T) {
	tests := testsOf(t)
	for path, text := range documents(t) {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`(?: \\(([a-z/]+)\\))?").FindAllStringSubmatch(text, -1) {
			name, where := m[1], m[2]
			switch {
			case len(tests[name]) == 0:
				t.Errorf("%s: there is no test %s", path, name)
			case where != "" && !slices.Contains(tests[name], where):
				t.Errorf("%s: %s is not in %s but in %s", path, name, where, strings.Join(tests[name], ", "))
			}
		}
	}
	sections := sectionsOf(read(t, "docs/guarantees.md"))
	for n := 1; n <= guarantees; n++ {
		name := "G" + strconv.Itoa(n)
		if !regexp.MustCompile("(?m)^\\* `(?:Test|Fuzz)\\w+` \\(").MatchString(sections[name]) {
			t.Errorf("docs/guarantees.md: %s names no test, or has no section", name)
		}
	}
}

// Ensure that every row of the acceptance list names a test or a script, or says that there is nothing of ours to test and
// why, and that the scripts exist. (That the tests do is ensured for all documents.)
func TestAcceptanceRowsNameTheirTests(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (.+) \| (.+) \|$`).FindAllStringSubmatch(read(t, "docs/acceptance.md"), -1)
	if len(rows) < 100 {
		t.Fatalf("the list has %d rows", len(rows))
	}
	shown := regexp.MustCompile("`(?:(?:Test|Fuzz)\\w+` \\([a-z/]+\\)|(\\w+\\.txtar)`)")
	for _, row := range rows {
		behaviour, by := row[1], row[2]
		tests := shown.FindAllStringSubmatch(by, -1)
		why, not := strings.CutPrefix(by, "not here: ")
		if behaviour != "Behaviour" && (len(tests) == 0 && !not || not && (len(tests) > 0 || why == "")) {
			t.Errorf("docs/acceptance.md: %q is shown by %q, which is neither a test with its package nor a reason", behaviour, by)
		}
		for _, test := range tests {
			if script := test[1]; script != "" {
				read(t, filepath.Join("enqueue", "testdata", "script", script))
			}
		}
	}
}

// sectionsOf splits a document at its headings of the second level, by the first word of each.
func sectionsOf(text string) map[string]string {
	sections := map[string]string{}
	for _, part := range strings.Split("\n"+text, "\n## ")[1:] {
		name, body, _ := strings.Cut(part, " ")
		sections[strings.TrimRight(name, ".:")] = body
	}
	return sections
}

// Ensure that the reference knows every setting, status and cause code, and that every metric it names is one.
func TestReferenceIsComplete(t *testing.T) {
	reference := read(t, "docs/reference.md")
	var words []string
	for line := range strings.Lines(config.Defaults().String()) {
		key, _, _ := strings.Cut(line, ":")
		words = append(words, key)
	}
	for _, s := range job.Statuses {
		words = append(words, string(s))
	}
	codes := constants(t, "internal/job", "Code")
	if len(codes) == 0 {
		t.Fatal("internal/job has no constants of the type Code")
	}
	for _, word := range append(words, codes...) {
		if !strings.Contains(reference, "| `"+word+"` |") {
			t.Errorf("docs/reference.md has no row for %s", word)
		}
	}
	source := read(t, "tasks/metrics.go") + read(t, "tasks/collector.go")
	for _, m := range regexp.MustCompile("`outlast_(\\w+)`").FindAllStringSubmatch(reference, -1) {
		if !strings.Contains(source, `"`+m[1]+`"`) && !strings.Contains(source, `"outlast_`+m[1]+`"`) {
			t.Errorf("docs/reference.md: there is no metric outlast_%s", m[1])
		}
	}
}

// Ensure that a link within the repository leads to a file that is there, and to a heading that it has.
func TestLinksResolve(t *testing.T) {
	docs := documents(t)
	for path, text := range docs {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if regexp.MustCompile(`^[a-z]+:`).MatchString(m[1]) {
				continue // elsewhere
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, m[1])
				continue
			}
			if heading != "" && !slices.Contains(headings(docs[target]), heading) {
				t.Errorf("%s: the link to %s leads to no heading", path, m[1])
			}
		}
	}
}

// headings are the anchors of a document, as forges make them of its headings.
func headings(text string) []string {
	var out []string
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

// Ensure that no document names a path that only somebody's own computer has.
func TestNoForeignPaths(t *testing.T) {
	foreign := regexp.MustCompile(`(?m)(?:^|[^\w.])(/(?:work|home|root|Users)\b|shared/)`)
	for path, text := range documents(t) {
		for _, m := range foreign.FindAllStringSubmatch(text, -1) {
			t.Errorf("%s names the path %s", path, m[1])
		}
	}
}

// Ensure that every package says what it is for.
func TestPackagesHaveComments(t *testing.T) {
	described := map[string]bool{}
	walk(t, ".go", func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(path)
		described[dir] = described[dir] || file.Doc != nil && !strings.HasSuffix(path, "_test.go")
	})
	for _, dir := range slices.Sorted(maps.Keys(described)) {
		if !described[dir] && dir != "examples" { // which holds no code, only tests of the examples
			t.Errorf("the package in %s has no comment", dir)
		}
	}
}

// walk calls visit with the path of every file of a kind, relative to the repository.
func walk(t *testing.T, kind string, visit func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "bin"):
			return fs.SkipDir
		case !e.IsDir() && strings.HasSuffix(path, kind):
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documents are the texts of all documents by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	walk(t, ".md", func(path string) { docs[path] = read(t, path) })
	return docs
}

// testsOf are the packages that have a test, by its name.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	walk(t, "_test.go", func(path string) {
		for _, m := range declaration.FindAllStringSubmatch(read(t, path), -1) {
			tests[m[1]] = append(tests[m[1]], filepath.ToSlash(filepath.Dir(path)))
		}
	})
	return tests
}

// constants are the values of a package's constants of a type, which is one of strings.
func constants(t *testing.T, dir, kind string) []string {
	t.Helper()
	var values []string
	walk(t, ".go", func(path string) {
		if filepath.Dir(path) != filepath.FromSlash(dir) || strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != kind {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	})
	return values
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

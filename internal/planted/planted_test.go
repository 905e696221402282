package planted_test

import (
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/planted"
)

// Ensure that a normal build has no bug, and cannot be given one: what it compiles is a constant and reads no environment.
func TestNormalBuildsHaveNoBug(t *testing.T) {
	pkg, err := build.Default.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"doc.go", "off.go"}; !slices.Equal(pkg.GoFiles, want) || len(pkg.Imports) > 0 {
		t.Errorf("a normal build compiles %v, which imports %v; want %v and no imports", pkg.GoFiles, pkg.Imports, want)
	}
	off, err := os.ReadFile("off.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(off), "func On(Bug) bool { return false }") {
		t.Error("off.go does not answer with the constant false: the compiler could not remove the bugs")
	}
}

// Ensure that each guarantee has its bug, at one place in the product.
func TestEachBugIsPlantedOnce(t *testing.T) {
	use := regexp.MustCompile(`planted\.On\(planted\.(\w+)\)`)
	places := map[string][]string{}
	for _, dir := range []string{"enqueue", "worker", "tasks", "lease", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/planted/") {
				return err
			}
			src, err := os.ReadFile(path)
			for _, m := range use.FindAllStringSubmatch(string(src), -1) {
				places[m[1]] = append(places[m[1]], path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, bug := range planted.Bugs {
		if n := len(places[string(bug)]); n != 1 {
			t.Errorf("%s is planted at %d places %v, want one", bug, n, places[string(bug)])
		}
	}
	if len(places) != len(planted.Bugs) {
		t.Errorf("bugs that are not in the list: %v", places)
	}
}

// Ensure that the text of the script that G2 takes out is really there: a script that was reworded would have no bug.
func TestBugInTheScript(t *testing.T) {
	loader, err := os.ReadFile("../store/store.go")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../store/lua/commit.lua")
	if err != nil {
		t.Fatal(err)
	}
	guard := regexp.MustCompile(`strings\.Replace\(source, "(.+?)", "else", 1\)`).FindSubmatch(loader)
	if guard == nil || strings.Count(string(script), string(guard[1])) != 1 {
		t.Errorf("the guard that store.go takes out of commit.lua is not there exactly once: %q", guard)
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// built is where the binaries lie that the tests have built.
var built string

// The test binary is also the worker, the machines and the agents on them: whatever is not called as a test is main.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	var err error
	if built, err = os.MkdirTemp("", "outlast-bin"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// enqueueBinary builds the client once.
var enqueueBinary = sync.OnceValues(func() (string, error) { return build("enqueue", "../enqueue") })

// build builds a program for the tests.
func build(name, dir string, flags ...string) (string, error) {
	path := filepath.Join(built, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", dir, err, out)
	}
	return path, nil
}

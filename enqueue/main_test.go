package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the program itself when a script runs enqueue.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"enqueue": main})
}

package main

import (
	"bytes"
	"testing"
)

// Ensure that a remark for people keeps its lines, and that nothing which others wrote into it acts on a terminal.
func TestRemarksAreHarmless(t *testing.T) {
	var out bytes.Buffer
	a := &app{errs: &out}
	a.say("\nworker %s", "w\x1b]0;title\a\u202e")
	if got, want := out.String(), "\nworker w\\x1b]0;title\\a\\u202e\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ensure that the page is one that can be reached from here, and that nothing but a web address is opened.
func TestChoosePage(t *testing.T) {
	worker := func(name, host, url string) workerAccount {
		return workerAccount{Name: name, Host: host, URL: url, State: "ready"}
	}
	here, there := worker("w1", "here", "http://127.0.0.1:8080"), worker("w2", "there", "http://127.0.0.1:8080")
	open := worker("w3", "there", "http://0.0.0.0:8080")
	for _, tc := range []struct {
		name    string
		workers []workerAccount
		want    page
	}{
		{"none", nil, page{}},
		{"one here is best", []workerAccount{there, open, here}, page{"http://127.0.0.1:8080", "w1", "here", false}},
		{"one that listens everywhere", []workerAccount{there, open}, page{"http://there:8080", "w3", "there", false}},
		{"one for itself only", []workerAccount{there}, page{"http://127.0.0.1:8080", "w2", "there", true}},
		{"silent", []workerAccount{{Name: "w", Host: "here", URL: "http://here", State: "silent"}}, page{}},
		{"without a page", []workerAccount{worker("w", "here", "")}, page{}},
		{"a host that is none", []workerAccount{worker("w", "x;reboot", "http://127.0.0.1:80"), worker("w", "-oProxyCommand=x", "http://127.0.0.1:80"), worker("w", "a\x1b]0;b\a", "http://0.0.0.0:80")}, page{}},
		{"no web address", []workerAccount{worker("w", "here", "file:///etc/passwd"), worker("w", "here", "--help"), worker("w", "here", "javascript:alert(1)")}, page{}},
	} {
		got, err := choosePage(tc.workers, "here")
		if got != tc.want || (err == nil) != (tc.want != page{}) {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
}

package main

import (
	"bytes"
	"testing"
)

// variables looks names up among pairs.
func variablesOf(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// Ensure that colours are where they can be seen, nowhere else, and nowhere against anybody's wish.
func TestColours(t *testing.T) {
	for _, tc := range []struct {
		name               string
		terminal, unwanted bool
		environ            []string
		want               bool
	}{
		{"terminal", true, false, nil, true},
		{"pipe", false, false, nil, false},
		{"--no-color", true, true, nil, false},
		{"NO_COLOR", true, false, []string{"NO_COLOR", "1"}, false},
		{"empty NO_COLOR", true, false, []string{"NO_COLOR", ""}, true},
		{"dumb terminal", true, false, []string{"TERM", "dumb"}, false},
		{"forced in a pipe", false, false, []string{"CLICOLOR_FORCE", "1"}, true},
		{"not forced", false, false, []string{"CLICOLOR_FORCE", "0"}, false},
		{"forced, but not wanted", false, false, []string{"CLICOLOR_FORCE", "1", "NO_COLOR", "1"}, false},
	} {
		if got := colours(tc.terminal, tc.unwanted, variablesOf(tc.environ...)); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// Ensure that lines are as long as somebody said, and that a locale without UTF-8 is believed.
func TestScreen(t *testing.T) {
	for _, tc := range []struct {
		environ []string
		want    screen
	}{
		{nil, screen{}},
		{[]string{"COLUMNS", "40"}, screen{width: 40}},
		{[]string{"COLUMNS", "-1"}, screen{}},
		{[]string{"COLUMNS", "wide"}, screen{}},
		{[]string{"LANG", "C"}, screen{ascii: true}},
		{[]string{"LANG", "C.UTF-8"}, screen{}},
		{[]string{"LANG", "de_DE.UTF-8", "LC_ALL", "POSIX"}, screen{ascii: true}},
		{[]string{"LC_ALL", "", "LANG", "en_US.utf8"}, screen{}},
		{[]string{"TERM", "dumb", "LANG", "en_US.utf8"}, screen{ascii: true}},
	} {
		if got := screenOf(&bytes.Buffer{}, variablesOf(tc.environ...)); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.environ, got, tc.want)
		}
	}
}

// Ensure that a command line that cannot be parsed still says which form its error is to take.
func TestFormOf(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, formTable},
		{[]string{"queue", "--bogus", "-o", "json"}, formJSON},
		{[]string{"queue", "-ojson", "--bogus"}, formJSON},
		{[]string{"queue", "--output=yaml"}, formYAML},
		{[]string{"queue", "--output", "nonsense"}, formTable},
		{[]string{"launch", "--", "ps", "-o", "json"}, formTable},
		{[]string{"queue", "-o"}, formTable},
	} {
		if got := formOf(tc.args); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.args, got, tc.want)
		}
	}
}

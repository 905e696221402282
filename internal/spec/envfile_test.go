package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseEnvFile ensures the forms that people know from .env files.
func TestParseEnvFile(t *testing.T) {
	got, err := ParseEnvFile("a.env", []byte("\ufeff# comment\r\n\r\nA=1\nexport B = two words  # comment\nC=a#b\nD=\n"+
		"E='single $X \\n'\nF=\"double \\n \\\" \\$ \\\\\" # comment\nG=\"-----BEGIN\nKEY-----\n\"\nH==x=\nA=last"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"A": "last", "B": "two words", "C": "a#b", "D": "", "E": `single $X \n`, "F": "double \n \" $ \\", "G": "-----BEGIN\nKEY-----\n", "H": "=x=",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestEnvFileProblems ensures that everything wrong with a file of variables is told with its place, and no value (G12).
func TestEnvFileProblems(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nhunter2\n":                     "s.env:2:1: is not NAME=value",
		"  1A=hunter2":                       "s.env:1:3: is not NAME=value",
		"hunter2 hunter2\nA B=hunter2":       "s.env:2:1: is not NAME=value",
		"A='hunter2\nB=1":                    "s.env:1:1: A: has a quote that is not closed",
		"A='\nhunter2' hunter2\nB-=hunter2":  "s.env:3:1: is not NAME=value",
		"A='hunter2' hunter2":                "s.env:1:1: A: has something after the closing quote",
		"A=\"hunter2 \\q\"":                  `s.env:1:1: A: has a \ before something that needs none`,
		"A=\x00hunter2":                      "s.env:1:3: is not text: it has the control character U+0000",
		"A=\xffhunter2":                      "s.env:1:3: is not UTF-8 text",
		"A=" + strings.Repeat("x", maxBytes): "s.env: is larger than 1048576 bytes",
	} {
		vars, err := ParseEnvFile("s.env", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || vars != nil {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q shows the secret: %v", text, err)
		}
	}
}

// FuzzParseEnvFile ensures that no file of variables makes the reader panic or hand on what is not the name of one.
func FuzzParseEnvFile(f *testing.F) {
	for _, s := range []string{"A=1", "export A='x\ny' # z", "A=\"\\n\"\nB", "=\n'", "A='"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := ParseEnvFile("f.env", data)
		if err != nil && len(vars) > 0 {
			t.Fatal("an error and variables")
		}
		for name := range vars {
			if !variableName.MatchString(name) {
				t.Fatalf("name %q", name)
			}
		}
	})
}

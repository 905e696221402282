package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// frames returns the frames of everything that is wrong with a file.
func frames(t *testing.T, text string, opt Options) []string {
	t.Helper()
	_, err := Parse("t.yaml", []byte(text), opt)
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("%q: error %v", text, err)
	}
	var out []string
	for _, p := range all {
		out = append(out, p.Frame)
	}
	return out
}

// TestFrames ensures how the line of a problem is shown.
func TestFrames(t *testing.T) {
	wide := "resources: {infra: a, " + strings.Repeat("x", 100) + ": 1, cpu: 4, " + strings.Repeat("y", 100) + ": 2}"
	for _, tt := range []struct {
		name, text, want string
	}{
		{"a field", "resources:\n  cpu: 4", "2 |   cpu: 4\n  |   ^~~"},
		{"a value", "name: 5", "1 | name: 5\n  |       ^"},
		{"a wide character counts twice", "resources: {infra: local, 漢字: 1}", "1 | resources: {infra: local, 漢字: 1}\n  |                           ^~~~"},
		{"a two-digit line", strings.Repeat("# \n", 9) + "runn: x", "10 | runn: x\n   | ^~~~"},
		{"syntax", "run: [a", "1 | run: [a\n  |      ^"},
		{"tab", "resources:\n\tcpus: 1", "2 |  cpus: 1\n  | ^"},
		{"what is not printable", "name: \"a\u202e\u0085b\"", "1 | name: \"a\ufffd\ufffdb\"\n  |       ^"},
		{"the file as a whole", "", ""},
		{"a long line", wide, "1 | ..." + strings.Repeat("x", 55) + ": 1, cpu: 4, " + strings.Repeat("y", 28) + "...\n"},
	} {
		got := frames(t, tt.text, Options{})
		found := false
		for _, f := range got {
			found = found || f == tt.want || strings.HasSuffix(tt.want, "\n") && strings.HasPrefix(f, tt.want)
		}
		if !found {
			t.Errorf("%s: frames\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), tt.want)
		}
	}
}

// secretFiles are files with something wrong and hunter2 as a secret, written in all the ways that YAML has, or in none
// that it has.
var secretFiles = []string{
	"secrets:\n  A: hunter2\nrunn: x", "secrets:\n  A: hunter2\n  A: hunter2", "secrets: {A: hunter2, A: hunter2}", "secrets: {A-B: hunter2}",
	"{secrets: {A: hunter2}, runn: x}", "{\nsecrets: {\nA: hunter2,\nA-B: hunter2\n}, runn: x}", "secrets:\n{A-B: hunter2}", "secrets: {A: hunter2\nrunn: hunter2",
	"\"secrets\": {A-B: hunter2}", "'envs' : {A-B: hunter2}", "? secrets\n: {A-B: hunter2}", "\"s\\x65crets\": {A-B: hunter2}",
	"secrets:\n  A-B: |\n    hunter2\n    hunter2: x\n", "secrets:\n  A: |\n    hunter2\n   hunter2: x\n", "secrets:\n  A-B: \"hunter2\n    hunter2\"\n",
	"secrets:\n  A: \"hunter2\nrun: hunter2", "secrets:\n  A: 'hunter2\nhunter2: '\nrunn: x", "secrets:\n  A: hunter2: hunter2", "secrets:\n\tA: hunter2",
	"secrets:\n- hunter2\n- A: hunter2", "secrets: hunter2", "secrets: [hunter2]", "secrets: &x hunter2", "secrets:\n  hunter2\n", "secrets:\n  A-B: >-\n   hunter2\n\n   hunter2\n",
	"x: &a hunter2\nsecrets: {A: *a}", "x:\n  &a\n  hunter2\nsecrets: {A: *a}", "x: &m\n  A: hunter2\nsecrets:\n  <<: *m", "x: [&a hunter2]\nsecrets: {A: *a}",
	"x: &m {A: hunter2}\nsecrets: *m\nenvs: *m", "resources: {cpus: &a hunter2}\nsecrets: {A: *a}", "secrets: {A: &a hunter2}\nname: *a\nresources: {cpus: *a}",
	"name: hunter2\nsecrets: {A: hunter2}\nnme: hunter2", "secrets: {A: \"hun\\x74er2\"}\nnme: hunter2", "secrets: {A: !x hunter2}", "secrets: {A: @hunter2}", "secrets: {A: hunter2}}",
	"secrets:\n  A: hunter2\n B: 1", "secrets:\n  A: hunter2\n---\nsecrets:\n  A: hunter2: 1", "run: x\n---\nenvs: {B: hunter2, B-C: hunter2}", "secrets : {A-B: hunter2}",
	"secrets:\n  # hunter2\n  A-B: 1", "secrets:\n\n  A: hunter2\n\n  B-C: hunter2", "envs: {A: hunter2}\nresources: {infra: hunter2/hunter2/hunter2/hunter2}",
	"env: {A: hunter2}\nrunn: x", "secret:\n  A: hunter2\n  A-B: hunter2", "SECRETS: {A: hunter2}", "environment: {A: hunter2}", "evns: {A: hunter2}", "secrtes: [hunter2]",
	"resources: {secret: hunter2}", "api_key: hunter2", "env:\n  A: hunter2: x", "- env: {A: hunter2}",
}

// TestG12_FramesHideSecrets ensures that no line that is shown holds a value of envs or secrets, however the file is
// written, and whatever keeps it from being YAML (G12).
func TestG12_FramesHideSecrets(t *testing.T) {
	for _, text := range secretFiles {
		shown := strings.Join(append(frames(t, text, Options{}), problems(t, text, Options{})...), "\n")
		if strings.Contains(shown, "hunter2") {
			t.Errorf("%q shows the secret:\n%s", text, shown)
		}
	}
}

// TestFramesHideGivenSecrets ensures the same for what the command line gives (G12).
func TestFramesHideGivenSecrets(t *testing.T) {
	opt := Options{Secret: map[string]string{"A": "hunter2"}, Env: map[string]string{"B": "hunter3"}}
	for _, f := range frames(t, "nam: hunter2\nrunn: hunter3", opt) {
		if strings.Contains(f, "hunter") {
			t.Errorf("the secret is shown:\n%s", f)
		}
	}
}

// TestMaskProperty ensures that masks never depend on what is below the key: whatever lines stand there, none is shown
// beyond a name at the first level.
func TestMaskProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{"hunter2", "\"", "'", "{", "}", "[", "]", ": ", "- ", "A: ", "#", "|", "> ", "&a ", "*a", " ", "x", ",", "\\", "!!str "})
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"secrets:"}
		for range rapid.IntRange(1, 5).Draw(t, "lines") {
			indent := strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "indent"))
			lines = append(lines, indent+strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "line"), ""))
		}
		for i, shown := range maskLines(lines) {
			name := childKey.FindString(shown)
			if i > 0 && strings.TrimSpace(shown) != "" && name != shown && strings.TrimSpace(lines[i]) != "" {
				t.Fatalf("line %q of\n%s\nis shown as %q", lines[i], strings.Join(lines, "\n"), shown)
			}
		}
	})
}

// badNames are names made to do something to a shell, a terminal, a page or a table.
var badNames = []string{
	"'; rm -rf ~ #", "a\nb", "$(reboot)", "`reboot`", "\x1b]0;title\a", "\u202eevil", "\u2028", "a\u0085b", strings.Repeat("n", 10_000), "<script>alert(1)</script>", "../../etc", "%s%n", "\u200b",
}

// TestBadNames ensures that a name is either refused or taken as it is, and that what is said of it is fit for a
// terminal.
func TestBadNames(t *testing.T) {
	for _, name := range badNames {
		for _, place := range []string{"name: %s", "resources: {labels: {%s: x}}", "resources: {instance_type: %s}", "file_mounts: {%s: /x}", "envs: {%s: x}", "%s: x", "name: a\n---\nname: %s\n---\nrun: x"} {
			quoted := `"` + strings.NewReplacer("\n", `\n`, "\x1b", `\e`, "\a", `\a`, `"`, `\"`).Replace(name) + `"`
			j, err := Parse("t.yaml", []byte(strings.Replace(place, "%s", quoted, 1)), Options{})
			if err == nil {
				for _, task := range j.Request.Tasks {
					for _, s := range []string{task.Name, j.Request.Name} {
						if utf8.RuneCountInString(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
							t.Errorf("the name %q is accepted", s)
						}
					}
				}
				continue
			}
			var all Errors
			errors.As(err, &all)
			for _, p := range all {
				for _, r := range p.String() + strings.ReplaceAll(p.Frame, "\n", "") {
					if !unicode.IsPrint(r) && r != '\n' {
						t.Errorf("%q in %q: %U is shown: %q", name, place, r, p)
						break
					}
				}
				if len(p.String()) > 1000 || len(p.Frame) > 2000 {
					t.Errorf("%.40q in %q: a problem of %d bytes with a frame of %d", name, place, len(p.String()), len(p.Frame))
				}
			}
		}
	}
}

// TestBadFiles ensures that what is no job file at all is refused quickly and with a sentence.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.yaml")
	if err := os.WriteFile(huge, []byte("run: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 50<<20); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary.yaml")
	if err := os.WriteFile(binary, []byte("\x7fELF\x02\x01\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		huge:   huge + ": is larger than 1048576 bytes (data belongs into the workdir or a bucket)",
		binary: binary + ":1:1: is not text: it has the control character U+007F (give a text file)",
		dir:    "read job file: read " + dir + ": is a directory",
	} {
		_, err := ParseFile(path, Options{})
		if err == nil {
			t.Errorf("%s is accepted", path)
		} else if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	r := NewRedactor(map[string]string{
		"TOKEN": "hunter2", "OVERLAP": "er2end", "URL": "a/b c&d", "LINES": "one\ntwo", "SHORT": "yes", "EMPTY": "",
	})
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "all is well", "all is well"},
		{"one", "token hunter2 was refused", "token [redacted] was refused"},
		{"two side by side", "hunter2hunter2", "[redacted]"},
		{"overlapping", "x hunter2end x", "x [redacted] x"},
		{"in a query", "GET /?k=a%2Fb+c%26d", "GET /?k=[redacted]"},
		{"in a path", "GET /a%2Fb%20c&d", "GET /[redacted]"},
		{"quoted", `open "one\ntwo"`, `open "[redacted]"`},
		{"too short to hide", "yes", "yes"},
	} {
		if got := r.Redact(c.in); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// However secrets overlap in a text, none is left in it, and a text without any is unchanged.
func TestNoSecretSurvivesRedaction(t *testing.T) {
	t.Parallel()
	word := rapid.StringOfN(rapid.SampledFrom([]rune("xyzé")), 0, 8, -1) // letters that "[redacted]" does not have
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(word, 0, 4).Draw(t, "secrets")
		text := strings.Join(rapid.SliceOf(rapid.OneOf(word, rapid.SampledFrom(append(values, " ")))).Draw(t, "text"), "")
		secrets, found := map[string]string{}, false
		for i, value := range values {
			secrets[fmt.Sprint(i)] = value
			found = found || len(value) >= minSecret && strings.Contains(text, value)
		}
		got := NewRedactor(secrets).Redact(text)
		if !found && got != text {
			t.Errorf("%q holds no secret and became %q", text, got)
		}
		for _, value := range values {
			if len(value) >= minSecret && strings.Contains(got, value) {
				t.Errorf("%q is left in %q", value, got)
			}
		}
	})
}

func TestRedactedErrorsKeepTheirKind(t *testing.T) {
	t.Parallel()
	r := NewRedactor(map[string]string{"TOKEN": "hunter2"})
	err := r.Error(fmt.Errorf("open hunter2: %w", fs.ErrNotExist))
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if r.Error(nil) != nil || (*Redactor)(nil).Redact("hunter2") != "hunter2" {
		t.Error("nothing to redact must stay as it is")
	}
}

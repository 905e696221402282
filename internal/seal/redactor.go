package seal

import (
	"net/url"
	"strconv"
	"strings"
)

const (
	// Redacted stands where a secret value was.
	Redacted = "[redacted]"
	// minSecret is the length in bytes from which a value is taken out of texts. A shorter one, such as "1" or "yes",
	// would make them unreadable and guards nothing.
	minSecret = 4
)

// Redactor takes known secret values out of texts that are stored or shown: errors, events, evidence. The zero value, and
// nil, change nothing. It may be used by several goroutines.
type Redactor struct {
	forms []string
}

// NewRedactor makes a redactor for the values of secrets. It also knows them as they look in a quoted string and in a
// URL, which is how libraries put them in their errors.
func NewRedactor(secrets map[string]string) *Redactor {
	seen := map[string]bool{}
	r := &Redactor{}
	for _, value := range secrets {
		if len(value) < minSecret {
			continue
		}
		for _, form := range formsOf(value) {
			if !seen[form] {
				seen[form] = true
				r.forms = append(r.forms, form)
			}
		}
	}
	return r
}

// formsOf lists how a value may look in a text.
func formsOf(value string) []string {
	quoted := strconv.Quote(value)
	return []string{value, quoted[1 : len(quoted)-1], url.QueryEscape(value), url.PathEscape(value)}
}

// Redact returns text with each occurrence of a secret replaced by [Redacted]. Occurrences that overlap are replaced
// together, so that no end of one is left.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	secret := r.mark(text)
	if secret == nil {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !secret[i]:
			b.WriteByte(text[i])
		case i == 0 || !secret[i-1]:
			b.WriteString(Redacted)
		}
	}
	return b.String()
}

// mark says for each byte of text whether it belongs to a secret; nil if none does.
func (r *Redactor) mark(text string) []bool {
	var secret []bool
	for _, form := range r.forms {
		for from := 0; ; from++ {
			at := strings.Index(text[from:], form)
			if at < 0 {
				break
			}
			if secret == nil {
				secret = make([]bool, len(text))
			}
			from += at
			for i := range len(form) {
				secret[from+i] = true
			}
		}
	}
	return secret
}

// Error returns err with its text redacted. errors.Is and errors.As see through it; what they find is not redacted.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := r.Redact(text); clean != text {
		return &redactedError{clean, err}
	}
	return err
}

// redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

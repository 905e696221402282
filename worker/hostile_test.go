package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// tame reports what of a text would act on a terminal, or turn around what is read; "" if nothing does.
func tame(text string) string {
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar) {
			return string(r)
		}
	}
	return ""
}

// Ensure that a name which is odd but printable does no harm anywhere: it is run by no shell, taken for no flag, breaks no
// table, page or JSON, and selects the job that has it.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.worker("--worker", "w\x1b[31m<script>alert(1)</script>\u202e")
	names := []string{
		`a'b"c`, "$(touch " + f.shared + "/run)", "`touch " + f.shared + "/run`", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`,
		"a;b|c&d", "--help", "-n", "é☃漢字", strings.Repeat("x", 256), "%s%n%d", "../../../etc/passwd", "{{.}}", `a\b\n`, "null", "*", "ol:{d}:id", "#1",
	}
	ids := map[string]string{}
	for _, name := range names {
		ids[name] = f.launch("true", "--name="+name)
	}
	for name, id := range ids {
		f.await(id, "SUCCEEDED")
		var shown struct{ Name string }
		_, text := f.show(id)
		if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Name != name {
			t.Errorf("show of %q: %q, %v", name, shown.Name, err)
		}
		if r := f.enqueue("cancel", "--name="+name); r.code != 102 && r.code != 0 || tame(r.out+r.errs) != "" { // its machine may be closing still
			t.Errorf("cancel of all that are called %q: %+v", name, r)
		}
		if r := f.enqueue("show", id); r.code != 0 || tame(r.out) != "" {
			t.Errorf("show of %q: %+v", name, r)
		}
	}
	for _, args := range [][]string{{"queue", "-a"}, {"workers"}, {"machines"}} {
		for _, form := range []string{"table", "wide", "yaml", "json"} {
			if r := f.enqueue(append(args, "-o", form)...); r.code != 0 || tame(r.out+r.errs) != "" {
				t.Errorf("%v -o %s shows %q: %+v", args, form, tame(r.out+r.errs), r)
			}
		}
	}
	for _, path := range []string{"/", "/jobs", "/workers", "/queues/", "/metrics", "/jobs/" + ids[names[3]], "/jobs/" + ids[names[4]]} {
		_, body := w.get(path)
		if strings.Contains(body, "<script>alert(1)") || strings.Contains(body, "<img src=x") || strings.Contains(body, "\x1b") {
			t.Errorf("the page %s has a name in it as it is", path)
		}
	}
	if _, err := os.Stat(filepath.Join(f.shared, "run")); err == nil {
		t.Error("a name was run as a command")
	}
	if strings.Contains(w.log.String(), "\x1b") {
		t.Error("the log has an escape code in it")
	}
}

// Ensure that a name which would act on a terminal, cannot be seen for what it is, or is too long is refused, and that the
// refusal shows it harmlessly.
func TestUnprintableNamesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	for _, name := range []string{
		"a\nb", "a\rb", "\x1b[31mred", "\x1b]0;title\x07", "a\u202eb", "a\u2066b", "\u200f", "a\u200bb", "a\x7f", "\xff\xfe", "a\u0085b", "a\u2028b", strings.Repeat("x", 10_000), strings.Repeat("é", 257),
	} {
		for _, args := range [][]string{
			{"launch", "-d", "--name=" + name, "--", "true"},
			{"launch", "-d", "-o", "json", "--name=" + name, "--", "true"},
			{"cancel", "--name=" + name},
			{"logs", "1" + name},
			{"launch", "-d", "--env", name + "=1", "--", "true"},
			{"launch", "-d", "--secret", name, "--", "true"},
			{name},
		} {
			if strings.HasPrefix(name, "xxx") && slices.Contains(args, "--env") {
				continue // a variable may be called so
			}
			r := f.enqueue(args...)
			if args[0] != "cancel" && r.code != 2 {
				t.Errorf("%q: exit code %d, want it refused: %s", args, r.code, r.errs)
			}
			if bad := tame(r.out + r.errs); bad != "" {
				t.Errorf("%.200q: the answer of %d bytes shows %q: %.300q", args, len(r.errs), bad, r.errs)
			}
		}
	}
	if r := f.enqueue("queue", "-a"); !strings.Contains(r.out+r.errs, "no jobs") {
		t.Errorf("something was submitted: %+v", r)
	}
}

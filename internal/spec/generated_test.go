package spec

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// TestGenerated ensures that the reference and the JSON Schema in docs/ are those of the tables.
func TestGenerated(t *testing.T) {
	for name, want := range map[string]string{"job-file.md": Reference(), "job.schema.json": string(Schema())} {
		path := filepath.Join("../../docs", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("%s is not what the tables say (go generate ./internal/spec):\n%s", path, diff)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// validate checks each document of a job file by the schema, as an editor does.
func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		if err := schema.Validate(v); err != nil {
			return err
		}
	}
}

// TestExamplesFollowTheSchema ensures that every example names the schema, and follows it.
func TestExamplesFollowTheSchema(t *testing.T) {
	schema := compileSchema(t)
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# yaml-language-server: $schema=../docs/job.schema.json\n") {
			t.Errorf("%s does not name the schema", f)
		}
		if err := validate(t, schema, string(text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// allFields calls f with every field of every table, and the place where its example goes.
func allFields(f func(info fieldInfo, wrap string)) {
	for _, s := range []struct {
		section *section
		wrap    string // %s is for a field
	}{
		{taskSection, "%s"},
		{resourcesSection, "resources: {%s}"},
		{entrySection, "resources: {any_of: [{%s}]}"},
		{recoverySection, "resources: {job_recovery: {%s}}"},
		{noticeSection, "on_notice: {%s}"},
		{webhookSection, "secrets: {SLACK_URL: https://x/, HOOK_KEY: k}\nwebhooks: [{url: 'https://x/', %s}]"},
		{mountSection, "file_mounts: {/data: {source: 's3://my-bucket', %s}}"},
		{headerSection, "name: a\nexecution: serial\n%s\n---\nrun: x"},
	} {
		for _, info := range s.section.fields {
			f(info, s.wrap)
		}
	}
}

// TestTables ensures of every field of the tables that its example is accepted by the reader and by the schema, that
// what is certainly wrong is refused by both, and that the reference has all columns.
func TestTables(t *testing.T) {
	schema := compileSchema(t)
	allFields(func(info fieldInfo, wrap string) {
		field := func(value string) string {
			text := strings.Replace(wrap, "%s", info.name+": "+value, 1)
			switch info.name { // what would be there twice
			case "url", "url_secret":
				text = strings.Replace(text, "url: 'https://x/', ", "", 1)
			case "source":
				text = strings.Replace(text, "source: 's3://my-bucket', ", "", 1)
			case "name", "execution":
				text = strings.Replace(strings.TrimPrefix(text, "name: a\n"), "execution: serial\nexecution", "execution", 1)
			}
			return text
		}
		if info.kind == refused {
			if info.instead == "" {
				t.Errorf("%s does not say what to do instead", info.name)
			}
			text := field("[1]")
			if !strings.Contains(text, "run:") {
				text += "\nrun: x"
			}
			if got := problems(t, text, Options{}); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), info.instead) {
				t.Errorf("%s: problems %q do not say %q", info.name, got, info.instead)
			}
			return
		}
		if info.form == "" || info.means == "" || info.example == "" || info.by == "" {
			t.Errorf("%s lacks a column of the reference", info.name)
		}
		opt := Options{Env: map[string]string{"DATA": "x"}, Secret: map[string]string{"API_KEY": "x"}}
		if got := problems(t, field(info.example), opt); got != nil {
			t.Errorf("the reader refuses the example of %s: %q\n%s", info.name, got, field(info.example))
		}
		if err := validate(t, schema, field(info.example)); err != nil {
			t.Errorf("the schema refuses the example of %s: %v", info.name, err)
		}
		wrong := field("[[x, {}]]")
		if got := problems(t, wrong, opt); len(got) == 0 {
			t.Errorf("the reader accepts %s", wrong)
		}
		if err := validate(t, schema, wrong); err == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	})
}

// TestDocsShowJobFiles ensures that the job files in the documents are ones, given what they say is to be given.
func TestDocsShowJobFiles(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	count := 0
	names, err := filepath.Glob("../../docs/how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "../../docs/tutorial.md", "../../docs/reference.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "live:") || strings.HasPrefix(m[1], "retention:") || strings.HasPrefix(m[1], "faults:") {
				continue // settings of a worker, and a world of the simulated cloud
			}
			count++
			for _, what := range problems(t, m[1], Options{}) {
				if !strings.Contains(what, "has no value (give one with") {
					t.Errorf("%s: %s, in\n%s", name, what, m[1])
				}
			}
		}
	}
	if count == 0 {
		t.Error("there are none")
	}
}

// TestReferenceShowsRealProblems ensures that the report in the reference is what a user sees.
func TestReferenceShowsRealProblems(t *testing.T) {
	_, err := Parse("bad.yaml", []byte("name: bad\nresources:\n  cpu: 4\n  priority_class: high\nenvs:\n  OUTLAST_JOB_ID: 5\n"), Options{})
	var all Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, p := range all {
		fmt.Fprintf(&shown, "error: %s\n       %s\n", p, strings.ReplaceAll(p.Frame, "\n", "\n       "))
	}
	if !strings.Contains(Reference(), shown.String()) {
		t.Errorf("the reference does not show\n%s", &shown)
	}
}

package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/render"
)

type shape struct {
	Text  string            `json:"text"`
	Texts map[string]string `json:"texts"`
	Big   int64             `json:"big"`
	Part  float64           `json:"part"`
	Some  *bool             `json:"some"`
	None  []string          `json:"none"`
}

// Ensure that YAML has the shape and the order of JSON.
func TestYAML(t *testing.T) {
	var b strings.Builder
	err := render.YAML(&b, []shape{{Text: "yes", Texts: map[string]string{"a": "1e3", "b": "two\nlines"}, Big: 1 << 60, Part: 0.5, None: []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `- text: "yes"
  texts:
    a: "1e3"
    b: "two\nlines"
  big: 1152921504606846976
  part: 0.5
  some: null
  none: []
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Ensure that whatever text a result holds, both forms give it back as it was and neither acts on a terminal.
func TestDataIsExactAndHarmless(t *testing.T) {
	nasty := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "null", "~", "yes", "0x1f", "1e3", "2026-11-30", "- a", "a: b", "#", "\u009b31m", "\u202eabc", "\U000e0001", "\x1b[31m", "\x00", "\ufeffa", "\u2028", " a ", "a\n\n", "\t", "'", `"`, "%", "@", "|", ">", "&a", "*a", "!!int",
	}))
	rapid.Check(t, func(rt *rapid.T) {
		in := shape{
			Text: nasty.Draw(rt, "text"), Texts: rapid.MapOfN(nasty, nasty, 1, 3).Draw(rt, "texts"), Part: rapid.Float64().Draw(rt, "part"),
			Big: rapid.Int64().Draw(rt, "big"), None: []string{},
		}
		var asJSON, asYAML strings.Builder
		if err := render.JSON(&asJSON, in); err != nil {
			rt.Fatal(err)
		}
		if err := render.YAML(&asYAML, in); err != nil {
			rt.Fatal(err)
		}
		var back shape
		if err := json.Unmarshal([]byte(asJSON.String()), &back); err != nil {
			rt.Fatalf("%s: %v", asJSON.String(), err)
		}
		if diff := cmp.Diff(in, back); diff != "" {
			rt.Fatalf("%s\n%s", asJSON.String(), diff)
		}
		var read struct {
			Text  string
			Texts map[string]string
			Big   int64
			Part  float64
		}
		if err := yaml.Unmarshal([]byte(asYAML.String()), &read); err != nil {
			rt.Fatalf("%s: %v", asYAML.String(), err)
		}
		if read.Text != in.Text || !cmp.Equal(read.Texts, in.Texts) || read.Big != in.Big || read.Part != in.Part {
			rt.Fatalf("%s\nfor %+v", asYAML.String(), in)
		}
		for _, out := range []string{asJSON.String(), asYAML.String()} {
			if strings.ContainsFunc(strings.ReplaceAll(out, "\n", ""), func(r rune) bool {
				return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
			}) {
				rt.Fatalf("%q", out)
			}
		}
	})
}

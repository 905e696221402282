package spec

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// schema is a piece of a JSON Schema.
type schema map[string]any

// The forms of values that several fields share.
var (
	nullSchema = schema{"type": "null"}
	boolSchema = anyOf(schema{"type": "boolean"}, anyCase("yes", "no", "on", "off"))
	textSchema = schema{"type": "string"}
	nameSchema = schema{"type": "string", "minLength": 1, "maxLength": maxName}
	// scalarSchema is text for which no quotes are needed.
	scalarSchema   = schema{"type": []string{"string", "number", "boolean"}}
	variableSchema = schema{"type": "string", "pattern": variableName.String()}
	urlSchema      = schema{"type": "string", "pattern": "^https?://"}
	durationSchema = schema{"type": "string", "pattern": durationForm.String()}
	eventSchema    = anyCase(eventNames()...)
	signalSchema   = anyCase(append(signalNames(), none)...)
	strategySchema = anyCase(strategies()...)
	exitCodeSchema = wholeSchema(0, 255)
	portSchema     = anyOf(wholeSchema(1, 65535), schema{"type": "string", "pattern": portForm.String()})
	configSchema   = idleConfigSchema()
	autostopSchema = anyOf(schema{"type": "boolean"}, wholeSchema(-1, 1<<31-1), schema{"type": "string", "pattern": autostopForm.String()}, autostopSection.schema())

	variablesSchema = schema{
		"type":                 "object",
		"propertyNames":        schema{"pattern": variableName.String()},
		"additionalProperties": schema{"type": []string{"string", "number", "boolean", "null"}},
	}
	estimateSchema     = mapOf(schema{"type": "number", "minimum": 0})
	mountsSchema       = mapOf(anyOf(textSchema, mountSection.schema()))
	acceleratorSchema  = schema{"type": "string", "pattern": acceleratorForm.String()}
	acceleratorsSchema = anyOf(
		acceleratorSchema,
		schema{"type": "object", "minProperties": 1, "additionalProperties": anyOf(schema{"type": "number", "exclusiveMinimum": 0}, nullSchema)},
		schema{"type": "array", "minItems": 1, "items": anyOf(acceleratorSchema, schema{"type": "object", "minProperties": 1, "maxProperties": 1})},
	)
)

func oneOf(words ...string) schema { return schema{"enum": words} }

// anyCase accepts the words whatever the case of their letters, and suggests them as they are.
func anyCase(words ...string) schema {
	var b strings.Builder
	for _, c := range strings.Join(words, "|") {
		lower, upper := strings.ToLower(string(c)), strings.ToUpper(string(c))
		if lower == upper {
			b.WriteRune(c)
			continue
		}
		b.WriteString("[" + upper + lower + "]")
	}
	return anyOf(oneOf(words...), schema{"type": "string", "pattern": "^(" + b.String() + ")$"})
}

// orVariable also accepts what is put in from envs.
func orVariable(form schema) schema {
	return anyOf(form, schema{"type": "string", "pattern": variableUse.String()})
}

func anyOf(forms ...schema) schema { return schema{"anyOf": forms} }

func listOf(item schema) schema { return schema{"type": "array", "minItems": 1, "items": item} }

func mapOf(value schema) schema { return schema{"type": "object", "additionalProperties": value} }

func objectOf(properties map[string]schema) schema {
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

func wholeSchema(least, most int) schema {
	return schema{"type": "integer", "minimum": least, "maximum": most}
}

// amountSchema is a number, or text in a form.
func amountSchema(form *regexp.Regexp) schema {
	return anyOf(schema{"type": "number", "exclusiveMinimum": 0}, schema{"type": "string", "pattern": form.String()})
}

func idleConfigSchema() schema {
	properties := make(map[string]schema, len(idleConfig))
	for _, name := range idleConfig {
		properties[name] = schema{}
	}
	return objectOf(properties)
}

// schema is the JSON Schema of a mapping with the fields of the section. As everywhere in a job file, null is for a
// field that is not there.
func (s *section) schema() schema {
	properties := make(map[string]schema, len(s.fields))
	for _, f := range s.fields {
		if f.kind == refused {
			continue
		}
		p := anyOf(f.schema, nullSchema)
		if f.means != "" {
			p["description"] = plainText(f.means)
		}
		if f.kind == older {
			p["deprecated"] = true
		}
		properties[f.name] = p
	}
	return objectOf(properties)
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plainText takes the marks of Markdown out of a text.
func plainText(s string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(s, "$1"), "`", "")
}

// SchemaID names the JSON Schema of job files.
const SchemaID = "https://github.com/outlast-dev/outlast/docs/job.schema.json"

// Schema returns the JSON Schema of a document of a job file, for editors. What it accepts may still be refused: it
// knows the form of each field, not what fields say together.
func Schema() []byte {
	document := taskSection.schema()
	properties := document["properties"].(map[string]schema)
	properties["execution"] = anyOf(oneOf("serial"), nullSchema) // an editor does not tell a header from a task
	document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	document["$id"] = SchemaID
	document["title"] = "Outlast job file"
	document["description"] = "A task, or the first document of a chain of tasks."
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil // cannot happen: maps of text and numbers
	}
	return append(text, '\n')
}

// strategies are the names of what may follow a lost machine.
func strategies() []string {
	return []string{string(job.EagerNextRegion), string(job.Failover), string(job.Never)}
}

// quoted lists words for the reference.
func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

package spec

import (
	"fmt"
	"strings"
)

// Reference returns the reference of the job file in Markdown, made of the tables that files are read with.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceStart)
	for _, s := range []*section{taskSection, resourcesSection, recoverySection, mountSection, noticeSection, webhookSection, headerSection} {
		s.write(&b)
	}
	writeRefused(&b)
	b.WriteString(referenceEnd)
	return b.String()
}

// write writes the table of a section.
func (s *section) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", s.title)
	if s.intro != "" {
		b.WriteString(s.intro + "\n\n")
	}
	b.WriteString("| Field | Form | Default | Meaning | Example | Who honours it |\n|---|---|---|---|---|---|\n")
	for _, f := range s.fields {
		if f.kind == refused {
			continue
		}
		name := "`" + f.name + "`"
		switch f.kind {
		case extension:
			name += " ⁺"
		case older:
			name += " °"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | `%s: %s` | %s |\n", name, f.form, f.unset, f.means, f.name, f.example, f.by)
	}
}

// writeRefused lists what SkyPilot has and Outlast has not, with the way out.
func writeRefused(b *strings.Builder) {
	b.WriteString("\n## Refused, by name\n\n| Field | What to do instead |\n|---|---|\n")
	for _, list := range []struct {
		path    string
		section *section
	}{{"", taskSection}, {"", headerSection}, {"resources.", entrySection}, {"config.", configSection}, {"file_mounts.*.", mountSection}} {
		for _, f := range list.section.fields {
			if f.kind == refused && f.name != "any_of" && f.name != "ordered" {
				fmt.Fprintf(b, "| `%s%s` | %s |\n", list.path, f.name, f.instead)
			}
		}
	}
	b.WriteString(refusedForms)
}

const referenceStart = `# Job files

<!-- Made by ` + "`go generate ./internal/spec`" + ` from the tables that job files are read with. Do not edit. -->

A job file is YAML in the form of SkyPilot's tasks. One document is a task. Several documents are a chain: each a task,
with an optional first one that is none. All fields are optional, and ` + "`null`" + ` is for a field that is not there.
Everything that is wrong with a file is told at once, with line and column, and nothing is submitted then:

` + "```console" + `
$ enqueue launch bad.yaml
error: bad.yaml:3:3: resources.cpu: is not a field of a job file (did you mean cpus?)
       3 |   cpu: 4
         |   ^~~
error: bad.yaml:4:3: resources.priority_class: is known but not supported (it is a class of Kubernetes: write priority: and a number)
       4 |   priority_class: high
         |   ^~~~~~~~~~~~~~
error: bad.yaml:6:3: envs.OUTLAST_JOB_ID: is set by Outlast itself for every task
       6 |   OUTLAST_JOB_ID: ...
         |   ^~~~~~~~~~~~~~
` + "```" + `

Values of ` + "`envs` and `secrets`" + ` are never shown. With ` + "`-o json`" + ` each problem is an object with ` + "`file, line, column, field, message`" + `
and ` + "`hint`" + `.

Editors that know JSON Schema complete and check job files by [job.schema.json](job.schema.json), which ` + "`enqueue schema`" + ` prints.
With the YAML language server, this line at the start of a file is enough:

` + "```yaml" + `
# yaml-language-server: $schema=https://raw.githubusercontent.com/outlast-dev/outlast/main/docs/job.schema.json
` + "```" + `

In the tables, ⁺ is for what SkyPilot does not have, and ° for an older or another spelling. A duration is a number with a unit, such
as ` + "`30s`, `90m`, `2h`, `1d`, `1w` or `1h30m`" + `. The last column says who honours a field:

* *Outlast*: its workers, and *the agent*: its program on the node. These hold with every provider.
* *The choice*: only machines that have it are chosen. ` + "`enqueue plan FILE`" + ` tells which, in order, and what ruled out the others.
* *The provider*: not every one can. One that refuses a field is left out for the job; one on which it has no effect may be
  chosen. Both are said by ` + "`enqueue check` and `plan`" + `, and nothing is ignored in silence.
* *Nobody*: the field has no meaning here, and leaving it out changes nothing. Commands that read a file note what is
  not honoured so.
`

const refusedForms = "| `execution: parallel` | submit the tasks as jobs of their own |\n" +
	"| `workdir: {url: ...}` | clone the repository in `setup` |\n" +
	"| `api_server_access: true` | there is no API server: to submit jobs from a job, install `enqueue` in `setup`, and give `OUTLAST_REDIS` as a secret |\n" +
	"| `accelerators: 80GB+` | name the accelerators that have so much memory |\n" +
	"| a bucket that is to be made (`name` with a local `source`, or without `store`) | make it first, and name it by `source` |\n" +
	"| a local `source` with `mode: MOUNT` | `mode: COPY` |\n"

const referenceEnd = `
## Differences from SkyPilot

* A value of ` + "`envs`" + ` reaches the job as it is written: ` + "`true` stays `true`, and `1_000` stays `1_000`" + `.
* ` + "`${VAR}`" + ` is left to bash, but for ` + "`file_mounts` and `workdir`" + `, as there. What is not among ` + "`envs`" + ` is an error in these.
* Unknown fields are errors everywhere.
* In a chain, flags of ` + "`enqueue launch`" + ` that stand for a field hold for every task. (SkyPilot ignores them there.)
* Relative paths of ` + "`workdir` and `file_mounts`" + ` start where the job file is.
`

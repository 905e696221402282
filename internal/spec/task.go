package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlast-dev/outlast/internal/job"
)

const (
	maxName  = 256 // runes, SkyPilot's column width
	maxTasks = 60  // the ids of all tasks of a job must fit into one environment variable, whatever the names

	maxNumNodes = 10_000 // of one task; more is a slip
)

// decoder turns the documents of a file into a job.
type decoder struct {
	*report
	opt     Options
	job     Job
	command string // the run of the only task, instead of a file; "" if there is a file

	prioritySet bool
	priorityAt  position
	names       map[string]position // of the tasks so far
	secrets     map[string]bool     // names of those of all tasks
	wanted      []wantedSecret
}

// read fills the job from all documents.
func (d *decoder) read(docs []*node) {
	header, tasks := d.header(docs)
	if len(tasks) == 0 {
		d.add(position{}, "", "has no task", "a task is a document with a run section")
		return
	}
	if len(tasks) > maxTasks {
		d.add(tasks[maxTasks].at, "", fmt.Sprintf("has %d tasks", len(tasks)), fmt.Sprintf("a job has at most %d", maxTasks))
		return
	}
	base := filepath.Base(d.file)
	d.jobName(header, tasks, strings.TrimSuffix(base, filepath.Ext(base)))
	for i, n := range tasks {
		if !d.isMapping(n, "task") {
			continue
		}
		d.task(n, i, len(tasks))
		if header == nil && len(tasks) == 1 {
			d.jobFields(n)
		} else {
			d.notJobFields(n)
		}
	}
	d.checkWanted()
}

// header splits off the first document of a chain if it only names the job.
func (d *decoder) header(docs []*node) (*node, []*node) {
	if len(docs) == 0 || docs[0].kind != kindMapping || len(docs[0].fields) == 0 {
		return nil, docs
	}
	h := docs[0]
	executes := false
	for _, f := range h.fields {
		if _, ok := headerSection.find(f.name); !ok {
			return nil, docs
		}
		executes = executes || f.name == "execution"
	}
	if len(docs) == 1 && !executes {
		return nil, docs // a task without a run section, as in SkyPilot
	}
	if n := h.get("execution"); n != nil {
		switch mode := d.asText(n, "execution"); mode {
		case "serial", "":
		case "parallel":
			d.add(n.at, "execution", "parallel is known but not supported", "submit the tasks as jobs of their own")
		default:
			d.add(n.at, "execution", "is "+quote(mode), "it must be serial")
		}
	}
	d.checkFields(h, "", headerSection)
	d.jobFields(h)
	return h, docs[1:]
}

// jobName finds the name of the job: the command line's, the header's, that of the only task, or fallback.
func (d *decoder) jobName(header *node, tasks []*node, fallback string) {
	name := ""
	if n := header.get("name"); n != nil {
		name = d.name(n, "name")
	}
	if n := tasks[0].get("name"); name == "" && len(tasks) == 1 && n != nil && n.kind == kindText {
		name = n.text // checked where the task is read
	}
	if d.opt.Name != "" {
		name = d.opt.Name
		if what := badName(name); what != "" {
			d.option("--name", what, "")
			return
		}
	}
	if name == "" {
		name = fallback
	}
	if badName(name) != "" || strings.Trim(name, ".-/") == "" { // "-" is standard input
		name = "job"
	}
	d.job.Request.Name = name
}

// task reads one task of the chain.
func (d *decoder) task(n *node, index, count int) {
	n = d.override(n)
	d.checkFields(n, "", taskSection)
	var t job.TaskRequest
	t.Name = d.taskName(n, index, count)
	t.Resources, t.Recovery = d.resources(n.get("resources"))
	t.Envs = d.variables(field{"envs", n.at, n.get("envs")}, d.opt.Env, "--env")
	secrets := d.variables(field{"secrets", n.at, n.get("secrets")}, d.opt.Secret, "--secret")
	t.Secrets = d.secretNames(n, t.Envs, secrets)
	d.job.Secrets = append(d.job.Secrets, secrets)
	vars := substitution{envs: t.Envs, secrets: secrets}
	if vars.envs == nil {
		vars.envs = map[string]string{}
	}
	d.job.Workdirs = append(d.job.Workdirs, d.workdir(n.get("workdir"), vars))
	var sources []string
	for _, m := range d.mounts(n, vars) {
		t.Files = append(t.Files, m.FileMount)
		sources = append(sources, m.local)
	}
	d.job.Mounts = append(d.job.Mounts, sources)
	for _, read := range []struct {
		field string
		into  func(v *node, path string)
	}{
		{"num_nodes", func(v *node, path string) { t.Nodes = d.nodes(v, path) }},
		{"setup", func(v *node, path string) { t.Setup = d.asText(v, path) }},
		{"run", func(v *node, path string) { t.Run = d.asText(v, path) }},
		{"event_callback", func(v *node, path string) { t.EventCallback = d.asText(v, path) }},
		{"max_duration", func(v *node, path string) { t.MaxDuration = d.duration(v, path, maxDuration) }},
		{"max_wait", func(v *node, path string) { t.MaxWait = d.duration(v, path, maxDuration) }},
		{"grace", func(v *node, path string) { t.Grace = d.duration(v, path, maxGrace) }},
		{"on_notice", func(v *node, _ string) { t.OnNotice = d.onNotice(v) }},
		{"inputs", d.estimate},
		{"outputs", d.estimate},
		{"api_server_access", d.apiServerAccess},
		{"config", d.config},
		{"experimental", func(v *node, _ string) { d.experimental(v) }},
	} {
		if v := n.get(read.field); v != nil {
			read.into(v, read.field)
		}
	}
	if d.command != "" {
		t.Run = d.command
	}
	if t.Run == "" {
		d.idle(n)
	}
	d.job.Request.Tasks = append(d.job.Request.Tasks, t)
}

// idle notes what a task without run does not do. SkyPilot would make a machine for it.
func (d *decoder) idle(n *node) {
	for _, name := range []string{"setup", "workdir", "file_mounts", "storage_mounts"} {
		if n.get(name) != nil {
			d.unused(name, "a task without run succeeds at once and gets no machine")
		}
	}
}

// estimate reads what a task is thought to read or write.
func (d *decoder) estimate(n *node, path string) {
	if !d.isMapping(n, path) {
		return
	}
	for _, f := range n.fields {
		if !amountPattern.MatchString(f.value.text) {
			d.add(f.value.at, join(path, f.name), "is "+describe(f.value), "write how many GB, such as 150 or 0.5")
		}
	}
	d.unused(path, "offers are chosen by their prices, whatever is transferred")
}

// amountPattern is a number that may be 0.
var amountPattern = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?$`)

// unused notes that a field is understood and has no effect.
func (d *decoder) unused(path, why string) {
	note := path + ": no effect: " + why
	if !slices.Contains(d.job.Unused, note) { // another task, or an entry of any_of, has it as well
		d.job.Unused = append(d.job.Unused, note)
	}
}

// taskName returns the name of a task. The only task of a job shares its name; in a chain, one without a name gets
// that of the job and its index.
func (d *decoder) taskName(n *node, index, count int) string {
	name, at := "", n.at
	if v := n.get("name"); v != nil {
		name, at = d.name(v, "name"), v.at
	}
	if count == 1 {
		if name == "" || d.opt.Name != "" {
			name = d.job.Request.Name
		}
		return name
	}
	if name == "" {
		name = fmt.Sprintf("%s-%d", shorten(d.job.Request.Name, maxName-4), index)
	}
	if first, taken := d.names[name]; taken {
		d.add(at, "name", fmt.Sprintf("%s is also the task in line %d", quote(name), first.line), "tasks of a job have different names")
	}
	d.names[name] = at
	return name
}

// name reads the name of a job or a task.
func (d *decoder) name(n *node, path string) string {
	s := d.asText(n, path)
	if what := badName(s); s != "" && what != "" {
		d.add(n.at, path, what, "")
		return ""
	}
	return s
}

// badName says what is wrong with a name, or "". Names are shown in tables and terminals, so they are printable.
func badName(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case utf8.RuneCountInString(s) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return quote(s) + " has characters that can not be printed"
	}
	return ""
}

func shorten(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes])
	}
	return s
}

// nodes reads a number of machines. One is what a task has anyway.
func (d *decoder) nodes(n *node, path string) int {
	v, _ := d.integer(n, path, 1, maxNumNodes)
	if v == 1 {
		return 0
	}
	return v
}

// apiServerAccess accepts that the job wants nothing of a server that is not there.
func (d *decoder) apiServerAccess(n *node, path string) {
	if d.boolean(n, path) {
		d.add(n.at, path, "is true, but there is no API server that a job could reach", "remove it; to submit jobs from a job, install enqueue in setup, and give OUTLAST_REDIS as a secret")
	}
}

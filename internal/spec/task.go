package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlast-dev/outlast/internal/job"
)

const (
	maxName  = 256 // runes, SkyPilot's column width
	maxTasks = 60  // the ids of all tasks of a job must fit into one environment variable, whatever the names
)

// decoder turns the documents of a file into a job.
type decoder struct {
	*report
	opt Options
	job Job

	prioritySet bool
	priorityAt  position
	names       map[string]position // of the tasks so far
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
		if d.isMapping(n, "task") {
			d.task(n, i, len(tasks))
		}
	}
}

// header splits off the first document of a chain if it only names the job.
func (d *decoder) header(docs []*node) (*node, []*node) {
	if len(docs) == 0 || docs[0].kind != kindMapping || len(docs[0].fields) == 0 {
		return nil, docs
	}
	h := docs[0]
	executes := false
	for _, f := range h.fields {
		if _, ok := headerFields()[f.name]; !ok {
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
			d.add(n.at, "execution", "parallel is known but not supported yet", "submit the tasks as jobs of their own")
		default:
			d.add(n.at, "execution", "is "+quote(mode), "it must be serial")
		}
	}
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
	d.checkFields(n, "", taskFields())
	var t job.TaskRequest
	t.Name = d.taskName(n, index, count)
	t.Resources, t.Recovery = d.resources(n.get("resources"))
	if v := n.get("num_nodes"); v != nil && (v.kind != kindInteger || v.integer != 1) {
		d.add(v.at, "num_nodes", "is known but not supported yet, except 1", "a task runs on one machine: remove it")
	}
	if v := n.get("setup"); v != nil {
		t.Setup = d.asText(v, "setup")
	}
	if v := n.get("run"); v != nil {
		t.Run = d.asText(v, "run")
	}
	t.Envs = d.variables(field{"envs", n.at, n.get("envs")}, d.opt.Env, "--env")
	secrets := d.variables(field{"secrets", n.at, n.get("secrets")}, d.opt.Secret, "--secret")
	t.Secrets = d.secretNames(n, t.Envs, secrets)
	d.job.Secrets = append(d.job.Secrets, secrets)
	d.job.Workdirs = append(d.job.Workdirs, d.workdir(n.get("workdir")))
	d.job.Request.Tasks = append(d.job.Request.Tasks, t)
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

// workdir returns the path of a local folder, relative ones from where the file is.
func (d *decoder) workdir(n *node) string {
	if n == nil {
		return ""
	}
	const right = "it must be a local folder"
	if n.kind == kindMapping {
		d.add(n.at, "workdir", "is a git repository, which is known but not supported yet", right)
		return ""
	}
	dir := d.asText(n, "workdir")
	switch {
	case dir == "":
		return ""
	case strings.Contains(dir, "://") || strings.HasPrefix(dir, "git@"):
		d.add(n.at, "workdir", "is the address of something remote, which is not supported", right)
		return ""
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		home, err := os.UserHomeDir()
		if err != nil {
			d.add(n.at, "workdir", "names a home folder, but there is none", "write the whole path")
			return ""
		}
		dir = filepath.Join(home, dir[1:])
	case !filepath.IsAbs(dir) && n.at.flag == "":
		dir = filepath.Join(d.opt.Dir, dir)
	}
	if d.opt.Look == nil {
		return dir
	}
	if info, err := d.opt.Look(dir); err != nil || !info.IsDir() {
		d.add(n.at, "workdir", quote(n.text)+" is not a folder", right)
	}
	return dir
}

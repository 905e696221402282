package spec

import "slices"

// configSection is what config may hold: settings of SkyPilot that a task may set for itself. Those of clouds that
// Outlast has no provider for concern no machine that a job can get, so that leaving them out changes nothing. A setting
// that would change something is refused.
var configSection = &section{
	fields: []fieldInfo{
		{name: "kubernetes"}, {name: "slurm"}, {name: "ssh"}, {name: "azure"}, {name: "oci"}, {name: "nebius"}, {name: "runpod"}, {name: "vast"},
		{name: "aws", kind: refused, instead: "remove it: how machines are made is set where the worker is"},
		{name: "gcp", kind: refused, instead: "remove it: how machines are made is set where the worker is"},
		{name: "docker", kind: refused, instead: "run docker in setup or run, with the options that it needs"},
		{name: "nvidia_gpus", kind: refused, instead: "use an image that has it set"},
		{name: "hooks", kind: refused, instead: "write setup, event_callback or on_notice"},
		{name: "jobs", kind: refused, instead: "it belongs into the settings of the worker"},
		{name: "api_server", kind: refused, instead: "remove it: there is no API server"},
		{name: "allowed_clouds", kind: refused, instead: "write resources.any_of with an entry for each cloud"},
		{name: "active_workspace", kind: refused, instead: "remove it: there are no workspaces"},
		{name: "workspaces", kind: refused, instead: "remove it: there are no workspaces"},
	},
}

// idleConfig are the settings without effect.
var idleConfig = configSection.served()

// config checks the settings of a task.
func (d *decoder) config(n *node, path string) {
	if d.isMapping(n, path) {
		d.checkFields(n, path, configSection)
		for _, f := range n.fields {
			if slices.Contains(idleConfig, f.name) && f.value.kind != kindNull {
				d.unused(join(path, f.name), "it is about machines that no provider here has")
			}
		}
	}
}

// experimental checks the older spelling of config.
func (d *decoder) experimental(n *node) {
	if !d.isMapping(n, "experimental") {
		return
	}
	for _, f := range n.fields {
		switch {
		case f.name != "config_overrides":
			d.add(f.at, join("experimental", f.name), "is not a field of a job file", "experimental has config_overrides only")
		case f.value.kind != kindNull:
			d.config(f.value, "experimental.config_overrides")
		}
	}
}

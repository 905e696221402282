package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/didyoumean"
)

// support says what becomes of a field: served, or known from SkyPilot and refused, with what to do instead.
type support struct {
	refused bool
	instead string
}

var served = support{}

func refused(instead string) support { return support{refused: true, instead: instead} }

// fieldTable lists the fields of one kind of mapping.
type fieldTable map[string]support

// The fields of SkyPilot's task YAML (docs/source/reference/yaml-spec.rst), all of them.
func headerFields() fieldTable {
	return fieldTable{"name": served, "execution": served}
}

func taskFields() fieldTable {
	return fieldTable{
		"name": served, "resources": served, "envs": served, "secrets": served, "workdir": served,
		"setup": served, "run": served, "num_nodes": served, // num_nodes: 1 only

		"execution":         refused("it belongs into a first document that has only name and execution"),
		"file_mounts":       refused("fetch the files in setup or run"),
		"storage_mounts":    refused("fetch the files in setup or run"),
		"volumes":           refused("remove it"),
		"config":            refused("remove it"),
		"experimental":      refused("remove it"),
		"event_callback":    refused("remove it"),
		"api_server_access": refused("remove it"),
		"service":           refused("it describes a service, not a job"),
		"pool":              refused("it describes a pool, not a job"),
		"inputs":            refused("remove it"),
		"outputs":           refused("remove it"),
	}
}

func resourceFields() fieldTable {
	t := candidateFields()
	t["any_of"], t["ordered"] = served, served
	return t
}

// candidateFields are those of one entry of any_of or ordered.
func candidateFields() fieldTable {
	const infra = "write infra: cloud/region/zone"
	return fieldTable{
		"infra": served, "cpus": served, "memory": served, "use_spot": served,
		"job_recovery": served, "priority": served,

		"cloud":                     refused(infra),
		"region":                    refused(infra),
		"zone":                      refused(infra),
		"spot_recovery":             refused("write job_recovery"),
		"any_of":                    refused("it stands directly under resources"),
		"ordered":                   refused("it stands directly under resources"),
		"accelerators":              refused("remove it"),
		"accelerator_args":          refused("remove it"),
		"instance_type":             refused("ask for cpus and memory"),
		"max_hourly_cost":           refused("remove it"),
		"disk_size":                 refused("remove it"),
		"disk_tier":                 refused("remove it"),
		"local_disk":                refused("remove it"),
		"network_tier":              refused("remove it"),
		"image_id":                  refused("install what is needed in setup"),
		"ports":                     refused("remove it"),
		"labels":                    refused("remove it"),
		"autostop":                  refused("remove it: the machine of a job ends with the job"),
		"volumes":                   refused("remove it"),
		"priority_class":            refused("write priority: and a number"),
		"_cluster_config_overrides": refused("remove it"),
	}
}

func recoveryFields() fieldTable {
	return fieldTable{"strategy": served, "max_restarts_on_errors": served, "recover_on_exit_codes": served}
}

// checkFields reports the fields of n that are not served.
func (r *report) checkFields(n *node, path string, table fieldTable) {
	for _, f := range n.fields {
		s, known := table[f.name]
		switch {
		case !known:
			r.add(f.at, join(path, f.name), "is not a field of a job file", suggestion(f.name, table))
		case s.refused:
			r.add(f.at, join(path, f.name), "is known but not supported yet", s.instead)
		}
	}
}

// suggestion says what the writer of an unknown field may have meant.
func suggestion(name string, here fieldTable) string {
	if near := didyoumean.Nearest(name, slices.Collect(maps.Keys(here))); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for _, elsewhere := range []struct {
		table fieldTable
		where string
	}{
		{taskFields(), "at the top of the task"},
		{resourceFields(), "under resources"},
		{recoveryFields(), "under resources.job_recovery"},
	} {
		s, ok := elsewhere.table[name]
		switch {
		case ok && s.refused:
			return "SkyPilot knows it " + elsewhere.where + ", but it is not supported yet"
		case ok:
			return "it belongs " + elsewhere.where
		}
	}
	var names []string
	for n, s := range here {
		if !s.refused {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return "fields here are " + strings.Join(names, ", ")
}

package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// Field names what a job file may ask of a provider and what is no property of an offer. It is written as the path of
// the field below a task, with the kind of value after a space where that matters.
type Field string

// The fields.
const (
	FieldImage           Field = "resources.image_id"
	FieldContainer       Field = "resources.image_id docker"
	FieldPorts           Field = "resources.ports"
	FieldLabels          Field = "resources.labels"
	FieldDiskSize        Field = "resources.disk_size"
	FieldDiskTier        Field = "resources.disk_tier"
	FieldLocalDisk       Field = "resources.local_disk"
	FieldNetworkTier     Field = "resources.network_tier"
	FieldAcceleratorArgs Field = "resources.accelerator_args"
	FieldNodes           Field = "num_nodes" // more than one
	FieldS3              Field = "file_mounts s3"
	FieldGS              Field = "file_mounts gs"
	FieldHTTPS           Field = "file_mounts https"
	FieldOtherSource     Field = "file_mounts other" // any other store
	FieldMount           Field = "file_mounts MOUNT" // MOUNT and MOUNT_CACHED
)

// Path is the field's place in a job file.
func (f Field) Path() string {
	path, _, _ := strings.Cut(string(f), " ")
	return path
}

// ofWant are the fields that belong to one acceptable kind of machine, and when one is asked for.
var ofWant = []struct {
	field Field
	asked func(job.Want) bool
}{
	{FieldImage, func(w job.Want) bool { return w.Image != "" && !isContainer(w.Image) }},
	{FieldContainer, func(w job.Want) bool { return isContainer(w.Image) }},
	{FieldPorts, func(w job.Want) bool { return len(w.Ports) > 0 }},
	{FieldLabels, func(w job.Want) bool { return len(w.Labels) > 0 }},
	{FieldDiskSize, func(w job.Want) bool { return w.DiskGB > 0 }},
	{FieldDiskTier, func(w job.Want) bool { return w.DiskTier != "" }},
	{FieldLocalDisk, func(w job.Want) bool { return w.LocalDisk != "" }},
	{FieldNetworkTier, func(w job.Want) bool { return w.NetworkTier != "" }},
	{FieldAcceleratorArgs, func(w job.Want) bool { return len(w.AcceleratorArgs) > 0 }},
}

// ofTask are the fields that hold for the whole task, whichever machine it gets.
var ofTask = []struct {
	field Field
	asked func(job.TaskRequest) bool
}{
	{FieldNodes, func(t job.TaskRequest) bool { return t.Nodes > 1 }},
	{FieldS3, func(t job.TaskRequest) bool { return hasSource(t, FieldS3) }},
	{FieldGS, func(t job.TaskRequest) bool { return hasSource(t, FieldGS) }},
	{FieldHTTPS, func(t job.TaskRequest) bool { return hasSource(t, FieldHTTPS) }},
	{FieldOtherSource, func(t job.TaskRequest) bool { return hasSource(t, FieldOtherSource) }},
	{FieldMount, func(t job.TaskRequest) bool {
		return slices.ContainsFunc(t.Files, func(m job.FileMount) bool {
			return m.Source != "" && strings.HasPrefix(strings.ToUpper(m.Mode), "MOUNT")
		})
	}},
}

// Fields are all of them, in the order in which they are told.
func Fields() []Field {
	var all []Field
	for _, f := range ofWant {
		all = append(all, f.field)
	}
	for _, f := range ofTask {
		all = append(all, f.field)
	}
	return all
}

// TaskFields are the fields that a task asks for beside its resources.
func TaskFields(t job.TaskRequest) []Field {
	var asked []Field
	for _, f := range ofTask {
		if f.asked(t) {
			asked = append(asked, f.field)
		}
	}
	return asked
}

func wantFields(w job.Want) []Field {
	var asked []Field
	for _, f := range ofWant {
		if f.asked(w) {
			asked = append(asked, f.field)
		}
	}
	return asked
}

func isContainer(image string) bool { return strings.HasPrefix(image, "docker:") }

func hasSource(t job.TaskRequest, f Field) bool {
	return slices.ContainsFunc(t.Files, func(m job.FileMount) bool { return m.Source != "" && sourceField(m.Source) == f })
}

func sourceField(source string) Field {
	scheme, _, _ := strings.Cut(source, "://")
	switch scheme {
	case "s3":
		return FieldS3
	case "gs":
		return FieldGS
	case "https":
		return FieldHTTPS
	default:
		return FieldOtherSource
	}
}

// Effect is what becomes of a field.
type Effect string

// The effects.
const (
	Honoured Effect = "honoured"
	NoEffect Effect = "no_effect" // the job runs as if the field were not there, and its user is told
	Refused  Effect = "refused"   // the job cannot run there
)

// Treatment is what a provider makes of a field.
type Treatment struct {
	Effect Effect `json:"effect"`
	Why    string `json:"why,omitempty"`     // for NoEffect and Refused: the reason, such as "runs no containers" after the provider's name
	Way    string `json:"way_out,omitempty"` // for Refused: what to write instead
}

// Support is what a provider makes of each field. It is data, so that those who know no provider can judge with it.
type Support map[Field]Treatment

// of is the treatment of a field. A provider of another version may not know it: then it would be ignored, and that is
// said.
func (s Support) of(f Field) Treatment {
	if t, ok := s[f]; ok {
		return t
	}
	return Treatment{Effect: NoEffect, Why: "does not know this field"}
}

// refusal says why a provider cannot run what asks for these fields, or "".
func (s Support) refusal(provider string, asked []Field) string {
	var why []string
	for _, f := range asked {
		if t := s.of(f); t.Effect == Refused {
			why = append(why, fmt.Sprintf("%s: %s %s: %s", f.Path(), provider, t.Why, t.Way))
		}
	}
	return strings.Join(why, "; ")
}

// Note says that a field of a task has no effect at a provider.
type Note struct {
	Field    string `json:"field"` // path in the job file, below the task
	Provider string `json:"provider"`
	Why      string `json:"why"`
}

// String returns "resources.labels: no effect on local, which ...".
func (n Note) String() string {
	return fmt.Sprintf("%s: no effect on %s, which %s", n.Field, n.Provider, n.Why)
}

// notes lists what has no effect at the providers of the offers that may be taken.
func notes(in Input, order []Ranked) []Note {
	var out []Note
	all := wants(in.Resources)
	for _, r := range order {
		support, known := in.Support[r.Offer.Provider]
		if r.Standing > Late || !known {
			continue
		}
		for _, f := range append(wantFields(all[r.entry]), in.Beyond...) {
			n := Note{Field: f.Path(), Provider: r.Offer.Provider, Why: support.of(f).Why}
			if support.of(f).Effect == NoEffect && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	slices.SortFunc(out, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Provider, b.Provider))
	})
	return out
}

package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// maxWants bounds the kinds of machines of a task: choices multiply.
const maxWants = 200

// candidate is what one mapping of resources asks for, with what SkyPilot writes beside it though it belongs to the
// job.
type candidate struct {
	want     job.Want
	choices  []accelerator     // of which one will do; none or one is in want
	ordered  bool              // they are tried in this order
	images   map[string]string // by region, if there is not one for all
	imagesAt position
	recovery job.Recovery
	at       position
}

// resources reads the resources of a task. Fields outside any_of and ordered are defaults for their entries.
func (d *decoder) resources(n *node) (job.Resources, job.Recovery) {
	const path = "resources"
	if n == nil {
		return job.Resources{Any: []job.Want{{}}}, job.Recovery{}
	}
	if !d.isMapping(n, path) {
		return job.Resources{}, job.Recovery{}
	}
	d.checkFields(n, path, resourcesSection)
	base := d.candidate(n, path, candidate{at: n.at})
	anyOf, ordered := n.get("any_of"), n.get("ordered")
	var out job.Resources
	recovery := base.recovery
	switch {
	case anyOf != nil && ordered != nil:
		d.add(ordered.at, "resources.ordered", "is given together with any_of", "keep one of the two")
	case anyOf != nil:
		out, recovery = d.entries(anyOf, "resources.any_of", base)
	case ordered != nil:
		out, recovery = d.entries(ordered, "resources.ordered", base)
		out.Ordered = true
	default:
		out = job.Resources{Any: d.wants(base), Ordered: base.ordered}
	}
	if len(out.Any) > maxWants {
		d.add(n.at, path, fmt.Sprintf("is %d kinds of machines", len(out.Any)), fmt.Sprintf("a task has at most %d", maxWants))
		out.Any = nil
	}
	return out, recovery
}

// entries reads the entries of any_of or ordered.
func (d *decoder) entries(n *node, path string, base candidate) (job.Resources, job.Recovery) {
	var out job.Resources
	if n.kind != kindList || len(n.items) == 0 {
		d.add(n.at, path, "is "+describe(n), "it is a list of resources, such as [{use_spot: true}, {use_spot: false}]")
		return out, base.recovery
	}
	// A set of accelerators is a choice as any_of is, so the two go together. An order of its own does not.
	ordered := strings.HasSuffix(path, ".ordered")
	if len(base.choices) > 1 && (base.ordered || ordered) {
		d.add(n.at, path, "is given together with several accelerators", "write one accelerator in each entry")
	}
	var first candidate
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		c := base
		if item.kind != kindNull {
			if !d.isMapping(item, at) {
				continue
			}
			d.checkFields(item, at, entrySection)
			c = d.candidate(item, at, base)
			if len(c.choices) > 1 && (c.ordered || ordered) && len(base.choices) <= 1 {
				d.add(item.at, at+".accelerators", "names several", "write an entry for each of them")
			}
		}
		if i == 0 {
			first = c
		}
		if !sameRecovery(c.recovery, first.recovery) {
			d.add(c.at, at+".job_recovery", "differs from that of the entry before", "it holds for the whole task: write it once, directly under resources")
		}
		for _, w := range d.wants(c) {
			// Entries become alike when a flag stands over what told them apart.
			if !slices.ContainsFunc(out.Any, func(o job.Want) bool { return reflect.DeepEqual(o, w) }) {
				out.Any = append(out.Any, w)
			}
		}
		if len(out.Any) > maxWants {
			break
		}
	}
	return out, first.recovery
}

// wants lists the kinds of machines that c stands for: one for each accelerator it leaves the choice of, in each region
// it has an image for.
func (d *decoder) wants(c candidate) []job.Want {
	out := []job.Want{c.want}
	if len(c.choices) > 1 {
		out = nil
		for _, a := range c.choices {
			w := c.want
			w.Accelerator, w.AcceleratorCount = a.name, a.count
			out = append(out, w)
		}
	}
	if len(c.images) == 0 {
		return out
	}
	regions := sortedKeys(c.images)
	if c.want.Region != "" {
		if _, ok := c.images[c.want.Region]; !ok {
			d.add(c.imagesAt, "resources.image_id", "has no image for the region "+quote(c.want.Region), "add one, or write one image for all regions")
			return nil
		}
		regions = []string{c.want.Region}
	}
	var each []job.Want
	for _, w := range out {
		for _, r := range regions {
			w.Region, w.Image = r, c.images[r]
			each = append(each, w)
		}
	}
	return each
}

// candidate reads the fields of one kind of machine over the defaults in c.
func (d *decoder) candidate(n *node, path string, c candidate) candidate {
	c.at = n.at
	d.place(n, path, &c.want)
	for _, read := range []struct {
		field string
		into  func(v *node, path string)
	}{
		{"cpus", func(v *node, path string) { c.want.CPUs = d.cpus(v, path) }},
		{"memory", func(v *node, path string) { c.want.MemoryGB = d.memory(v, path) }},
		{"accelerators", func(v *node, path string) { c.setAccelerators(d.accelerators(v, path)) }},
		{"gpus", func(v *node, path string) {
			d.notTogether(n, "gpus", "accelerators", path)
			c.setAccelerators(d.accelerators(v, path))
		}},
		{"accelerator_args", func(v *node, path string) { c.want.AcceleratorArgs = d.words(v, path) }},
		{"instance_type", func(v *node, path string) { c.want.Type = d.word(v, path) }},
		{"use_spot", func(v *node, path string) { c.want.UseSpot = d.boolean(v, path) }},
		{"max_hourly_cost", func(v *node, path string) { c.want.MaxPrice = d.price(v, path) }},
		{"disk_size", func(v *node, path string) { c.want.DiskGB = d.size(v, path) }},
		{"disk_tier", func(v *node, path string) { c.want.DiskTier = d.tier(v, path, append(diskTiers, none)) }},
		{"local_disk", func(v *node, path string) { c.want.LocalDisk = d.localDisk(v, path) }},
		{"network_tier", func(v *node, path string) { c.want.NetworkTier = d.tier(v, path, networkTiers) }},
		{"image_id", func(v *node, path string) { d.image(v, path, &c) }},
		{"ports", func(v *node, path string) { c.want.Ports = d.ports(v, path) }},
		{"labels", func(v *node, path string) { c.want.Labels = d.words(v, path) }},
		{"priority", d.priority},
		{"job_recovery", func(v *node, path string) { c.recovery, c.at = d.recovery(v, path), v.at }},
		{"spot_recovery", func(v *node, path string) {
			d.notTogether(n, "spot_recovery", "job_recovery", path)
			c.recovery, c.at = d.recovery(v, path), v.at
		}},
		{"autostop", d.autostop},
	} {
		if v := n.get(read.field); v != nil {
			read.into(v, path+"."+read.field)
		}
	}
	return c
}

// notTogether reports another spelling beside the field that it stands for.
func (d *decoder) notTogether(n *node, other, field, path string) {
	if n.get(field) != nil {
		d.add(n.get(other).at, path, "is given together with "+field, "it is another spelling of it: keep "+field)
	}
}

// setAccelerators puts what was read over the defaults.
func (c *candidate) setAccelerators(choices []accelerator, ordered bool) {
	c.choices, c.ordered = choices, ordered
	c.want.Accelerator, c.want.AcceleratorCount = "", 0
	if len(choices) == 1 {
		c.want.Accelerator, c.want.AcceleratorCount = choices[0].name, choices[0].count
		c.choices, c.ordered = nil, false
	}
}

// priority reads a priority and compares it with all others of the job: there is one queue entry for all of it.
func (d *decoder) priority(n *node, path string) {
	v, ok := d.integer(n, path, job.MinPriority, job.MaxPriority)
	switch {
	case !ok:
	case d.prioritySet && d.job.Request.Priority != v:
		d.add(n.at, path, fmt.Sprintf("is %d, but %d in line %d", v, d.job.Request.Priority, d.priorityAt.line), "all tasks and entries of a job share one priority")
	case !d.prioritySet:
		d.job.Request.Priority, d.prioritySet, d.priorityAt = v, true, n.at
	}
}

func sameRecovery(a, b job.Recovery) bool {
	return cmp.Or(a.Strategy, job.EagerNextRegion) == cmp.Or(b.Strategy, job.EagerNextRegion) &&
		a.MaxRestartsOnErrors == b.MaxRestartsOnErrors && slices.Equal(a.RecoverOnExitCodes, b.RecoverOnExitCodes)
}

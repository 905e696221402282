package spec

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/job"
)

// candidate is one acceptable kind of machine with what SkyPilot writes beside it though it belongs to the job.
type candidate struct {
	want     job.Want
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
	d.checkFields(n, path, resourceFields())
	base := d.candidate(n, path, candidate{at: n.at})
	anyOf, ordered := n.get("any_of"), n.get("ordered")
	switch {
	case anyOf != nil && ordered != nil:
		d.add(ordered.at, "resources.ordered", "is given together with any_of", "keep one of the two")
	case anyOf != nil:
		return d.candidates(anyOf, "resources.any_of", base, false)
	case ordered != nil:
		return d.candidates(ordered, "resources.ordered", base, true)
	}
	return job.Resources{Any: []job.Want{base.want}}, base.recovery
}

// candidates reads the entries of any_of or ordered.
func (d *decoder) candidates(n *node, path string, base candidate, ordered bool) (job.Resources, job.Recovery) {
	out := job.Resources{Ordered: ordered}
	if n.kind != kindList || len(n.items) == 0 {
		d.add(n.at, path, "is "+describe(n), "it is a list of resources, such as [{use_spot: true}, {use_spot: false}]")
		return out, base.recovery
	}
	var first candidate
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		c := base
		if item.kind != kindNull {
			if !d.isMapping(item, at) {
				continue
			}
			d.checkFields(item, at, candidateFields())
			c = d.candidate(item, at, base)
		}
		if len(out.Any) == 0 {
			first = c
		}
		if !sameRecovery(c.recovery, first.recovery) {
			d.add(c.at, at+".job_recovery", "differs from that of the entry before", "it holds for the whole task: write it once, directly under resources")
		}
		out.Any = append(out.Any, c.want)
	}
	return out, first.recovery
}

// candidate reads the fields of one kind of machine over the defaults in c.
func (d *decoder) candidate(n *node, path string, c candidate) candidate {
	c.at = n.at
	if v := n.get("infra"); v != nil {
		d.infra(v, path+".infra", &c.want)
	}
	if v := n.get("cpus"); v != nil {
		c.want.CPUs = d.cpus(v, path+".cpus")
	}
	if v := n.get("memory"); v != nil {
		c.want.MemoryGB = d.memory(v, path+".memory")
	}
	if v := n.get("use_spot"); v != nil {
		c.want.UseSpot = d.boolean(v, path+".use_spot")
	}
	if v := n.get("priority"); v != nil {
		d.priority(v, path+".priority")
	}
	if v := n.get("job_recovery"); v != nil {
		c.recovery, c.at = d.recovery(v, path+".job_recovery"), v.at
	}
	return c
}

// infraPart is what clouds name their regions and zones with.
var infraPart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// infra reads cloud[/region[/zone]], each part a name or * for any.
func (d *decoder) infra(n *node, path string, w *job.Want) {
	const right = `write cloud/region/zone, cloud/region or cloud, such as aws/us-east-1, with "*" for any`
	w.Provider, w.Region, w.Zone = "", "", ""
	if n.kind != kindText {
		d.add(n.at, path, "is "+describe(n), right)
		return
	}
	parts := strings.Split(n.text, "/")
	if len(parts) > 3 {
		d.add(n.at, path, quote(n.text)+" has more than three parts", right)
		return
	}
	for i, part := range parts {
		switch {
		case part == "*":
			parts[i] = ""
		case !infraPart.MatchString(part):
			d.add(n.at, path, quote(n.text)+" is not a place", right)
			return
		}
	}
	parts = append(parts, "", "")
	w.Provider, w.Region, w.Zone = strings.ToLower(parts[0]), parts[1], parts[2]
}

var (
	cpuForm    = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?)(\+?)$`)
	memoryForm = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([A-Za-z]{0,2})(\+?)$`)
)

func (d *decoder) cpus(n *node, path string) job.Quantity {
	m := cpuForm.FindStringSubmatch(n.text)
	if m == nil {
		d.add(n.at, path, "is "+describe(n), `write a number of CPUs such as 4, or "4+" for at least four`)
		return job.Quantity{}
	}
	return d.quantity(n, path, m[1], 1, m[2])
}

// memory reads an amount with an optional unit, GB by default. As in SkyPilot, units grow by 1024.
func (d *decoder) memory(n *node, path string) job.Quantity {
	const right = `write GB such as 16, or "16+" for at least that, with a unit if need be: "512MB"`
	m := memoryForm.FindStringSubmatch(n.text)
	if m == nil {
		d.add(n.at, path, "is "+describe(n), right)
		return job.Quantity{}
	}
	power := strings.Index("KMGTP", strings.TrimSuffix(strings.ToUpper(cmp.Or(m[2], "GB")), "B"))
	if power < 0 || strings.EqualFold(m[2], "B") {
		d.add(n.at, path, "has the unit "+quote(m[2]), "units are KB, MB, GB, TB and PB")
		return job.Quantity{}
	}
	return d.quantity(n, path, m[1], math.Pow(1024, float64(power-2)), m[3])
}

// quantity makes an amount of what the forms above let through.
func (d *decoder) quantity(n *node, path, digits string, unit float64, plus string) job.Quantity {
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || v == 0 {
		d.add(n.at, path, "is "+quote(n.text), "it must be more than 0")
		return job.Quantity{}
	}
	return job.Quantity{N: v * unit, AtLeast: plus != ""}
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

// recovery reads a strategy's name, or a mapping with the name and what may be restarted.
func (d *decoder) recovery(n *node, path string) job.Recovery {
	if n.kind == kindText {
		return job.Recovery{Strategy: d.strategy(n, path)}
	}
	if n.kind != kindMapping {
		d.add(n.at, path, "is "+describe(n), "write a strategy, or a mapping with strategy, max_restarts_on_errors and recover_on_exit_codes")
		return job.Recovery{}
	}
	d.checkFields(n, path, recoveryFields())
	var out job.Recovery
	if v := n.get("strategy"); v != nil {
		out.Strategy = d.strategy(v, path+".strategy")
	}
	if v := n.get("max_restarts_on_errors"); v != nil {
		out.MaxRestartsOnErrors, _ = d.integer(v, path+".max_restarts_on_errors", 0, math.MaxInt32)
	}
	if v := n.get("recover_on_exit_codes"); v != nil {
		out.RecoverOnExitCodes = d.exitCodes(v, path+".recover_on_exit_codes")
	}
	return out
}

func (d *decoder) strategy(n *node, path string) job.Strategy {
	known := []string{string(job.EagerNextRegion), string(job.Failover), string(job.Never)}
	name := strings.ToUpper(n.text)
	if n.kind == kindText && slices.Contains(known, name) {
		return job.Strategy(name)
	}
	right := "strategies are " + strings.Join(known, ", ")
	if near := didyoumean.Nearest(name, known); n.kind == kindText && near != "" {
		right = fmt.Sprintf("did you mean %s?", near)
	}
	d.add(n.at, path, "is "+describe(n), right)
	return ""
}

// exitCodes reads one code or a list of them. They come back sorted, each once.
func (d *decoder) exitCodes(n *node, path string) []int {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []int
	for i, item := range items {
		at := path
		if n.kind == kindList {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if v, ok := d.integer(item, at, 0, 255); ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sameRecovery(a, b job.Recovery) bool {
	return cmp.Or(a.Strategy, job.EagerNextRegion) == cmp.Or(b.Strategy, job.EagerNextRegion) &&
		a.MaxRestartsOnErrors == b.MaxRestartsOnErrors && slices.Equal(a.RecoverOnExitCodes, b.RecoverOnExitCodes)
}

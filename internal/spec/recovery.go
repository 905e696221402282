package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/job"
)

// recovery reads a strategy's name, or a mapping with the name and what may be restarted.
func (d *decoder) recovery(n *node, path string) job.Recovery {
	if n.kind == kindText {
		return job.Recovery{Strategy: d.strategy(n, path)}
	}
	if n.kind != kindMapping {
		d.add(n.at, path, "is "+describe(n), "write a strategy, or a mapping with strategy, max_restarts_on_errors and recover_on_exit_codes")
		return job.Recovery{}
	}
	d.checkFields(n, path, recoverySection)
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
	known := strategies()
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

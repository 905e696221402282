package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/chaos/check"
	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/render"
)

// verdict is what became of a round.
type verdict struct {
	name       string
	faults     map[string]int
	jobs       map[string]int // by status
	machines   int            // that there were
	recoveries int
	violations []check.Violation
	gap        time.Duration // the longest without a driver, while somebody could have driven
	calm       time.Duration // from the last fault until all had come to its end
	troubles   []error
}

// judge judges a round by its history, as it was written down. err says that it could not be played to its end.
func (r *round) judge(err error) verdict {
	v := judged(r.dir)
	v.troubles = append(v.troubles, r.troubles...)
	if err != nil {
		v.troubles = append(v.troubles, err)
	}
	r.say("ended: %d jobs, %d violations", sum(v.jobs), len(v.violations))
	return v
}

// judgeAgain judges a history that is there.
func judgeAgain(o options) int {
	if report(os.Stdout, []verdict{judged(o.judge)}) {
		return 1
	}
	return 0
}

// judged reads a history and judges it.
func judged(dir string) verdict {
	v := verdict{name: filepath.Base(dir), faults: map[string]int{}, jobs: map[string]int{}}
	h, err := history.Read(dir)
	if err != nil {
		v.troubles = append(v.troubles, err)
		return v
	}
	if len(h.Submissions) == 0 {
		v.troubles = append(v.troubles, fmt.Errorf("nothing was submitted, or %s holds no history: nothing is shown", dir))
	}
	for _, f := range h.Faults {
		v.faults[f.Name]++
	}
	machines := map[string]bool{}
	for _, j := range h.Jobs {
		v.jobs[j.Status]++
		v.recoveries += j.Recoveries
		for _, a := range j.Attempts {
			for _, n := range a.Nodes {
				machines[n.ID] = true
			}
		}
	}
	v.machines = len(machines)
	v.gap = longestGap(h)
	if h.Run.CalmAt > 0 {
		v.calm = h.Run.CalmAt.Sub(h.Run.Healed)
	}
	v.violations = check.Judge(h)
	v.troubles = append(v.troubles, crashes(dir)...)
	return v
}

// longestGap is the longest time for which a job or a shard was due and nobody took it, counted from when somebody could
// have done so: not while all workers or Redis were away.
func longestGap(h history.History) time.Duration {
	longest := time.Duration(0)
	for _, s := range h.Samples {
		free := h.Run.Began // since when nothing stopped everybody
		stopped := false
		for _, f := range h.Faults {
			if f.Stops != stopsAll || f.At > s.At {
				continue
			}
			if f.Healed == 0 || f.Healed > s.At {
				stopped = true
			}
			free = max(free, f.Healed)
		}
		if !stopped {
			longest = max(longest, min(max(s.Overdue, s.Silence), s.At.Sub(free)))
		}
	}
	return longest
}

// crashes are panics and data races that workers have written to their logs.
func crashes(dir string) []error {
	files, _ := filepath.Glob(filepath.Join(dir, "w*.log")) // the pattern is right
	var all []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			all = append(all, err)
		}
		for _, sign := range []string{"panic: ", "fatal error: ", "DATA RACE"} {
			if i := strings.Index(string(text), sign); i >= 0 {
				all = append(all, fmt.Errorf("%s: %s", file, strings.SplitN(string(text[i:]), "\n", 2)[0]))
			}
		}
	}
	return all
}

// report prints the tables, and tells whether anything was found.
func report(w io.Writer, all []verdict) (bad bool) {
	faults, jobs := map[string]int{}, map[string]int{}
	for _, v := range all {
		add(faults, v.faults)
		add(jobs, v.jobs)
	}
	fmt.Fprintln(w)
	table(w, "FAULT", faults)
	fmt.Fprintln(w)
	table(w, "ENDING", jobs)
	fmt.Fprintln(w)
	rows := [][]string{}
	for _, v := range all {
		rows = append(rows, []string{
			v.name, strconv.Itoa(sum(v.faults)), strconv.Itoa(sum(v.jobs)), strconv.Itoa(v.machines), strconv.Itoa(v.recoveries),
			fmt.Sprintf("%.1fs", v.gap.Seconds()), fmt.Sprintf("%.1fs", v.calm.Seconds()), strconv.Itoa(len(v.violations)),
		})
	}
	write(w, render.Table{Columns: []render.Column{
		{Title: "ROUND"}, {Title: "FAULTS", Right: true}, {Title: "JOBS", Right: true}, {Title: "MACHINES", Right: true}, {Title: "RECOVERIES", Right: true},
		{Title: "WORST GAP", Right: true}, {Title: "CALM AFTER", Right: true}, {Title: "VIOLATIONS", Right: true},
	}, Rows: rows})
	return tellViolations(w, all)
}

// shown is how many violations of a guarantee are printed; the history has all.
const shown = 5

func tellViolations(w io.Writer, all []verdict) (bad bool) {
	count, told := map[string]int{}, map[string]int{}
	for _, v := range all {
		for _, one := range v.violations {
			count[one.Guarantee]++
		}
	}
	fmt.Fprintln(w)
	rows := [][]string{}
	for _, g := range check.Guarantees() {
		rows = append(rows, []string{g.Name, g.Means, strconv.Itoa(count[g.Name])})
	}
	write(w, render.Table{Columns: []render.Column{{Title: "GUARANTEE"}, {Title: "HOLDS IF"}, {Title: "VIOLATIONS", Right: true}}, Rows: rows})
	for _, v := range all {
		for _, one := range v.violations {
			bad = true
			if told[one.Guarantee]++; told[one.Guarantee] <= shown {
				fmt.Fprintf(w, "\n%s: %s\n", v.name, render.Text(one.String()))
			}
		}
		for _, err := range v.troubles {
			bad = true
			fmt.Fprintf(w, "\n%s: %s\n", v.name, render.Text(err.Error()))
		}
	}
	if !bad {
		fmt.Fprintln(w, "\nno violations")
	}
	return bad
}

func add(to, from map[string]int) {
	for k, n := range from {
		to[k] += n
	}
}

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// table writes counts, by name.
func table(w io.Writer, title string, counts map[string]int) {
	rows := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, []string{render.Text(name), strconv.Itoa(counts[name])})
	}
	write(w, render.Table{Columns: []render.Column{{Title: title}, {Title: "COUNT", Right: true}}, Rows: rows})
}

func write(w io.Writer, t render.Table) {
	if err := t.Write(w); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/outlast-dev/outlast/chaos/history"
)

// Names of statuses and cause codes, as users know them. They are written down here once more on purpose: a status that
// the product renames is a promise broken.
const (
	succeeded  = "SUCCEEDED"
	failed     = "FAILED"
	failSetup  = "FAILED_SETUP"
	noResource = "FAILED_NO_RESOURCE"
	cancelled  = "CANCELLED"
	running    = "RUNNING"
)

// task is a task of a job as a kind makes it.
type task struct {
	setup, run []step
	zone       string // "" is any but the empty one
	spot       bool
	recovery   map[string]any
	maxRun     time.Duration
	maxWait    time.Duration
	secret     bool
	unheeding  bool // is told of no notice, and runs on until its machine goes
}

// moment says when a job is cancelled.
type moment struct {
	status string        // as soon as it is seen with this status, or
	after  time.Duration // so long after its submission
	grace  time.Duration
}

// order is what is submitted: jobs of one kind, with what must become of them.
type order struct {
	history.Submission
	count  int
	tasks  []task
	cancel *moment
	resume bool          // when it has ended otherwise than well, it is to go again
	kill   time.Duration // the client that submits is killed after this, the first time; 0: it is not
}

// kind is a row of the table of jobs.
type kind struct {
	name   string
	weight int
	make   func(d dice, pace pace, o *order)
}

// pace is how long the code of jobs runs, in one size of the suite.
type pace struct{ short, long time.Duration }

// kinds are the jobs of the suite. Each has endings that are right whatever breaks meanwhile.
var kinds = []kind{
	{"short", 30, func(d dice, p pace, o *order) {
		o.count = 1 + d.IntN(3)
		o.one(task{run: works("short", d.between(p.short/4, p.short)), spot: !d.oneIn(4)})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin short", "end short"}
	}},
	{"long", 12, func(d dice, p pace, o *order) {
		o.one(task{run: works("long", d.between(p.long/2, p.long)), spot: true, recovery: pick(d, []map[string]any{nil, {"strategy": "FAILOVER"}})})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin long", "end long"}
	}},
	{"heeds no TERM", 8, func(d dice, p pace, o *order) { // so that it runs on until its machine goes, while the next one is ready
		o.one(task{run: append([]step{{deaf: true}}, works("deaf", d.between(p.long/2, p.long))...), spot: true})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin deaf", "end deaf"}
	}},
	{"secret", 6, func(d dice, p pace, o *order) {
		o.one(task{setup: works("setup", p.short/4), run: append([]step{{tell: true}}, works("secret", d.between(p.short/4, p.short))...), spot: true, secret: true})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin setup", "end setup", "begin secret", "end secret"}
	}},
	{"fails", 8, func(d dice, p pace, o *order) {
		o.one(task{run: []step{echo("begin fails"), sleep(d.between(p.short/4, p.short)), exit(3)}, spot: true})
		o.right(failed, "user_exit")
	}},
	{"fails in setup", 6, func(d dice, p pace, o *order) {
		o.one(task{setup: []step{sleep(d.between(0, p.short/2)), exit(4)}, run: []step{echo("never")}, spot: true})
		o.right(failSetup, "setup_exit")
	}},
	{"restarts", 8, func(d dice, p pace, o *order) {
		o.one(task{run: append([]step{exitUntil(42, 2)}, works("restarts", d.between(p.short/4, p.short))...), spot: true,
			recovery: map[string]any{"recover_on_exit_codes": 42}})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin restarts", "end restarts"}
	}},
	{"spends its restarts", 6, func(_ dice, p pace, o *order) {
		o.one(task{run: []step{sleep(p.short / 4), exit(5)}, spot: true, recovery: map[string]any{"max_restarts_on_errors": 1}})
		o.right(failed, "user_exit")
	}},
	{"chain", 8, func(d dice, p pace, o *order) {
		for i := range 2 + d.IntN(2) {
			text := fmt.Sprintf("task %d", i)
			o.tasks = append(o.tasks, task{run: works(text, d.between(p.short/4, p.short)), spot: !d.oneIn(3)})
			o.Lines = append(o.Lines, "begin "+text, "end "+text)
		}
		o.right(succeeded, "succeeded")
	}},
	{"chain that fails", 5, func(d dice, p pace, o *order) {
		o.tasks = []task{
			{run: works("first", d.between(p.short/4, p.short)), spot: true},
			{run: []step{sleep(p.short / 4), exit(6)}, spot: true},
			{run: []step{echo("never")}},
		}
		o.right(failed, "user_exit")
	}},
	{"cancelled", 16, func(d dice, p pace, o *order) {
		run := []step{echo("begin cancelled"), sleep(time.Hour)}
		if d.oneIn(3) {
			run = append([]step{{deaf: true}}, run...)
		}
		o.one(task{run: run, spot: true})
		o.cancel = &moment{after: d.between(0, p.short), grace: d.between(0, time.Second)}
		if d.oneIn(2) {
			o.cancel.status = running
		}
		o.right(cancelled, "cancelled")
	}},
	{"cancelled late", 8, func(d dice, p pace, o *order) {
		o.one(task{run: works("late", d.between(p.short/4, p.short)), spot: true})
		o.cancel = &moment{after: d.between(0, 2*p.short), grace: time.Second}
		o.right(succeeded, "succeeded").right(cancelled, "cancelled")
	}},
	{"resumed when it has failed", 5, func(d dice, p pace, o *order) {
		o.one(task{run: append([]step{exitUntil(7, 2)}, works("second life", d.between(p.short/4, p.short))...), spot: true, secret: d.oneIn(3)})
		o.resume = true
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin second life", "end second life"}
	}},
	{"resumed when it was cancelled", 6, func(d dice, p pace, o *order) {
		o.tasks = []task{
			{run: works("first", d.between(p.short/4, p.short)), spot: true},
			{run: works("second", d.between(p.short/4, p.short)), spot: true},
		}
		o.cancel = &moment{after: d.between(0, 3*p.short), grace: d.between(0, time.Second)}
		o.resume = true
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin first", "end first", "begin second", "end second"}
	}},
	{"never recovers", 6, func(d dice, p pace, o *order) {
		o.one(task{run: works("never", d.between(p.short/2, p.long)), spot: true, recovery: map[string]any{"strategy": "NEVER"}})
		o.right(succeeded, "succeeded").right(noResource, "never_recover")
	}},
	{"finds no place", 5, func(d dice, p pace, o *order) {
		o.one(task{run: []step{echo("never")}, zone: emptyZone, maxWait: d.between(p.short, 3*p.short)})
		o.right(noResource, "max_wait")
	}},
	{"waits for long", 3, func(_ dice, p pace, o *order) {
		o.one(task{run: []step{echo("never")}, zone: emptyZone, maxWait: 10 * p.short})
		o.right(noResource, "max_wait")
	}},
	{"cancelled while it waits", 4, func(d dice, p pace, o *order) {
		o.one(task{run: []step{echo("never")}, zone: emptyZone, maxWait: 10 * p.short})
		o.cancel = &moment{after: d.between(0, p.short)}
		o.right(cancelled, "cancelled").right(noResource, "max_wait")
	}},
	{"heeds no notice", 6, func(d dice, p pace, o *order) {
		o.one(task{run: works("unheeding", d.between(p.long/2, p.long)), spot: true, unheeding: true})
		o.right(succeeded, "succeeded")
		o.Lines = []string{"begin unheeding", "end unheeding"}
	}},
	{"runs too long", 5, func(_ dice, p pace, o *order) {
		o.one(task{run: []step{echo("begin too long"), sleep(time.Hour)}, spot: true, maxRun: p.short})
		o.right(failed, "max_duration")
	}},
}

func (o *order) one(t task) { o.tasks = []task{t} }

// right adds an ending that is right.
func (o *order) right(status, code string) *order {
	o.Expect, o.Causes = append(o.Expect, status), append(o.Causes, code)
	return o
}

// throw throws the next order.
func throw(d dice, p pace, providers []string, only []string, n int) order {
	var weights []int
	for _, k := range kinds {
		if len(only) > 0 && !slices.Contains(only, k.name) {
			weights = append(weights, 0)
			continue
		}
		weights = append(weights, k.weight)
	}
	k := kinds[d.weighted(weights)]
	o := order{count: 1}
	o.Key, o.Kind, o.Provider = fmt.Sprintf("chaos-%d", n), k.name, pick(d, providers)
	if d.oneIn(3) {
		o.Priority = d.IntN(2001) - 1000
	}
	if d.oneIn(10) {
		o.kill = d.between(5*time.Millisecond, 300*time.Millisecond)
	}
	k.make(d, p, &o)
	o.Tasks = len(o.tasks)
	return o
}

// file is the job file of an order. Code on local machines leaves its traces in a folder that all of them share.
func (o *order) file(shared string) string {
	docs := []string{}
	if len(o.tasks) > 1 {
		docs = append(docs, document(map[string]any{"name": o.Key}))
	}
	for i, t := range o.tasks {
		script := plain
		doc := map[string]any{"name": fmt.Sprintf("%s-%d", o.Key, i)}
		if o.Provider == local {
			script = witnessed
			doc["envs"] = map[string]any{"SHARED": shared, "TASK": strconv.Itoa(i)}
		}
		doc["run"] = script(t.run)
		if t.setup != nil {
			doc["setup"] = script(t.setup)
		}
		if t.secret {
			doc["secrets"] = map[string]any{secretName: nil}
		}
		res := map[string]any{"infra": o.Provider}
		if t.zone != "" {
			res["infra"] = o.Provider + "/*/" + t.zone
		}
		if t.spot {
			res["use_spot"] = true
		}
		if t.recovery != nil {
			res["job_recovery"] = t.recovery
		}
		if o.Priority != 0 && i == 0 {
			res["priority"] = o.Priority
		}
		doc["resources"] = res
		if t.unheeding {
			doc["on_notice"] = "none"
		}
		if t.maxRun > 0 {
			doc["max_duration"] = whole(t.maxRun)
		}
		if t.maxWait > 0 {
			doc["max_wait"] = whole(t.maxWait)
		}
		docs = append(docs, document(doc))
	}
	return strings.Join(docs, "---\n")
}

// whole is a duration as job files have it, in whole seconds.
func whole(d time.Duration) string { return fmt.Sprintf("%.0fs", max(1, d.Seconds())) }

// document is a YAML document.
func document(v map[string]any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers always can be
	}
	return string(text)
}

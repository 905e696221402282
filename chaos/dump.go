package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// collected waits one collector interval, or until there is no machine left that could be collected.
func (r *round) collected(ctx context.Context) {
	until := time.Now().Add(times.Collector)
	clean := 0
	for time.Now().Before(until) && clean < 3 { // three clean looks: one that was created late may still appear
		left, err := r.machines(ctx)
		clean++
		for _, m := range left {
			if !m.Ended {
				clean = 0
			}
		}
		if err != nil {
			clean = 0
		}
		if !pause(ctx, time.Second) {
			return
		}
	}
}

// machines are all machines of the round, whoever knows of them.
func (r *round) machines(ctx context.Context) ([]history.Machine, error) {
	var all []history.Machine
	boxes, err := r.ground.boxes()
	for _, b := range boxes {
		all = append(all, b.Machine)
	}
	there, err2 := r.sky.machines(ctx)
	return append(all, there...), errors.Join(err, err2)
}

// dump writes down what there is at the end.
func (r *round) dump(ctx context.Context) error {
	machines, err := r.machines(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		r.out.Add(m)
	}
	processes, err := r.ground.processes()
	if err != nil {
		return err
	}
	for _, p := range processes {
		r.out.Add(p)
	}
	if s, err := r.look(ctx); err == nil {
		r.out.Add(s)
	}
	r.dumpJobs(ctx)
	if err := errors.Join(r.sky.dump(ctx, r.out), r.dumpTraces(), r.search(ctx)); err != nil {
		return err
	}
	r.run.EndedAt = now()
	r.out.Add(r.run)
	return nil
}

// dumpJobs asks for all jobs, several at a time.
func (r *round) dumpJobs(ctx context.Context) {
	ids := make(chan int64)
	var askers sync.WaitGroup
	for range 3 {
		askers.Go(func() {
			for id := range ids {
				r.out.Add(r.dumpJob(ctx, id))
			}
		})
	}
	for _, id := range r.book.all() {
		ids <- id
	}
	close(ids)
	askers.Wait()
}

func (r *round) dumpJob(ctx context.Context, id int64) history.Job {
	j := history.Job{ID: id}
	name := strconv.FormatInt(id, 10)
	shown := r.patiently(ctx, "show", name, "-o", "json")
	if shown.exit != 0 {
		j.Missing, j.Damaged = shown.errs, shown.failure().Code == "damaged_record"
		return j
	}
	if err := json.Unmarshal([]byte(shown.out), &j); err != nil {
		j.Missing = fmt.Sprintf("%v: %s", err, shown.out)
	}
	told := r.patiently(ctx, "events", name, "-o", "json")
	var events []history.Event
	for line := range strings.Lines(told.out) {
		var e history.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			j.Missing = fmt.Sprintf("%v: %s", err, line)
			break
		}
		events = append(events, e)
	}
	if told.exit == 0 && len(events) < len(j.Events) {
		j.Missing = fmt.Sprintf("show tells %d events, and events tells %d", len(j.Events), len(events))
	}
	logs := r.patiently(ctx, "logs", name)
	j.Log = logs.out
	if logs.exit != 0 && logs.exit < 100 {
		j.LogError = logs.errs
	}
	return j
}

// patiently asks again while the answer is that it may be given later.
func (r *round) patiently(ctx context.Context, args ...string) answer {
	for range 20 {
		if a := r.client.run(ctx, args...); !a.again() || a.exit >= 100 {
			return a
		}
		pause(ctx, 200*time.Millisecond)
	}
	return r.client.run(ctx, args...)
}

// dumpTraces copies what the code on local machines has written.
func (r *round) dumpTraces() error {
	files, err := filepath.Glob(filepath.Join(r.shared, "*.trace"))
	if err != nil {
		return fmt.Errorf("look for traces: %w", err)
	}
	for _, file := range files {
		if err := r.dumpTrace(file); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	return nil
}

func (r *round) dumpTrace(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewScanner(f)
	for in.Scan() {
		var t history.Trace
		if _, err := fmt.Sscan(in.Text(), &t.Op, &t.Job, &t.Task, &t.Attempt, &t.PID, &t.At); err != nil {
			return fmt.Errorf("%q: %w", in.Text(), err)
		}
		r.out.Add(t)
	}
	return in.Err()
}

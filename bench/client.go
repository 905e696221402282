package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// traced is user code that leaves the time of its start, as bash itself tells it, so that no other process has to start.
const traced = `t=$EPOCHREALTIME; f="$TRACES/$OUTLAST_JOB_ID.$OUTLAST_ATTEMPT"; echo "$t" > "$f.new"; mv "$f.new" "$f"` + "\n"

// submit hands in a job as the client does.
func (f *fleet) submit(ctx context.Context, run string) (job.ID, error) {
	ids, err := f.store.Submit(ctx, store.Submission{Request: job.Request{Name: "bench", Tasks: []job.TaskRequest{{
		Resources: job.Resources{Any: []job.Want{{Provider: "local"}}}, Run: run, Envs: map[string]string{"TRACES": f.traces},
	}}}})
	if err != nil {
		return 0, err
	}
	granted, err := f.store.Join(ctx, f.store.Deployment().Caps, 0, ids)
	if err != nil {
		return 0, err
	}
	if err := f.queue.Call(ctx, f.store, granted); err != nil {
		return 0, err
	}
	return ids[0], nil
}

func (f *fleet) submitAll(ctx context.Context, run string, n int) ([]job.ID, error) {
	var ids []job.ID
	for range n {
		id, err := f.submit(ctx, run)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (f *fleet) cancel(ctx context.Context, id job.ID) error {
	woken, err := f.store.Cancel(ctx, id, "bench", 30*time.Second)
	if err != nil {
		return err
	}
	return f.queue.RunWatch(ctx, woken.Shard, woken.Epoch)
}

func (f *fleet) wake(ctx context.Context, id job.ID) error {
	woken, err := f.store.Wake(ctx, id)
	if err != nil {
		return err
	}
	return f.queue.RunWatch(ctx, woken.Shard, woken.Epoch)
}

// cancelAll ends jobs and waits until nothing is left to do for any of them.
func (f *fleet) cancelAll(ctx context.Context, ids []job.ID) error {
	for _, id := range ids {
		if err := f.cancel(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := f.done(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// start waits for the user's code to start in an attempt and returns when it did.
func (f *fleet) start(ctx context.Context, id job.ID, attempt int) (time.Time, error) {
	var text []byte
	err := until(ctx, fmt.Sprintf("attempt %d of job %d", attempt, id), func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(f.traces, fmt.Sprintf("%d.%d", id, attempt)))
		return !errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return time.Time{}, err
	}
	seconds, micros, _ := strings.Cut(strings.TrimSpace(string(text)), ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000), errors.Join(err1, err2)
}

// running waits until an attempt's code runs and the record says so.
func (f *fleet) running(ctx context.Context, id job.ID, attempt int) error {
	if _, err := f.start(ctx, id, attempt); err != nil {
		return err
	}
	return until(ctx, "RUNNING", func() bool {
		rec, err := f.store.Load(ctx, id)
		return err == nil && rec.Status() == job.Running && rec.Step == job.StepWatch
	})
}

// done waits until nothing is left to do for a job.
func (f *fleet) done(ctx context.Context, id job.ID) error {
	return until(ctx, fmt.Sprintf("the end of job %d", id), func() bool {
		rec, err := f.store.Load(ctx, id)
		return err == nil && rec.Step == job.StepDone
	})
}

// machines are those that may run code.
func (f *fleet) machines(ctx context.Context) []cloud.Node {
	var all []cloud.Node
	regions, err := f.local.Regions(ctx)
	if err != nil {
		return nil
	}
	for _, r := range regions {
		nodes, err := f.local.List(ctx, r)
		if err != nil {
			continue
		}
		for _, n := range nodes {
			if !n.State.Ended() {
				all = append(all, n)
			}
		}
	}
	return all
}

// machineOf is the machine that runs a job, by its record.
func (f *fleet) machineOf(ctx context.Context, id job.ID) (job.Attempt, error) {
	rec, err := f.store.Load(ctx, id)
	if err != nil {
		return job.Attempt{}, err
	}
	a := rec.Started()
	if a == nil || len(a.Nodes) == 0 {
		return job.Attempt{}, fmt.Errorf("job %d has no machine", id)
	}
	return *a, nil
}

// alive reports whether a process of that machine is there.
func alive(machine string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	mark := []byte("OUTLAST_INSTANCE=" + machine)
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && bytes.Contains(env, mark) {
			return true
		}
	}
	return false
}

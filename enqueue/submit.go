package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/tasks"
)

// submit hands a job in, count times, and gives it a push. What the push does not reach, the watch finds within seconds:
// once the records are written, the jobs are accepted (G1), so that errors from then on are only told.
func (d *deployment) submit(ctx context.Context, j spec.Job, count int, key string) ([]job.ID, error) {
	if err := d.runsCallbacks(j.Request); err != nil {
		return nil, err
	}
	sealed, err := sealSecrets(d.store.Deployment().Recipient, j.Secrets)
	if err != nil {
		return nil, err
	}
	if err := d.bundle(ctx, &j); err != nil {
		return nil, err
	}
	ids, err := d.store.Submit(ctx, store.Submission{Request: j.Request, Sealed: sealed, Count: count, Key: key})
	if err = d.app.unsafe(err); err != nil {
		return nil, err
	}
	if err := d.push(ctx, j.Request.Priority, ids, key != ""); err != nil {
		d.app.say("the job is accepted, and begins a little later: %v%s", err, advice(err))
	}
	return ids, nil
}

// runsCallbacks refuses a callback where no worker would run it.
func (d *deployment) runsCallbacks(r job.Request) error {
	for i, t := range r.Tasks {
		if t.EventCallback != "" && d.store.Deployment().NoCallbacks {
			return fmt.Errorf("task %d: event_callback: %w", i, errNoCallbacks)
		}
	}
	return nil
}

// sealSecrets seals the secrets of all tasks for the deployment's workers (G12).
func sealSecrets(recipient string, perTask []map[string]string) ([]byte, error) {
	all := map[string]string{}
	for i, secrets := range perTask {
		for name, value := range secrets {
			all[tasks.SecretKey(i, name)] = value
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if recipient == "" {
		return nil, errNoRecipient
	}
	return seal.Seal(recipient, all)
}

// push asks for launch slots, and calls the jobs that got one: others among them, if it is their turn.
func (d *deployment) push(ctx context.Context, priority int, ids []job.ID, repeated bool) error {
	mine := ids
	if repeated {
		var err error
		if mine, err = d.unstarted(ctx, ids); err != nil || len(mine) == 0 {
			return err
		}
	}
	granted, err := d.store.Join(ctx, d.caps, priority, mine)
	if err != nil {
		return err
	}
	return d.dispatch.Call(ctx, d.store, granted)
}

// unstarted are those of the jobs whose first act is still to come: a repeated submission finds others.
func (d *deployment) unstarted(ctx context.Context, ids []job.ID) ([]job.ID, error) {
	records, _, err := d.store.LoadMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id job.ID) bool {
		r, ok := records[id]
		return !ok || r.Step != job.StepLaunch || r.Dispatch != 1 || r.Ran != 0
	}), nil
}

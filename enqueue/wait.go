package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	waitEvery = 500 * time.Millisecond // between two looks
	// promptFor is for how many jobs at a time the workers are asked to look often. Of more of them, an end is
	// noticed up to a quiet interval later.
	promptFor   = 20
	promptAgain = 5 * time.Second
)

func waitCommand(a *app) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until jobs have ended",
		Long: `Wait until all of the jobs have ended. The exit code is that of the job that fared worst:
0 succeeded, 103 cancelled, 100 failed, 102 there is no such job, 101 not finished in time.`,
		Example: "  enqueue wait 7\n  enqueue wait 7 8 9 --timeout 2h",
		Args: usage(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which jobs? Give their numbers")
			}
			return nil
		}),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			if timeout < 0 {
				return usagef("--timeout must not be negative")
			}
			d, err := a.deployment(c.Context())
			if err != nil {
				return err
			}
			ctx, cancel := c.Context(), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
			}
			defer cancel()
			return a.waitFor(ctx, d, ids)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "wait no longer than this `TIME`, such as 30m (default: as long as it takes)")
	return c
}

// waited is how one job fared.
type waited struct {
	ID     job.ID     `json:"id"`
	Status job.Status `json:"status,omitempty"` // "" if there is no such job
	Cause  *job.Cause `json:"cause,omitempty"`
}

// waitFor waits for jobs and tells each that has ended.
func (a *app) waitFor(ctx context.Context, d *deployment, ids []job.ID) error {
	w := &waiting{app: a, d: d, left: map[job.ID]bool{}}
	for _, id := range ids {
		w.left[id] = true
	}
	a.status.set("waiting for %s", jobs(len(w.left)))
	defer a.status.set("")
	look := time.NewTicker(waitEvery)
	defer look.Stop()
	for {
		err := w.look(ctx)
		switch {
		case ctx.Err() == nil && errors.Is(err, store.ErrUnavailable) && w.looked:
			// a store that does not answer is a pause
		case err != nil && ctx.Err() == nil:
			return err
		case len(w.left) == 0:
			return w.end()
		}
		a.status.set("waiting for %s", jobs(len(w.left)))
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return w.timeUp()
			}
			return errInterrupted
		case <-look.C:
		}
	}
}

// jobs is a number of jobs in words.
func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// waiting is how far a wait has come.
type waiting struct {
	app    *app
	d      *deployment
	left   map[job.ID]bool
	last   map[job.ID]job.Record
	done   []waited
	worst  int
	prompt time.Time
	looked bool
}

// look takes the jobs that have ended from those that are left.
func (w *waiting) look(ctx context.Context) error {
	ids := make([]job.ID, 0, len(w.left))
	for id := range w.left {
		ids = append(ids, id)
	}
	records, _, err := w.d.jobs.LoadMany(ctx, ids)
	if err != nil {
		return err
	}
	w.last, w.looked = records, true
	for _, id := range ids {
		r, known := records[id]
		switch {
		case !known:
			if err := w.unknown(ctx, id); err != nil {
				return err
			}
		case r.Ended():
			w.tell(waited{id, r.Status(), account.Of(&r, 0).Cause}, exitCode(outcome(r.Status())))
		}
	}
	if len(w.left) <= promptFor && time.Since(w.prompt) >= promptAgain {
		w.prompt = time.Now()
		for id := range w.left {
			if err := w.d.wake(ctx)(w.d.store.Follow(ctx, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknown tells a job that does not exist from one whose record is damaged.
func (w *waiting) unknown(ctx context.Context, id job.ID) error {
	_, err := w.d.jobs.Load(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	w.tell(waited{ID: id}, exitNotFound)
	return nil
}

// tell notes a job that needs no more waiting.
func (w *waiting) tell(one waited, code int) {
	delete(w.left, one.ID)
	w.done = append(w.done, one)
	w.worst = worse(w.worst, code)
	if w.app.structured() {
		return
	}
	if one.Status == "" {
		fmt.Fprintf(w.app.errs, "%s there is no job %d\n", w.app.onErrs.red("error:"), one.ID)
		return
	}
	line := fmt.Sprintf("job %d %s", one.ID, w.app.onOut.status(one.Status, string(one.Status)))
	if one.Cause != nil {
		line += ": " + account.Explain(*one.Cause)
	}
	fmt.Fprintln(w.app.status.beside(w.app.out), line)
}

// timeUp tells the jobs that have not ended in time.
func (w *waiting) timeUp() error {
	for id := range w.left {
		r, known := w.last[id]
		if !known {
			continue
		}
		w.done = append(w.done, waited{ID: id, Status: r.Status()})
		w.app.say("job %d is still %s", id, r.Status())
	}
	w.worst = worse(w.worst, exitNotFinished)
	return w.end()
}

// end prints the result and makes the exit code.
func (w *waiting) end() error {
	told := func() error { return nil } // one by one, for people
	if err := w.app.print(w.done, told); err != nil {
		return err
	}
	if w.worst == exitSucceeded {
		return nil
	}
	return &outcomeError{w.worst}
}

// worse is the worse of two exit codes.
func worse(a, b int) int {
	rank := map[int]int{exitSucceeded: 0, exitCancelled: 1, exitFailed: 2, exitNotFound: 3, exitNotFinished: 4}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

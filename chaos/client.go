package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// client runs the real `enqueue`.
type client struct {
	r   *round
	way way // its own, to Redis
	url string
}

// callPatience is how long one run of the client may take. One that waits for longer is killed, as a person does.
const callPatience = 30 * time.Second

// answer is how a run of it ended.
type answer struct {
	exit      int // -1: it was killed
	out, errs string
	at        history.Time // when it began
	took      time.Duration
}

// run runs it with the arguments.
func (c *client) run(ctx context.Context, args ...string) answer {
	ctx, done := context.WithTimeout(ctx, callPatience)
	defer done()
	cmd := exec.CommandContext(ctx, c.r.bin.enqueue, args...)
	cmd.Env, cmd.Dir = append(c.r.environ(c.url), secretName+"="+c.r.run.Secret), c.r.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	a := answer{at: now(), exit: -1}
	begun := time.Now()
	err := cmd.Run()
	a.took, a.out, a.errs = time.Since(begun), out.String(), errs.String()
	switch {
	case cmd.ProcessState != nil:
		a.exit = cmd.ProcessState.ExitCode()
	case err != nil:
		a.errs = err.Error()
	}
	if a.exit != 0 && a.exit < 100 {
		f := a.failure()
		c.r.out.Add(history.Call{At: a.at, Took: a.took, Args: args, Exit: a.exit, Code: f.Code, Text: f.Message})
	}
	return a
}

// failure is the error that it told with -o json.
func (a answer) failure() (f struct{ Code, Message string }) {
	var told struct {
		Error *struct{ Code, Message string }
	}
	told.Error = &f
	if json.Unmarshal([]byte(a.errs), &told) != nil {
		f.Message = a.errs
	}
	return f
}

// unsafe reports whether it was done, and may be lost again.
func (a answer) unsafe() bool { return a.exit == 0 && strings.Contains(a.errs, "not_replicated") }

// again reports whether the same may succeed later: it was killed, or the store did not serve.
func (a answer) again() bool {
	if a.exit == -1 {
		return true
	}
	switch a.failure().Code {
	case "usage", "invalid_job", "unservable", "not_found", "key_taken", "schema", "damaged_record", "too_large", "not_resumable":
		return false
	default:
		return a.exit != 0
	}
}

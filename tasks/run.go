package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/planted"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/spec"
)

// idlePowerOff is the dead man's switch of a machine whose run has ended and that nobody polls any more. It is longer
// than any outage that a deployment should ride out without losing the end of a log.
const idlePowerOff = 30 * time.Minute

// start brings the task's files to the node and starts the user's code there. It is idempotent by the attempt's token.
func (d *driver) start(ctx context.Context, site *Site, a *job.Attempt) (*job.Probe, error) {
	at := d.now()
	req, err := d.request(ctx)
	if err != nil {
		return nil, err
	}
	out := &job.Probe{Attempt: a.Number, At: at}
	order, err := d.startRequest(ctx, a, req)
	if out.Fault = locked(err); out.Fault != nil {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var status agent.Status
	err = d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
		dir := site.Dir(node)
		if err := d.sendFiles(ctx, c, dir, &req.Tasks[a.Task]); err != nil {
			return err
		}
		if site.NoticeFile != nil {
			order.NoticeFile = site.NoticeFile(node)
		}
		if site.PowerOff != nil {
			order.PowerOff, order.IdleSeconds = site.PowerOff(node), int(idlePowerOff.Seconds())
		}
		var err error
		status, err = c.Start(ctx, dir, order)
		return err
	})
	err = seal.NewRedactor(order.Secrets).Error(err) // a refusal may quote what it was sent (G12)
	var lost *filesError
	switch {
	case isStoreError(err):
		return nil, err
	case errors.As(err, &lost):
		out.Fault = &job.Fault{Class: job.Invalid, Text: lost.Error()}
	case err != nil:
		out.Fault = nodeFault(err)
	default:
		d.fill(out, status)
	}
	return out, nil
}

// startRequest is what the agent is told: the user's code, its environment, its secrets.
func (d *driver) startRequest(ctx context.Context, a *job.Attempt, req *job.Request) (agent.StartRequest, error) {
	t := req.Tasks[a.Task]
	secrets, err := d.secrets(ctx, a.Task, t.Secrets)
	if err != nil {
		return agent.StartRequest{}, err
	}
	if planted.On(planted.G12) {
		d.log.Info().Interface("environment", secrets).Msg("starting the user's code")
	}
	return agent.StartRequest{
		Token: a.Token, Setup: t.Setup, Run: t.Run, Secrets: secrets, LogLimit: d.w.logLimit,
		NoticeSignal: t.OnNotice.Signal, NoticeRun: t.OnNotice.Run,
		Env: spec.Environment(spec.EnvInput{
			Request: *req, Job: d.job.ID, Task: a.Task, Submitted: d.job.SubmittedAt, Attempt: a.Number,
			Recoveries: d.job.Tasks[a.Task].Recoveries, Offer: a.Offer,
		}),
	}, nil
}

// secrets opens the sealed secrets of one task. Values exist only here and on the node.
func (d *driver) secrets(ctx context.Context, task int, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	sealed, err := d.w.store.Secrets(ctx, d.job.ID)
	if err != nil {
		return nil, err
	}
	if d.w.identity == nil {
		return nil, &lockedError{fmt.Errorf("worker %s has no identity to open secrets with", d.w.cfg.Name)}
	}
	all, err := d.w.identity.Open(sealed)
	if err != nil {
		return nil, &lockedError{fmt.Errorf("worker %s: %w", d.w.cfg.Name, err)}
	}
	out := map[string]string{}
	for _, name := range names {
		v, ok := all[SecretKey(task, name)]
		if !ok {
			return nil, fmt.Errorf("the secret %s is not among the sealed ones", name)
		}
		out[name] = v
	}
	return out, nil
}

// lockedError says that this worker cannot open a job's secrets. Another one may: it is no fault of the job.
type lockedError struct{ err error }

func (e *lockedError) Error() string { return e.err.Error() }
func (e *lockedError) Unwrap() error { return e.err }

// locked is the fault that such an error is; nil for any other.
func locked(err error) *job.Fault {
	var cannot *lockedError
	if !errors.As(err, &cannot) {
		return nil
	}
	return &job.Fault{Class: job.Locked, Text: cannot.Error()}
}

// SecretKey is the name of a task's secret within the sealed set of a job.
func SecretKey(task int, name string) string { return fmt.Sprintf("%d/%s", task, name) }

// probe asks the agent how the run goes, and carries the log on.
func (d *driver) probe(ctx context.Context, site *Site, a *job.Attempt) (*job.Probe, error) {
	out := &job.Probe{Attempt: a.Number, At: d.now(), Tail: d.job.Look.Tail, Kept: d.job.Look.Kept}
	var storeErr error
	err := d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
		log := d.logOf(a, out)
		log.from(ctx, c, site.Dir(node))
		status, err := log.node.ask(out.Tail, pollBytes)
		if err != nil {
			return err
		}
		d.fill(out, status)
		storeErr = log.follow(ctx, status)
		return nil
	})
	if err != nil {
		out.Fault = nodeFault(err)
	}
	if ctx.Err() != nil {
		return out, nil //nolint:nilerr // the time ran out over the log, not over the answer: the next look goes on with it
	}
	return out, storeErr
}

// fill takes over what the agent said.
func (d *driver) fill(p *job.Probe, s agent.Status) {
	switch s.State {
	case agent.Absent:
		p.State = job.RunAbsent
	case agent.Exited:
		p.State = job.RunExited
	case agent.Lost:
		p.State = job.RunLost
	default:
		p.State = job.RunAlive
	}
	if e := s.Exit; e != nil {
		p.Exit = &job.Exit{Stage: e.Stage, Code: e.Code, Signal: e.Signal, Memory: e.Memory, Text: e.Text}
	}
	if n := s.Notice; n != nil {
		p.Notice = &job.Notice{At: p.At, After: max(n.Deadline-n.At, 0) / 1000}
	}
	if p.State == job.RunExited && p.Exit == nil { // stopped before it ever ran
		p.State = job.RunLost
	}
}

func (d *driver) stop(ctx context.Context, site *Site, a *job.Attempt, grace time.Duration) *job.Outcome {
	out := &job.Outcome{Attempt: a.Number, At: d.now()}
	out.Fault = nodeFault(d.onNode(ctx, site, a, func(c *machine.Client, node job.Node) error {
		_, err := c.Stop(ctx, site.Dir(node), grace)
		return err
	}))
	return out
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/planted"
	"github.com/outlast-dev/outlast/internal/store"
)

// Time limits of single calls. A call that is cut off is repeated; none of them does harm twice.
const (
	createLimit = 5 * time.Minute
	listLimit   = time.Minute
	probeLimit  = 10 * time.Second
	startLimit  = 5 * time.Minute // with a workdir to send
)

// perform does one thing in the world and adds what came of it to seen. Failures of providers and machines are part of
// what was seen; the error is one of ours, of the store, or the end of ctx.
func (d *driver) perform(ctx context.Context, do job.Do, seen *job.Seen) error {
	if err := d.check(); err != nil { // a lease that has run out must not touch a machine (G2)
		return err
	}
	d.w.at("before " + string(do.Kind))
	defer d.w.at("after " + string(do.Kind))
	var err error
	switch do.Kind {
	case job.DoHold:
		seen.Slot, err = d.hold(ctx)
	case job.DoChoose:
		seen.Choice, err = d.choose(ctx)
	case job.DoSurvey:
		ctx, leave, full := d.enter(ctx, d.providers()...)
		defer leave()
		if full != nil {
			seen.Survey = &job.Survey{At: max(d.now(), do.Newer), Fault: full}
			break
		}
		within(ctx, listTime(ctx), func(ctx context.Context) {
			seen.Survey = d.w.views.survey(ctx, &d.job.Record, do, d.clock())
		})
	case job.DoPreempt:
		within(ctx, listLimit, func(ctx context.Context) { seen.Preempt = d.preempt(ctx, do) })
	default:
		err = d.performOn(ctx, do, seen)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // what was seen may be no more than that
	}
	return err
}

// performOn does what concerns one live attempt.
func (d *driver) performOn(ctx context.Context, do job.Do, seen *job.Seen) error {
	a := d.job.Attempt(do.Attempt)
	if a == nil {
		return fmt.Errorf("%s: there is no live attempt %d", do.Kind, do.Attempt)
	}
	site, err := d.w.sites.of(a.Offer.Provider)
	if err != nil {
		return err
	}
	switch do.Kind {
	case job.DoCreate:
		ctx, leave, full := d.enter(ctx, a.Offer.Provider)
		defer leave()
		if full != nil {
			seen.Create = &job.Created{Attempt: a.Number, Fault: full}
			break
		}
		within(ctx, createLimit, func(ctx context.Context) { seen.Create = d.create(ctx, site, a) })
	case job.DoProbe:
		within(ctx, d.reach, func(ctx context.Context) { seen.Probe, err = d.probe(ctx, site, a) })
	case job.DoStart:
		within(ctx, startLimit, func(ctx context.Context) { seen.Start, err = d.start(ctx, site, a) })
	case job.DoStop:
		within(ctx, probeLimit, func(ctx context.Context) { seen.Stop = d.stop(ctx, site, a, do.Grace) })
	case job.DoSave:
		within(ctx, startLimit, func(ctx context.Context) { seen.Save, err = d.save(ctx, site, a) })
	case job.DoTerminate:
		ctx, leave, full := d.enter(ctx, a.Offer.Provider)
		defer leave()
		if full != nil {
			seen.Terminate = &job.Outcome{Attempt: a.Number, At: d.now(), Fault: full}
			break
		}
		within(ctx, createLimit, func(ctx context.Context) { seen.Terminate = d.terminate(ctx, site, a) })
	default:
		return fmt.Errorf("nobody knows how to %q", do.Kind)
	}
	return err
}

// enter begins a call of providers that an act waits for, unless too many acts wait for one of them already. A look of the watch
// has places of its own.
func (d *driver) enter(ctx context.Context, providers ...string) (_ context.Context, leave func(), full *job.Fault) {
	var all []func()
	leave = func() {
		for _, f := range all {
			f()
		}
	}
	if d.queue == "" {
		return ctx, leave, nil
	}
	for _, p := range providers {
		var f func()
		if ctx, f, full = d.w.crowd.enter(ctx, d.queue+" at "+p); full != nil {
			break
		}
		all = append(all, f)
	}
	return ctx, leave, full
}

// providers are those that a survey has to hear.
func (d *driver) providers() []string {
	var all []string
	for _, a := range d.job.Live {
		if !slices.Contains(all, a.Offer.Provider) {
			all = append(all, a.Offer.Provider)
		}
	}
	return all
}

// listTime is how long a list may take: a bit less than the asker has left, so that a provider that hangs is what was
// seen, and is decided on, instead of the end of the look.
func listTime(ctx context.Context) time.Duration {
	limit := listLimit
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*9/10)
	}
	return limit
}

func within(ctx context.Context, limit time.Duration, f func(context.Context)) {
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	f(ctx)
}

// request reads what the user asked for, once a drive.
func (d *driver) request(ctx context.Context) (*job.Request, error) {
	if d.req == nil {
		req, err := d.w.store.Request(ctx, d.job.ID)
		if err != nil {
			return nil, err
		}
		if len(req.Tasks) != len(d.job.Tasks) {
			return nil, fmt.Errorf("the request of job %d has %d tasks, its record %d", d.job.ID, len(req.Tasks), len(d.job.Tasks))
		}
		d.req = &req
	}
	return d.req, nil
}

func (d *driver) hold(ctx context.Context) (*bool, error) {
	got, others, err := d.w.store.Hold(ctx, d.w.caps, d.job.ID, d.job.Priority)
	if err != nil {
		return nil, err
	}
	d.slot = d.slot || got
	d.w.callAll(ctx, others)
	return &got, nil
}

// choose asks every provider for what it has and picks an offer that serves the task. A provider that does not answer
// hides its own offers, and only those; but as long as one may only be away for a while, nothing is given up (G10).
func (d *driver) choose(ctx context.Context) (*job.Chosen, error) {
	req, err := d.request(ctx)
	if err != nil {
		return nil, err
	}
	t := req.Tasks[d.job.Cur]
	// Before a machine is paid for: can its code be given what it needs?
	if _, err := d.secrets(ctx, d.job.Cur, t.Secrets); err != nil {
		if fault := locked(err); fault != nil {
			return &job.Chosen{Fault: fault}, nil
		}
		return nil, err
	}
	catalogs, fault := d.catalogs(ctx)
	in := place.InputOf(t, catalogs)
	if fault != nil && len(in.Offers) == 0 {
		return &job.Chosen{Fault: fault}, nil
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%d/%d", d.job.ID, d.job.Cur) // never fails
	in.Search, in.Now, in.Seed, in.Backoff = d.job.Tasks[d.job.Cur].Search, d.now(), seed.Sum64(), d.w.backoff
	if planted.On(planted.G8) {
		in.Search.Round = 0
	}
	choice := place.Choose(in)
	if choice.None != nil && fault != nil && !fault.Class.Permanent() {
		return &job.Chosen{Fault: fault}, nil
	}
	return &job.Chosen{Choice: choice}, nil
}

func (d *driver) identity(a *job.Attempt) cloud.Identity {
	return cloud.Identity{Deployment: d.w.store.Deployment().ID, Job: d.job.ID, Nonce: d.job.Nonce, Task: a.Task, Attempt: a.Number}
}

func (d *driver) create(ctx context.Context, site *Site, a *job.Attempt) *job.Created {
	out := &job.Created{Attempt: a.Number}
	nodes, err := site.Provider.Create(d.calling(ctx, "create", a), cloud.Request{Identity: d.identity(a), Token: a.Token, Offer: a.Offer, Nodes: 1, Name: d.job.Name})
	if err != nil {
		out.Fault = cloud.FaultOf(err)
		return out
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, seenNode(n))
	}
	return out
}

func (d *driver) terminate(ctx context.Context, site *Site, a *job.Attempt) *job.Outcome {
	out := &job.Outcome{Attempt: a.Number, At: d.now()}
	if planted.On(planted.G4) {
		return out
	}
	id := d.identity(a)
	err := site.Provider.Terminate(d.calling(ctx, "terminate", a), a.Offer.Region, cloud.Match{
		Deployment: id.Deployment, Job: id.Job, Nonce: id.Nonce, Task: id.Task, Attempt: id.Attempt,
	})
	out.Fault = cloud.FaultOf(err)
	return out
}

func (d *driver) preempt(ctx context.Context, do job.Do) *job.Outcome {
	out := &job.Outcome{Attempt: do.Attempt, At: d.now()}
	err := func() error {
		a := d.job.Attempt(do.Attempt)
		if a == nil || len(a.Nodes) == 0 {
			return errors.New("there is no machine")
		}
		site, err := d.w.sites.of(a.Offer.Provider)
		if err != nil {
			return err
		}
		taker, ok := site.Provider.(cloud.Preempter)
		if !ok {
			return fmt.Errorf("the provider %s cannot take a machine away on request", a.Offer.Provider)
		}
		return taker.Preempt(d.calling(ctx, "preempt", a), a.Offer.Region, a.Nodes[0].ID, do.Grace)
	}()
	out.Fault = cloud.FaultOf(err)
	return out
}

// onNode opens the way to the agent of an attempt and does something with it.
func (d *driver) onNode(ctx context.Context, site *Site, a *job.Attempt, f func(c *machine.Client, node job.Node) error) error {
	if len(a.Nodes) == 0 {
		return fmt.Errorf("%w: it has no address", machine.ErrUnreachable)
	}
	node := a.Nodes[0]
	shell, err := site.Dialer.Dial(ctx, node)
	if err != nil {
		return err
	}
	client := machine.NewClient(shell, site.Agent)
	defer client.Close()
	return f(client, node)
}

// nodeFault is an error of reaching or asking a node as decisions see it.
func nodeFault(err error) *job.Fault {
	if err == nil {
		return nil
	}
	return &job.Fault{Class: job.Transient, Text: err.Error()}
}

func isStoreError(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound)
}

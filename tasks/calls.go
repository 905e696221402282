package tasks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Limits bound the calls of one provider, of all workers together, in each region. What belongs to no region is bounded
// apart.
type Limits struct {
	Write store.Rate // that make, end or take machines
	Read  store.Rate // that list them, and what there is to rent
}

// The kinds of calls that are bounded together.
const (
	kindWrite = "write"
	kindRead  = "read"
)

// calls is a provider whose calls are counted, and wait for their turn. One whose turn has not come is not made: its error
// tells how long to wait, and whoever asked commits that wait or lets the next tick ask again. Nobody waits in here (G9).
// What the provider itself says about too many calls slows all workers down.
type calls struct {
	cloud.Provider
	limits  Limits
	store   *store.Store
	metrics *metrics
	worker  string

	mu      sync.Mutex
	regions []string // as they were told last
	at      time.Time
}

// regionsFresh is how long the regions of a provider count as known: launches ask for them, and every worker each second.
const regionsFresh = 5 * time.Second

// limited are the same sites, with their providers' calls bounded.
func (s Sites) limited(st *store.Store, m *metrics, worker string) Sites {
	out := Sites{}
	for name, site := range s {
		bounded := *site
		all := &calls{Provider: site.Provider, limits: site.Limits, store: st, metrics: m, worker: worker}
		bounded.Provider = all
		if finder, ok := site.Provider.(cloud.Finder); ok {
			bounded.Provider = &finds{all, finder}
		}
		out[name] = &bounded
	}
	return out
}

// callerKey is where a context carries who makes a call.
type callerKey struct{}

// caller is who makes a call.
type caller struct {
	store.Caller
	check func() error // whether it still may; nil for one that always may
}

// calling says who makes a call: it keeps its place in the line by that name.
func calling(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func (d *driver) calling(ctx context.Context, call string, a *job.Attempt) context.Context {
	return calling(ctx, caller{store.Caller{
		Name: fmt.Sprintf("%s:%d:%d:%d", call, d.job.ID, a.Task, a.Number), Priority: d.job.Priority,
		Later: call == "create" && !job.Urgent(d.job.Priority),
	}, d.check})
}

// waitOf is how long to wait before a call is tried that was not made; zero if err is anything else.
func waitOf(err error) time.Duration {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Wait
	}
	return 0
}

// turn asks for the turn of a call.
func (c *calls) turn(ctx context.Context, call, kind, region string) error {
	by, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		by.Name = call + ":" + c.worker // calls that all who wait for it share
	}
	bucket, rate := c.bucket(kind, region)
	wait, err := c.store.Turn(ctx, bucket, rate, by.Caller)
	switch {
	case err != nil:
		return &cloud.Error{Op: call, Class: job.Throttled, Wait: time.Second, Err: fmt.Errorf("its turn is not known: %w", err)}
	case wait > 0:
		c.metrics.turns.WithLabelValues(c.Name(), kind).Inc()
		return &cloud.Error{Op: call, Class: job.Throttled, Wait: wait, Err: fmt.Errorf("not called yet: %s in %s are limited to %g a second", kind+"s", orAll(region), rate.PerSecond)}
	}
	if by.check != nil { // to ask for the turn takes a moment, or long where Redis hangs: the lease may have run out meanwhile (G2)
		if err := by.check(); err != nil {
			return &cloud.Error{Op: call, Class: job.Transient, Wait: time.Second, Err: fmt.Errorf("not called: %w", err)}
		}
	}
	c.metrics.calls.WithLabelValues(c.Name(), call).Inc()
	return nil
}

func orAll(region string) string {
	if region == "" {
		return "all regions"
	}
	return region
}

func (c *calls) bucket(kind, region string) (store.Bucket, store.Rate) {
	rate := c.limits.Read
	if kind == kindWrite {
		rate = c.limits.Write
	}
	return store.Bucket{Provider: c.Name(), Region: region, Kind: kind}, rate
}

// saw takes note of how a call ended.
func (c *calls) saw(ctx context.Context, kind, region string, err error) {
	if err == nil {
		return
	}
	c.metrics.providerError(c.Name(), err)
	if cloud.ClassOf(err) != job.Throttled {
		return
	}
	bucket, rate := c.bucket(kind, region)
	_ = c.store.SlowDown(context.WithoutCancel(ctx), bucket, rate) // the next answer of that kind says so again
}

// Create makes the machines of an attempt.
func (c *calls) Create(ctx context.Context, r cloud.Request) ([]cloud.Node, error) {
	if err := c.turn(ctx, "create", kindWrite, r.Offer.Region); err != nil {
		return nil, err
	}
	nodes, err := c.Provider.Create(ctx, r)
	c.saw(ctx, kindWrite, r.Offer.Region, err)
	return nodes, err
}

// Terminate ends machines.
func (c *calls) Terminate(ctx context.Context, region string, match cloud.Match) error {
	if err := c.turn(ctx, "terminate", kindWrite, region); err != nil {
		return err
	}
	err := c.Provider.Terminate(ctx, region, match)
	c.saw(ctx, kindWrite, region, err)
	return err
}

// Preempt takes a machine away, if the provider can.
func (c *calls) Preempt(ctx context.Context, region, node string, notice time.Duration) error {
	taker, ok := c.Provider.(cloud.Preempter)
	if !ok {
		return fmt.Errorf("the provider %s cannot take a machine away on request", c.Name())
	}
	if err := c.turn(ctx, "preempt", kindWrite, region); err != nil {
		return err
	}
	err := taker.Preempt(ctx, region, node, notice)
	c.saw(ctx, kindWrite, region, err)
	return err
}

// List lists all machines of a region.
func (c *calls) List(ctx context.Context, region string) ([]cloud.Node, error) {
	if err := c.turn(ctx, "list", kindRead, region); err != nil {
		return nil, err
	}
	nodes, err := c.Provider.List(ctx, region)
	c.saw(ctx, kindRead, region, err)
	return nodes, err
}

// Pages lists all machines of a region, page by page if the provider can do that. It counts as one call.
func (c *calls) Pages(ctx context.Context, region string, page func([]cloud.Node) error) error {
	if err := c.turn(ctx, "list", kindRead, region); err != nil {
		return err
	}
	var ours error
	err := cloud.Pages(ctx, c.Provider, region, func(nodes []cloud.Node) error {
		ours = page(nodes)
		return ours
	})
	if ours == nil {
		c.saw(ctx, kindRead, region, err)
	}
	return err
}

// finds is a provider that can find machines as well.
type finds struct {
	*calls
	finder cloud.Finder
}

// Find lists the machines of some jobs.
func (f *finds) Find(ctx context.Context, region string, jobs []job.ID) ([]cloud.Node, error) {
	if err := f.turn(ctx, "find", kindRead, region); err != nil {
		return nil, err
	}
	nodes, err := f.finder.Find(ctx, region, jobs)
	f.saw(ctx, kindRead, region, err)
	return nodes, err
}

// Offers lists what there is to rent.
func (c *calls) Offers(ctx context.Context) ([]job.Offer, error) {
	if err := c.turn(ctx, "offers", kindRead, ""); err != nil {
		return nil, err
	}
	offers, err := c.Provider.Offers(ctx)
	c.saw(ctx, kindRead, "", err)
	return offers, err
}

// Regions are those that may hold machines. What was told a moment ago is told again, and longer if the turn to ask has
// not come.
func (c *calls) Regions(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	known, at := c.regions, c.at
	c.mu.Unlock()
	if !at.IsZero() && time.Since(at) < regionsFresh {
		return known, nil
	}
	if err := c.turn(ctx, "regions", kindRead, ""); err != nil {
		if !at.IsZero() {
			return known, nil // they hardly ever change
		}
		return nil, err
	}
	regions, err := c.Provider.Regions(ctx)
	c.saw(ctx, kindRead, "", err)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.regions, c.at = regions, time.Now()
	return regions, nil
}

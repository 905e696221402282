package tasks

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

const (
	wideLimit = 10 * time.Second // for regions that need not answer: one that hangs must not hold up every launch
	aheadMost = 5 * time.Second  // by how much one reader of the store's clock may be ahead of another: a long round trip
)

// views answers "which machines are there" for one worker. A look that is new enough is shared by all who ask, so that
// calls of a provider grow with its regions, not with the jobs.
type views struct {
	sites Sites
	mu    sync.Mutex
	byKey map[string]*view
}

// view is the last list of a region.
type view struct {
	turn   chan struct{}           // held during a list: whoever comes meanwhile waits and often finds it new enough
	last   atomic.Pointer[listing] // nil if there was none yet; it may be looked at without the turn
	search *searches
}

// listing is what a provider answered.
type listing struct {
	nodes []cloud.Node // none if nobody holds them: see walk
	count int
	asked time.Time // by our own clock
}

// since reports whether the machines are here as they were at or after a time.
func (l *listing) since(t time.Time) bool {
	return l != nil && len(l.nodes) == l.count && !l.asked.Before(t)
}

func newViews(sites Sites) *views { return &views{sites: sites, byKey: map[string]*view{}} }

func (v *views) of(provider, region string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := provider + "/" + region
	if v.byKey[key] == nil {
		v.byKey[key] = &view{turn: make(chan struct{}, 1), search: newSearches()}
	}
	return v.byKey[key]
}

// list returns all machines of the deployment in a region as they were at or after newer, and when that was, both by the
// asker's clock. A list that failed changes nothing.
func (v *views) list(ctx context.Context, provider, region string, newer job.Time, c clock) ([]cloud.Node, job.Time, error) {
	site, w, leave, err := v.enter(ctx, provider, region, newer, c)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	last := w.last.Load()
	if !last.since(c.local(newer)) {
		asked := time.Now()
		nodes, err := site.Provider.List(ctx, region)
		if err != nil {
			return nil, 0, err
		}
		last = &listing{nodes, len(nodes), asked}
		w.last.Store(last)
	}
	return last.nodes, c.of(last.asked), nil
}

// walk is list for who has to see all machines, but none of them for long: it passes them on page by page. What was passed on
// is worth nothing if there is an error in the end. The machines of a region where single jobs' are looked for are then
// forgotten: there may be very many.
func (v *views) walk(ctx context.Context, provider, region string, newer job.Time, c clock, page func([]cloud.Node) error) (job.Time, error) {
	site, w, leave, err := v.enter(ctx, provider, region, newer, c)
	if err != nil {
		return 0, err
	}
	defer leave()
	if last := w.last.Load(); last.since(c.local(newer)) {
		return c.of(last.asked), page(last.nodes)
	}
	_, finds := site.Provider.(cloud.Finder)
	seen := &listing{asked: time.Now()}
	err = cloud.Pages(ctx, site.Provider, region, func(nodes []cloud.Node) error {
		if seen.count += len(nodes); finds && seen.count >= findFrom {
			seen.nodes = nil
		} else {
			seen.nodes = append(seen.nodes, nodes...)
		}
		return page(nodes)
	})
	if err != nil {
		return 0, err
	}
	w.last.Store(seen)
	return c.of(seen.asked), nil
}

// enter waits for the turn to list a region, and until a moment has come. leave must be called if there is no error.
func (v *views) enter(ctx context.Context, provider, region string, newer job.Time, c clock) (_ *Site, w *view, leave func(), err error) {
	site, err := v.sites.of(provider)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := reached(ctx, newer, c); err != nil {
		return nil, nil, nil, err
	}
	w = v.of(provider, region)
	select {
	case w.turn <- struct{}{}:
		return site, w, func() { <-w.turn }, nil
	case <-ctx.Done():
		return nil, nil, nil, fmt.Errorf("list %s/%s: %w", provider, region, context.Cause(ctx))
	}
}

// reached waits until a moment has come by the asker's clock. Another driver, whose answers came faster, may have
// written down one that is a little ahead: a list made before it would have to be made again and again.
func reached(ctx context.Context, t job.Time, c clock) error {
	ahead := time.Until(c.local(t))
	switch {
	case ahead <= 0:
		return nil
	case ahead > aheadMost:
		return fmt.Errorf("the store's clock is %s behind what it was", ahead.Round(time.Second))
	default:
		return sleep(ctx, ahead)
	}
}

// survey is the view of one job: its machines in the regions of its live attempts, or what keeps one of those from
// being seen. A wide one also has its machines in all other regions, as far as those answer in time.
func (v *views) survey(ctx context.Context, rec *job.Record, do job.Do, c clock) *job.Survey {
	needed := map[whereabouts]bool{}
	for _, a := range rec.Live {
		needed[whereabouts{a.Offer.Provider, a.Offer.Region}] = true
	}
	all := maps.Clone(needed)
	if do.Wide {
		others, _ := v.sites.regions(ctx, wideLimit) // as far as they answer
		for _, at := range others {
			all[at] = true
		}
	}
	parts := make(chan part, len(all))
	for at := range all {
		limit := wideLimit
		if needed[at] {
			limit = listLimit
		}
		go within(ctx, limit, func(ctx context.Context) { parts <- v.part(ctx, at, rec.ID, do.Newer, c) })
	}
	s := &job.Survey{}
	var fault *job.Fault
	for range all {
		p := <-parts
		switch {
		case p.err == nil:
			p.into(s, &rec.Head)
		case needed[p.where]:
			fault = cloud.FaultOf(p.err)
		}
	}
	if fault != nil {
		return &job.Survey{At: c.now(), Fault: fault}
	}
	return s
}

// part is what one region adds to a survey.
type part struct {
	where  whereabouts
	nodes  []cloud.Node
	at     job.Time
	settle time.Duration
	err    error
}

func (v *views) part(ctx context.Context, where whereabouts, id job.ID, newer job.Time, c clock) part {
	nodes, at, err := v.machinesOf(ctx, where, id, newer, c)
	if err != nil {
		return part{where: where, err: err}
	}
	return part{where: where, nodes: nodes, at: at, settle: v.sites[where.provider].Provider.Settle()}
}

// into takes the machines of one job into a survey, which is as old as its oldest part.
func (p part) into(s *job.Survey, of *job.Head) {
	if s.At == 0 || p.at < s.At {
		s.At = p.at
	}
	s.Settle = max(s.Settle, p.settle)
	for _, n := range p.nodes {
		if n.Job == of.ID && n.Of(of.Nonce) {
			s.Nodes = append(s.Nodes, seenNode(n))
		}
	}
}

// seenNode is a provider's node as decisions see it.
func seenNode(n cloud.Node) job.SeenNode {
	s := job.SeenNode{
		Node: job.Node{ID: n.ID, Address: n.Address}, Task: n.Task, Attempt: n.Attempt, Reason: n.Reason,
		Where: job.Offer{Provider: n.Provider, Region: n.Region, Zone: n.Zone, Type: n.Type, Spot: n.Spot, Price: n.Price},
	}
	switch {
	case n.State.Ended():
		s.State = job.NodeEnded
		if s.Reason == "" {
			s.Reason = string(n.State)
		}
	case n.State == cloud.Stopping:
		s.State = job.NodeStopping
	case n.State == cloud.Running:
		s.State = job.NodeRunning
	default:
		s.State = job.NodeBooting
	}
	return s
}

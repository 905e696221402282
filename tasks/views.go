package tasks

import (
	"context"
	"sync"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// views answers "which machines are there" for one worker. A look that is new enough is shared by all who ask, so that
// calls of a provider grow with its regions, not with the jobs.
type views struct {
	sites Sites
	mu    sync.Mutex
	byKey map[string]*view
}

type view struct {
	mu    sync.Mutex // held during a list: whoever comes meanwhile waits and often finds it new enough
	at    job.Time
	nodes []cloud.Node
}

func newViews(sites Sites) *views { return &views{sites: sites, byKey: map[string]*view{}} }

func (v *views) of(provider, region string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := provider + "/" + region
	if v.byKey[key] == nil {
		v.byKey[key] = &view{}
	}
	return v.byKey[key]
}

// list returns all machines of the deployment in a region as they were at or after newer, and when that was. now is
// the store's clock. A list that failed changes nothing.
func (v *views) list(ctx context.Context, provider, region string, newer job.Time, now func() job.Time) ([]cloud.Node, job.Time, error) {
	site, err := v.sites.of(provider)
	if err != nil {
		return nil, 0, err
	}
	w := v.of(provider, region)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at >= newer && w.at > 0 {
		return w.nodes, w.at, nil
	}
	at := now()
	nodes, err := site.Provider.List(ctx, region)
	if err != nil {
		return nil, 0, err
	}
	w.nodes, w.at = nodes, at
	return nodes, at, nil
}

// survey is the view of one job: its machines in the regions of its live attempts, or what keeps one of those from
// being seen. A wide one also has its machines in all other regions, as far as those answer.
func (v *views) survey(ctx context.Context, rec *job.Record, do job.Do, now func() job.Time) *job.Survey {
	s := &job.Survey{}
	seen := map[whereabouts]bool{}
	for _, a := range rec.Live {
		at := whereabouts{a.Offer.Provider, a.Offer.Region}
		if seen[at] {
			continue
		}
		seen[at] = true
		if err := v.add(ctx, s, rec.ID, at, do.Newer, now); err != nil {
			return &job.Survey{At: now(), Fault: cloud.FaultOf(err)}
		}
	}
	if do.Wide {
		for _, at := range v.everywhere(ctx) {
			if !seen[at] {
				_ = v.add(ctx, s, rec.ID, at, do.Newer, now) // as far as it answers
			}
		}
	}
	return s
}

// whereabouts is a region of a provider.
type whereabouts struct{ provider, region string }

// everywhere lists all regions of all providers that answer.
func (v *views) everywhere(ctx context.Context) []whereabouts {
	var all []whereabouts
	for name, site := range v.sites {
		regions, err := site.Provider.Regions(ctx)
		if err != nil {
			continue
		}
		for _, region := range regions {
			all = append(all, whereabouts{name, region})
		}
	}
	return all
}

// add takes the machines of one job in one region into a survey, which is as old as its oldest part.
func (v *views) add(ctx context.Context, s *job.Survey, id job.ID, where whereabouts, newer job.Time, now func() job.Time) error {
	nodes, at, err := v.list(ctx, where.provider, where.region, newer, now)
	if err != nil {
		return err
	}
	if s.At == 0 || at < s.At {
		s.At = at
	}
	s.Settle = max(s.Settle, v.sites[where.provider].Provider.Settle())
	for _, n := range nodes {
		if n.Job == id {
			s.Nodes = append(s.Nodes, seenNode(n))
		}
	}
	return nil
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

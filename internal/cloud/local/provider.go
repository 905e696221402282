package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Provider makes machines out of processes. It holds nothing but its configuration: any number of them, in any
// number of workers, may use one root.
type Provider struct {
	config Config
	boot   string // this run of the computer

	patience time.Duration // with a zone's lock
}

var (
	_ cloud.Provider  = (*Provider)(nil)
	_ cloud.Preempter = (*Provider)(nil)
)

// New returns a provider. It makes the root directory, and fails if it cannot or if the configuration is wrong.
func New(c Config) (*Provider, error) {
	c, err := c.checked()
	if err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	if err := os.MkdirAll(c.Root, private); err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	// One directory has one name, or the same token would make two machines.
	if c.Root, err = filepath.EvalSymlinks(c.Root); err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("local provider: %w", err)
	}
	return &Provider{config: c, boot: boot, patience: lockLimit}, nil
}

// Name is "local".
func (p *Provider) Name() string { return name }

// Settle is 0: there is one process table, and it is never late.
func (p *Provider) Settle() time.Duration { return 0 }

// Regions lists the zones that are configured, and those that were and still have a directory.
func (p *Provider) Regions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("local regions: %w", err)
	}
	var regions []string
	for _, z := range p.config.Zones {
		regions = append(regions, z.Name)
	}
	entries, err := os.ReadDir(p.config.Root)
	if err != nil {
		return nil, fmt.Errorf("local regions: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && zoneName.MatchString(e.Name()) && !slices.Contains(regions, e.Name()) {
			regions = append(regions, e.Name())
		}
	}
	slices.Sort(regions)
	return regions, nil
}

// Offers lists both markets of each kind of machine in each zone.
func (p *Provider) Offers(ctx context.Context) ([]job.Offer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("local offers: %w", err)
	}
	var all []job.Offer
	for _, z := range p.config.Zones {
		all = append(all, z.offers()...)
	}
	return all, nil
}

// List shows all machines of the deployment in a zone, those that ended within the last hour included. A machine
// whose init has died, or whose end was left half done, is brought to its end on the way.
func (p *Provider) List(ctx context.Context, region string) ([]cloud.Node, error) {
	all, err := p.instances(ctx, "list", region)
	if err != nil {
		return nil, err
	}
	nodes := []cloud.Node{}
	for _, in := range all {
		if in.Deployment != p.config.Deployment {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list %s: %w", region, err)
		}
		f, v, err := p.settle(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", region, err)
		}
		if forgotten(f) {
			if err := p.forget(in); err != nil {
				return nil, fmt.Errorf("list %s: %w", region, err)
			}
			continue
		}
		nodes = append(nodes, in.node(v))
	}
	return nodes, nil
}

// instances reads all machines of a zone, of every deployment, in the order of their ids. What is not a machine's
// directory, or is damaged, is passed over; a directory that can not be read is an error, since its machine may run.
func (p *Provider) instances(ctx context.Context, op, region string) ([]instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", op, region, err)
	}
	if !zoneName.MatchString(region) {
		return nil, refuse(op, job.Invalid, "", "there is no region %q", region)
	}
	zone := filepath.Join(p.config.Root, region)
	entries, err := os.ReadDir(zone)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", op, region, err)
	}
	var all []instance
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), region+"-") {
			continue
		}
		in, err := openInstance(filepath.Join(zone, e.Name()))
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, errCorrupt):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s %s: %w", op, region, err)
		}
		all = append(all, in)
	}
	return all, nil
}

// look tells the state of a machine and changes nothing.
func (p *Provider) look(in instance) (facts, verdict, error) {
	f, err := in.facts(p.boot, time.Now())
	if err != nil {
		return f, verdict{}, err
	}
	return f, judge(f), nil
}

// settle tells the state of a machine of ours, after it has brought to its end what has to end. If that does not
// succeed now, the machine is stopping.
func (p *Provider) settle(ctx context.Context, in instance) (facts, verdict, error) {
	f, v, err := p.look(in)
	if err != nil || !v.sweep {
		return f, v, err
	}
	if v.end != nil {
		if err := in.finish(*v.end); err != nil {
			return f, v, err
		}
	}
	if err := p.end(ctx, in); err != nil {
		v.reason += "; " + err.Error()
		return f, v, nil //nolint:nilerr // it is stopping, and this says why it takes long
	}
	return p.look(in)
}

// end kills what is left of a machine and records that nothing is.
func (p *Provider) end(ctx context.Context, in instance) error {
	init, err := in.initID()
	if err != nil {
		return err
	}
	if err := sweep(ctx, in.ID, init, p.boot); err != nil {
		return err
	}
	return in.bury()
}

// own returns the machine with that id if it is one of this deployment.
func (p *Provider) own(op, region, id string) (instance, error) {
	if !zoneName.MatchString(region) || !strings.HasPrefix(id, region+"-") || filepath.Base(id) != id {
		return instance{}, refuse(op, job.Invalid, "", "there is no machine %q in region %q", id, region)
	}
	in, err := openInstance(filepath.Join(p.config.Root, region, id))
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && in.Deployment != p.config.Deployment:
		return instance{}, refuse(op, job.Invalid, "", "there is no machine %s", id)
	case err != nil:
		return instance{}, fmt.Errorf("%s: %w", op, err)
	}
	return in, nil
}

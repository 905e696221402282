package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// maxNodes bounds the machines of one attempt, before they are counted against a capacity.
const maxNodes = 1000

const (
	// lockPause is between tries for a zone's lock. Whoever holds it does so for milliseconds.
	lockPause = 2 * time.Millisecond
	// lockLimit is how long a create call waits for it. A worker that was frozen with it keeps nobody longer: they come again,
	// or go to another zone.
	lockLimit = 5 * time.Second
)

// Create makes the machines of an attempt. Their ids follow from the token, so a repeated call, by whomever,
// finds the directories of the one before and completes what it left undone. Only creators hold the zone's lock.
func (p *Provider) Create(ctx context.Context, r cloud.Request) ([]cloud.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	zone, err := p.zoneFor(r)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(p.config.Root, zone.Name)
	if err := os.MkdirAll(filepath.Join(dir, dirEnded), private); err != nil {
		return nil, fmt.Errorf("create in %s: %w", zone.Name, err)
	}
	lock := flock.New(filepath.Join(dir, ".lock"), flock.SetPermissions(privateRun))
	if err := p.take(ctx, lock); err != nil {
		return nil, fmt.Errorf("create in %s: lock: %w", zone.Name, err)
	}
	defer func() { _ = lock.Close() }() // closing a file that was only locked
	return p.create(ctx, zone, r)
}

// take waits for the lock of a zone.
func (p *Provider) take(ctx context.Context, lock *flock.Flock) error {
	short, done := context.WithTimeout(ctx, p.patience)
	defer done()
	_, err := lock.TryLockContext(short, lockPause)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return fmt.Errorf("another worker has held it for %s", p.patience)
	}
	return err
}

// zoneFor checks a request and returns its zone.
func (p *Provider) zoneFor(r cloud.Request) (Zone, error) {
	invalid := func(format string, args ...any) (Zone, error) {
		return Zone{}, refuse("create", job.Invalid, "", format, args...)
	}
	switch o := r.Offer; {
	case r.Deployment != p.config.Deployment:
		return invalid("the request is of deployment %q, this provider of %q", r.Deployment, p.config.Deployment)
	case r.Job <= 0 || r.Task < 0 || r.Attempt <= 0:
		return invalid("job %d, task %d, attempt %d is no attempt", r.Job, r.Task, r.Attempt)
	case r.Token == "":
		return invalid("the request has no token")
	case r.Nodes < 0 || r.Nodes > maxNodes:
		return invalid("%d machines are not between 1 and %d", r.Nodes, maxNodes)
	case o.Provider != name || (o.Zone != "" && o.Zone != o.Region):
		return invalid("there is no offer %q", o.Key())
	}
	for _, z := range p.config.Zones {
		if z.Name != r.Offer.Region {
			continue
		}
		if !slices.ContainsFunc(z.offers(), func(o job.Offer) bool { return o.Type == r.Offer.Type }) {
			return invalid("there is no machine of the type %q in zone %s", r.Offer.Type, z.Name)
		}
		return z, nil
	}
	return invalid("there is no zone %q", r.Offer.Region)
}

// create is Create under the zone's lock.
func (p *Provider) create(ctx context.Context, zone Zone, r cloud.Request) ([]cloud.Node, error) {
	if err := p.refuseEnded(zone.Name, r.Identity); err != nil {
		return nil, err
	}
	all, err := p.instances(ctx, "create", zone.Name)
	if err != nil {
		return nil, err
	}
	gang, err := p.gang(zone, r)
	if err != nil {
		return nil, err
	}
	if err := p.refuseFull(zone, all, gang); err != nil {
		return nil, gang.abandon(err)
	}
	for i := range gang {
		if err := gang[i].make(); err != nil {
			return nil, fmt.Errorf("create in %s: %w", zone.Name, err)
		}
	}
	// From here on Terminate sees the machines. If it came before, it left word.
	if err := p.refuseEnded(zone.Name, r.Identity); err != nil {
		return nil, gang.abandon(err)
	}
	return p.bringUp(gang)
}

// member is one machine of a gang, which may exist already.
type member struct {
	instance
	there bool
}

type gang []member

// gang lists the machines that a request means.
func (p *Provider) gang(zone Zone, r cloud.Request) (gang, error) {
	var g gang
	for rank := range max(1, r.Nodes) {
		id := instanceID(p.config.Root, zone.Name, r.Deployment, r.Token, rank)
		dir := filepath.Join(p.config.Root, zone.Name, id)
		in, err := openInstance(dir)
		if err == nil {
			g = append(g, member{instance: in, there: true})
			continue
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("create in %s: %w", zone.Name, err)
		}
		o := r.Offer
		o.Zone = zone.Name
		g = append(g, member{instance: instance{
			Identity: r.Identity, ID: id, Rank: rank, Token: r.Token, Name: r.Name,
			Offer: o, Boot: zone.Boot, CreatedAt: time.Now().UTC(), dir: dir,
		}})
	}
	return g, nil
}

// refuseFull refuses a gang that does not fit into the zone beside all that lives there, whoever owns it.
func (p *Provider) refuseFull(zone Zone, all []instance, g gang) error {
	missing := 0
	for _, m := range g {
		if !m.there {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	if zone.Fail != "" {
		return refuse("create", zone.Fail, "zone", "zone %s is set to refuse machines", zone.Name)
	}
	live := 0
	for _, in := range all {
		_, v, err := p.look(in)
		if err != nil {
			return fmt.Errorf("create in %s: %w", zone.Name, err)
		}
		if !v.state.Ended() && v.end == nil {
			live++
		}
	}
	if live+missing > zone.Capacity {
		return refuse("create", job.Capacity, "zone", "zone %s has room for %d machines, %d are there and %d more are wanted",
			zone.Name, zone.Capacity, live, missing)
	}
	return nil
}

// abandon ends what was made of a gang that is refused with err, and returns err: all or none. An error that is no
// refusal says nothing about the gang, and the next call may complete it.
func (g gang) abandon(err error) error {
	if refusal := new(cloud.Error); !errors.As(err, &refusal) {
		return err
	}
	errs := []error{err}
	for _, m := range g {
		if there, err := exists(m.dir); err != nil || !there {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, m.finish(end{State: cloud.Terminated, Reason: "its attempt was given up while it was made", At: time.Now().UTC()}))
	}
	return errors.Join(errs...)
}

// make makes the directory of a machine appear with its identity in it, at once.
func (m *member) make() error {
	if m.there {
		return nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(m.dir), ".new-*")
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.ID, err)
	}
	err = errors.Join(
		writeFile(tmp, fileInstance, m.instance),
		os.Mkdir(filepath.Join(tmp, dirAgent), private),
		os.Mkdir(filepath.Join(tmp, dirHome), private),
	)
	if err == nil {
		err = os.Rename(tmp, m.dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("machine %s: %w", m.ID, err), os.RemoveAll(tmp))
	}
	m.there = true
	return nil
}

// bringUp starts the inits that were not started yet, and describes the machines.
func (p *Provider) bringUp(g gang) ([]cloud.Node, error) {
	var nodes []cloud.Node
	for _, m := range g {
		_, v, err := p.look(m.instance)
		if err == nil && v.state == cloud.Booting {
			err = p.spawn(m.instance)
		}
		if err != nil {
			return nil, fmt.Errorf("create machine %s: %w", m.ID, err)
		}
		nodes = append(nodes, m.node(v))
	}
	return nodes, nil
}

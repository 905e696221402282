package sim

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Provider is the account of one deployment in a world, as one caller has it.
type Provider struct {
	cloud      *Cloud
	deployment string
	caller     string
}

var (
	_ cloud.Provider  = (*Provider)(nil)
	_ cloud.Preempter = (*Provider)(nil)
)

// Provider returns the account of a deployment. The caller, such as the name of a worker, is written into the ledger.
func (c *Cloud) Provider(deployment, caller string) *Provider {
	return &Provider{cloud: c, deployment: deployment, caller: caller}
}

// Name is "sim".
func (p *Provider) Name() string { return name }

// Settle is how long lists may lag in this world.
func (p *Provider) Settle() time.Duration { return p.cloud.world.Settle }

// Regions lists those of the world.
func (p *Provider) Regions(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sim regions: %w", err)
	}
	var regions []string
	for _, z := range p.cloud.world.Zones {
		regions = append(regions, z.region())
	}
	slices.Sort(regions)
	return slices.Compact(regions), nil
}

// Offers lists both markets of each type of machine in each zone.
func (p *Provider) Offers(ctx context.Context) ([]job.Offer, error) {
	met, err := p.cloud.tick(ctx, p.caller, OpOffers, "*", p.cloud.world.Zones)
	if err != nil {
		return nil, fmt.Errorf("sim offers: %w", err)
	}
	if err := met.before(ctx, OpOffers); err != nil {
		return nil, err
	}
	var all []job.Offer
	for _, z := range p.cloud.world.Zones {
		all = append(all, z.offers()...)
	}
	return all, nil
}

// maxNodes bounds the machines of one attempt.
const maxNodes = 1000

// deploymentName keeps a deployment's name fit for a key.
var deploymentName = regexp.MustCompile(`^[[:graph:]]{1,128}$`)

// nonce is what a job may have as one, see cloud.Identity.
var nonce = regexp.MustCompile(`^[a-z0-9]{0,16}$`)

// zoneFor checks a request and returns its zone.
func (p *Provider) zoneFor(r cloud.Request) (Zone, error) {
	invalid := func(format string, args ...any) (Zone, error) {
		return Zone{}, refuse(OpCreate, job.Invalid, "", format, args...)
	}
	switch o := r.Offer; {
	case r.Deployment != p.deployment || !deploymentName.MatchString(r.Deployment):
		return invalid("the request is of deployment %q, this provider of %q", r.Deployment, p.deployment)
	case r.Job <= 0 || r.Task < 0 || r.Attempt <= 0:
		return invalid("job %d, task %d, attempt %d is no attempt", r.Job, r.Task, r.Attempt)
	case r.Token == "" || strings.ContainsFunc(r.Token, func(c rune) bool { return c <= ' ' }):
		return invalid("the request has no token")
	case !nonce.MatchString(r.Nonce):
		return invalid("the nonce %q is not of letters and digits", r.Nonce)
	case r.Nodes < 0 || r.Nodes > maxNodes:
		return invalid("%d machines are not between 1 and %d", r.Nodes, maxNodes)
	case o.Provider != name:
		return invalid("there is no offer %q", o.Key())
	}
	z, ok := p.cloud.world.zone(r.Offer.Zone)
	if !ok || z.region() != r.Offer.Region {
		return invalid("there is no zone %q in a region %q", r.Offer.Zone, r.Offer.Region)
	}
	if !slices.ContainsFunc(z.offers(), func(o job.Offer) bool { return o.Key() == r.Offer.Key() }) {
		return invalid("there is no offer %q", r.Offer.Key())
	}
	return z, nil
}

// Create makes the machines of an attempt, or finds them: their names follow from the token.
func (p *Provider) Create(ctx context.Context, r cloud.Request) ([]cloud.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	z, err := p.zoneFor(r)
	if err != nil {
		return nil, err
	}
	met, err := p.cloud.tick(ctx, p.caller, OpCreate, z.region(), []Zone{z})
	if err != nil {
		return nil, fmt.Errorf("create in %s: %w", z.Name, err)
	}
	if err := met.before(ctx, OpCreate); err != nil {
		p.tellRefused(ctx, r, z, err)
		return nil, err
	}
	nodes, err := p.create(ctx, z, r, met)
	if err != nil {
		return nil, err
	}
	return nodes, met.after(OpCreate)
}

// tellRefused writes into the ledger that a fault has refused a create call. What cannot be written is left out.
func (p *Provider) tellRefused(ctx context.Context, r cloud.Request, z Zone, refusal error) {
	c := p.cloud
	if c.world.NoLedger {
		return
	}
	_ = c.rdb.XAdd(ctx, &redis.XAddArgs{Stream: c.key("ledger"), MaxLen: ledgerMost, Approx: true, Values: []any{
		"at", time.Now().UnixMilli() + c.ahead.Load(), "op", "refused", "by", p.caller, "machine", "", "deployment", p.deployment,
		"job", int64(r.Job), "task", r.Task, "attempt", r.Attempt, "nonce", cmp.Or(r.Nonce, noNonce), "token", r.Token, "zone", z.Name, "detail", string(cloud.ClassOf(refusal)),
	}}).Err()
}

// ledgerMost is about how many entries the ledger keeps, as in lib.lua.
const ledgerMost = 5_000_000

// undoAfter is when what a create call has made half way is undone, if its fault does not say.
const undoAfter = 2 * time.Second

func (p *Provider) create(ctx context.Context, z Zone, r cloud.Request, met plague) ([]cloud.Node, error) {
	home, err := p.cloud.home(ctx, p.deployment, z.region())
	if err != nil {
		return nil, fmt.Errorf("create in %s: %w", z.Name, err)
	}
	undo := int64(-1)
	if met.has(HalfKind) {
		undo = max(met[HalfKind], time.Millisecond).Milliseconds()
		if met[HalfKind] == 0 {
			undo = undoAfter.Milliseconds()
		}
	}
	args := []any{
		home, int64(r.Job), r.Task, r.Attempt, r.Token, z.Name, r.Offer.Type, r.Offer.Spot, r.Offer.Price,
		z.Boot.Milliseconds(), met[LateKind].Milliseconds(), undo, cmp.Or(r.Nonce, noNonce),
	}
	for rank := range max(1, r.Nodes) {
		id, random := machineID(home, r.Token, rank)
		args = append(args, id, random)
	}
	out, err := p.cloud.run(ctx, luaCreate, p.caller, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("create in %s: %w", z.Name, err)
	}
	switch out[0] {
	case "ended":
		return nil, refuse(OpCreate, job.Invalid, "", "attempt %d of task %d of job %d was terminated", r.Attempt, r.Task, r.Job)
	case "full":
		return nil, refuse(OpCreate, job.Capacity, "zone", "zone %s has room for %d machines, %d are there and %d more are wanted",
			z.Name, integer(out[2]), integer(out[3]), max(1, r.Nodes))
	}
	var nodes []cloud.Node
	for i := 2; i+1 < len(out); i += 2 {
		m, err := parseRecord(fmt.Sprint(out[i]), fmt.Sprint(out[i+1]))
		if err != nil {
			return nil, fmt.Errorf("create in %s: %w", z.Name, err)
		}
		nodes = append(nodes, m.node(p.deployment, z.region(), integer(out[1])))
	}
	return nodes, nil
}

// Terminate ends machines. It returns at once; a slow one is listed as stopping until it is gone.
func (p *Provider) Terminate(ctx context.Context, region string, match cloud.Match) error {
	if match.Deployment != p.deployment {
		return refuse(OpTerminate, job.Invalid, "", "the match is of deployment %q, this provider of %q", match.Deployment, p.deployment)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	zones := p.cloud.world.zonesOf(region)
	if len(zones) == 0 {
		return refuse(OpTerminate, job.Invalid, "", "there is no region %q", region)
	}
	met, err := p.cloud.tick(ctx, p.caller, OpTerminate, region, zones)
	if err != nil {
		return fmt.Errorf("terminate in %s: %w", region, err)
	}
	if err := met.before(ctx, OpTerminate); err != nil {
		return err
	}
	if !nonce.MatchString(match.Nonce) {
		return refuse(OpTerminate, job.Invalid, "", "the nonce %q is not of letters and digits", match.Nonce)
	}
	if match.Job == 0 && match.NodeID == "" { // nothing, not everything
		return met.after(OpTerminate)
	}
	home, err := p.cloud.home(ctx, p.deployment, region)
	if err != nil {
		return fmt.Errorf("terminate in %s: %w", region, err)
	}
	err = p.cloud.run(ctx, luaTerminate, p.caller, home, int64(match.Job), match.Task, match.Attempt, match.NodeID,
		met[SlowKind].Milliseconds(), met.has(HalfKind), cmp.Or(match.Nonce, noNonce)).Err()
	if err != nil {
		return fmt.Errorf("terminate in %s: %w", region, err)
	}
	return met.after(OpTerminate)
}

// Preempt takes a machine: at once without a word, or with a notice. A first notice stays as it is; a machine that has ended
// already is a success.
func (p *Provider) Preempt(ctx context.Context, region, nodeID string, notice time.Duration) error {
	home, err := p.cloud.home(ctx, p.deployment, region)
	if err != nil {
		return fmt.Errorf("preempt: %w", err)
	}
	there, err := p.cloud.run(ctx, luaPreempt, p.caller, home, nodeID, notice.Milliseconds()).Int()
	if err != nil {
		return fmt.Errorf("preempt: %w", err)
	}
	if there == 0 {
		return refuse("preempt", job.Invalid, "", "there is no machine %q in region %q", nodeID, region)
	}
	return nil
}

// AgentDir is the one directory of the agent on a machine.
func (p *Provider) AgentDir(job.Node) string { return agentDir }

// NoticeFile is the file that appears on a machine when it is about to be taken, as far as files exist there.
func (p *Provider) NoticeFile(job.Node) string { return noticeFile }

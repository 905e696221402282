package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Fault is something that goes wrong with calls, until it is healed or used up.
type Fault struct {
	Op   string `yaml:"op"`   // one of the ops below
	Kind string `yaml:"kind"` // one of the kinds below
	// Zone and Region say where; "" is everywhere. A list or terminate call, which is for a region, meets the faults of all
	// its zones.
	Zone   string        `yaml:"zone"`
	Region string        `yaml:"region"`
	P      float64       `yaml:"p"`     // probability for each call; 0 means 1
	Count  int           `yaml:"count"` // calls that it hits; 0 means no limit
	For    time.Duration `yaml:"for"`   // 0 means until it is healed
	Delay  time.Duration `yaml:"delay"` // of Late, Lag, Slow and Hang; of Half until what was made is undone
}

// The ops: calls of a provider, and those of the agent on a machine.
const (
	OpCreate    = "create"
	OpList      = "list"
	OpTerminate = "terminate"
	OpOffers    = "offers"
	OpDial      = "dial"
)

// The kinds of faults.
const (
	ThrottledKind   = "throttled"   // refused: too many calls
	UnavailableKind = "unavailable" // refused: HTTP 503
	DeniedKind      = "denied"      // refused: not allowed
	QuotaKind       = "quota"       // refused: not so many, in this region
	CapacityKind    = "capacity"    // refused: there are none, in this zone
	LostKind        = "lost"        // done, but the answer is lost
	LateKind        = "late"        // create: lists show the machines Delay later
	LagKind         = "lag"         // list: it is as of Delay before
	ShortKind       = "short"       // list: leaves out some machines; none twice within shortPause
	HalfKind        = "half"        // create: makes some of the machines, undoes them Delay later, and fails; terminate: ends some and fails
	SlowKind        = "slow"        // terminate: takes Delay, and what runs may run on
	HangKind        = "hang"        // no answer for Delay
	UnreachableKind = "unreachable" // dial: no answer
)

// kinds are what may befall each op.
var kinds = map[string][]string{
	OpCreate:    {ThrottledKind, UnavailableKind, DeniedKind, QuotaKind, CapacityKind, LostKind, LateKind, HalfKind, HangKind},
	OpList:      {ThrottledKind, UnavailableKind, DeniedKind, LagKind, ShortKind, HangKind},
	OpTerminate: {ThrottledKind, UnavailableKind, DeniedKind, LostKind, HalfKind, SlowKind, HangKind},
	OpOffers:    {ThrottledKind, UnavailableKind, DeniedKind, HangKind},
	OpDial:      {UnreachableKind, LostKind, HangKind},
}

// checkFault says what is wrong with a fault.
func (w World) checkFault(f Fault) error {
	possible, known := kinds[f.Op]
	switch {
	case !known:
		return fmt.Errorf("there is no op %q: it must be create, list, terminate, offers or dial", f.Op)
	case !slices.Contains(possible, f.Kind):
		return fmt.Errorf("%q does not befall %s: it must be one of %q", f.Kind, f.Op, possible)
	case !probability(f.P):
		return fmt.Errorf("p is %g: it must be from 0 to 1", f.P)
	case f.Count < 0 || f.For < 0 || f.Delay < 0:
		return errors.New("count, for and delay must not be negative")
	case (f.Kind == LateKind || f.Kind == LagKind) && f.Delay > w.Settle:
		return fmt.Errorf("a delay of %s is more than lists may lag, which is the world's settle of %s", f.Delay, w.Settle)
	}
	if _, ok := w.zone(f.Zone); f.Zone != "" && !ok {
		return fmt.Errorf("there is no zone %q", f.Zone)
	}
	if f.Region != "" && len(w.zonesOf(f.Region)) == 0 {
		return fmt.Errorf("there is no region %q", f.Region)
	}
	return nil
}

// faultRecord is a fault as it is kept.
type faultRecord struct {
	Op     string  `json:"op"`
	Kind   string  `json:"kind"`
	Zone   string  `json:"zone"`
	Region string  `json:"region"`
	P      float64 `json:"p"`
	Left   int     `json:"left"` // 0 means no limit
	Until  int64   `json:"until_ms"`
	Delay  int64   `json:"delay_ms"`
}

func (f Fault) record(now int64) faultRecord {
	r := faultRecord{Op: f.Op, Kind: f.Kind, Zone: f.Zone, Region: f.Region, P: f.P, Left: f.Count, Delay: f.Delay.Milliseconds()}
	if f.P == 0 {
		r.P = 1
	}
	if f.For > 0 {
		r.Until = now + f.For.Milliseconds()
	}
	return r
}

// Inject lets a fault happen from now on, and returns its name for [Cloud.Heal].
func (c *Cloud) Inject(ctx context.Context, f Fault) (id string, err error) {
	if err := c.world.checkFault(f); err != nil {
		return "", fmt.Errorf("inject a fault: %w", err)
	}
	now, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return "", fmt.Errorf("inject a fault: %w", err)
	}
	id = ulid.Make().String()
	return id, c.putFault(ctx, id, f.record(now.UnixMilli()))
}

func (c *Cloud) putFault(ctx context.Context, id string, r faultRecord) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode a fault: %w", err)
	}
	if err := c.rdb.HSet(ctx, c.key("faults"), id, text).Err(); err != nil {
		return fmt.Errorf("inject a fault: %w", err)
	}
	return nil
}

// Heal ends faults; without a name, all of them.
func (c *Cloud) Heal(ctx context.Context, ids ...string) error {
	var err error
	if len(ids) == 0 {
		err = c.rdb.Del(ctx, c.key("faults")).Err()
	} else {
		err = c.rdb.HDel(ctx, c.key("faults"), ids...).Err()
	}
	if err != nil {
		return fmt.Errorf("heal faults: %w", err)
	}
	return nil
}

// Hits tells how many calls faults have hit so far, by "op kind".
func (c *Cloud) Hits(ctx context.Context) (map[string]int, error) {
	all, err := c.rdb.HGetAll(ctx, c.key("hits")).Result()
	if err != nil {
		return nil, fmt.Errorf("count faults: %w", err)
	}
	hits := make(map[string]int, len(all))
	for what, n := range all {
		hits[what] = int(number(n))
	}
	return hits, nil
}

// plague is what befalls one call: kinds with their delays.
type plague map[string]time.Duration

func (p plague) has(kind string) bool { _, there := p[kind]; return there }

// refusals are the kinds that refuse a call before anything is done, in the order in which they win.
var refusals = []struct {
	kind  string
	class job.Class
	scope string
	text  string
}{
	{ThrottledKind, job.Throttled, "", "too many calls"},
	{UnavailableKind, job.Transient, "", "HTTP 503: service unavailable"},
	{DeniedKind, job.Denied, "", "the credentials do not allow it"},
	{QuotaKind, job.Quota, "region", "the account may not have so many machines in this region"},
	{CapacityKind, job.Capacity, "zone", "there are no such machines in this zone now"},
}

// before lets what befalls a call happen that comes before it is done.
func (p plague) before(ctx context.Context, op string) error {
	if err := p.hang(ctx); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	for _, r := range refusals {
		if p.has(r.kind) {
			return refuse(op, r.class, r.scope, "%s", r.text)
		}
	}
	return nil
}

// hang waits as long as there is no answer.
func (p plague) hang(ctx context.Context) error {
	if !p.has(HangKind) {
		return nil
	}
	timer := time.NewTimer(p[HangKind])
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// after is the error of a call that was done.
func (p plague) after(op string) error {
	switch {
	case p.has(HalfKind):
		return refuse(op, job.Transient, "", "internal error: it was done in part")
	case p.has(LostKind):
		return refuse(op, job.Transient, "", "the connection was closed before the answer came")
	default:
		return nil
	}
}

// refuse makes a classified error of one call.
func refuse(op string, class job.Class, scope, format string, args ...any) error {
	return &cloud.Error{Op: op, Class: class, Scope: scope, Err: fmt.Errorf(format, args...)}
}

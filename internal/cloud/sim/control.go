package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
)

// byHand is who does what no provider asked for, in the ledger.
const byHand = "world"

// SetCapacity sets the capacity of a zone until further notice, whatever the world says. Machines that are too many get
// the notice of the zone.
func (c *Cloud) SetCapacity(ctx context.Context, zone string, n int) error {
	z, ok := c.world.zone(zone)
	if !ok {
		return fmt.Errorf("set a capacity: there is no zone %q", zone)
	}
	if err := c.run(ctx, luaCapacity, byHand, zone, max(n, 0), z.Notice.Milliseconds(), 1).Err(); err != nil {
		return fmt.Errorf("set the capacity of %s: %w", zone, err)
	}
	return nil
}

// LoseZone takes all machines of a zone at once, spot or not, without notice, and returns how many it took. Its capacity
// stays what it is.
func (c *Cloud) LoseZone(ctx context.Context, zone string) (n int, err error) {
	if _, ok := c.world.zone(zone); !ok {
		return 0, fmt.Errorf("lose a zone: there is no zone %q", zone)
	}
	at, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("lose zone %s: %w", zone, err)
	}
	for {
		out, err := c.run(ctx, luaLose, byHand, zone, page, at.UnixMilli()).Int64Slice()
		if err != nil {
			return n, fmt.Errorf("lose zone %s: %w", zone, err)
		}
		n += int(out[0])
		if out[0] == 0 {
			return n, nil
		}
	}
}

// StepClock sets the clock of a machine forward or back.
func (c *Cloud) StepClock(ctx context.Context, machine string, by time.Duration) error {
	there, err := c.run(ctx, luaClock, byHand, machine, by.Milliseconds()).Int()
	if err != nil {
		return fmt.Errorf("step the clock of %s: %w", machine, err)
	}
	if there == 0 {
		return fmt.Errorf("step a clock: there is no machine %q", machine)
	}
	return nil
}

// Machines are all machines of all deployments, as they really are: faults of lists do not touch it.
func (c *Cloud) Machines(ctx context.Context) ([]cloud.Node, error) {
	if _, err := c.tick(ctx, byHand, "", "", nil); err != nil {
		return nil, fmt.Errorf("list the world: %w", err)
	}
	var owners, regions *redis.MapStringStringCmd
	var at *redis.TimeCmd
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		owners, regions = pipe.HGetAll(ctx, c.key("owners")), pipe.HGetAll(ctx, c.key("regions"))
		at = pipe.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the world: %w", err)
	}
	var all []cloud.Node
	for home, owner := range owners.Val() {
		keep := func(nodes []cloud.Node) error { all = append(all, nodes...); return nil }
		if err := c.list(ctx, home, owner, regions.Val()[home], at.Val().UnixMilli(), record.existsAt, keep); err != nil {
			return nil, fmt.Errorf("list the world: %w", err)
		}
	}
	return all, nil
}

// Event is an entry of the ledger: something that happened to a machine.
type Event struct {
	ID         string // of the entry
	At         int64  // Unix ms; an entry may come later than what it tells of
	Op         string
	By         string // who called
	Machine    string
	Deployment string
	Job        int64
	Task       int
	Attempt    int
	Nonce      string // of the job; "-" if it has none
	Token      string // where it is known
	Zone       string
	Detail     string
}

// Events reads the ledger after an entry, "" for its beginning, at most so many at a time.
func (c *Cloud) Events(ctx context.Context, after string, most int64) ([]Event, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	entries, err := c.rdb.XRangeN(ctx, c.key("ledger"), from, "+", most).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	events := make([]Event, 0, len(entries))
	for _, e := range entries {
		text := func(field string) string { s, _ := e.Values[field].(string); return s }
		events = append(events, Event{
			ID: e.ID, At: number(text("at")), Op: text("op"), By: text("by"), Machine: text("machine"), Deployment: text("deployment"),
			Job: number(text("job")), Task: int(number(text("task"))), Attempt: int(number(text("attempt"))), Nonce: text("nonce"), Token: text("token"),
			Zone: text("zone"), Detail: text("detail"),
		})
	}
	return events, nil
}

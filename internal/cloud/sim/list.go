package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

const (
	page       = 1000            // machines read at a time
	shortPause = 5 * time.Second // a list that is short leaves out no machine again so soon
	shortPart  = 3               // it leaves out one in so many
)

// List shows the machines of the deployment in a region as they were at one moment, when it was asked. Lines hold times,
// so it does not matter how long the reading takes or what changes meanwhile.
func (p *Provider) List(ctx context.Context, region string) ([]cloud.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", region, err)
	}
	var all []cloud.Node
	err := p.Pages(ctx, region, func(nodes []cloud.Node) error { all = append(all, nodes...); return nil })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Pages shows what List does, as it is read.
func (p *Provider) Pages(ctx context.Context, region string, page func([]cloud.Node) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("list %s: %w", region, err)
	}
	return p.seen(ctx, region, page, func(home string, at int64, shown showing, page func([]cloud.Node) error) error {
		return p.cloud.list(ctx, home, p.deployment, region, at, shown, page)
	})
}

// Find shows the machines of some jobs, as List would.
func (p *Provider) Find(ctx context.Context, region string, jobs []job.ID) ([]cloud.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find in %s: %w", region, err)
	}
	var all []cloud.Node
	keep := func(nodes []cloud.Node) error { all = append(all, nodes...); return nil }
	err := p.seen(ctx, region, keep, func(home string, at int64, shown showing, page func([]cloud.Node) error) error {
		nodes, err := p.cloud.find(ctx, home, p.deployment, region, at, jobs, shown)
		if err != nil {
			return err
		}
		return page(nodes)
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// showing tells whether a list as of a time shows a machine.
type showing func(m record, asOf int64) bool

// reading reads what a list shows of a home, page by page.
type reading func(home string, at int64, shown showing, page func([]cloud.Node) error) error

// seen passes on what a list shows as of the moment when it was asked, with the faults that befall it.
func (p *Provider) seen(ctx context.Context, region string, page func([]cloud.Node) error, read reading) error {
	zones := p.cloud.world.zonesOf(region)
	if len(zones) == 0 {
		return nil
	}
	met, err := p.cloud.tick(ctx, p.caller, OpList, region, zones)
	if err != nil {
		return fmt.Errorf("list %s: %w", region, err)
	}
	if err := met.before(ctx, OpList); err != nil {
		return err
	}
	home, err := p.cloud.home(ctx, p.deployment, region)
	if err != nil {
		return fmt.Errorf("list %s: %w", region, err)
	}
	at, err := p.cloud.rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("list %s: %w", region, err)
	}
	// A machine that shows late does so by the time of the call, also if the list lags: the two do not add up to more than
	// lists may lag.
	shown := func(m record, asOf int64) bool { return m.existsAt(asOf) && m.shown <= at.UnixMilli() }
	if met.has(ShortKind) {
		whole := page
		page = func(nodes []cloud.Node) error {
			nodes, err := p.cloud.shorten(ctx, home, nodes, at)
			if err != nil {
				return err
			}
			return whole(nodes)
		}
	}
	if err := read(home, at.Add(-met[LagKind]).UnixMilli(), shown, page); err != nil {
		return fmt.Errorf("list %s: %w", region, err)
	}
	return nil
}

// find reads the machines of some jobs as of a time.
func (c *Cloud) find(ctx context.Context, home, deployment, region string, at int64, jobs []job.ID, shown showing) ([]cloud.Node, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	fields := make([]string, len(jobs))
	for i, id := range jobs {
		fields[i] = strconv.FormatInt(int64(id), 10)
	}
	lists, err := c.rdb.HMGet(ctx, c.key("j:"+home), fields...).Result()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, list := range lists {
		text, _ := list.(string)
		ids = append(ids, strings.Fields(text)...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	lines, err := c.rdb.HMGet(ctx, c.key("m:"+home), ids...).Result()
	if err != nil {
		return nil, err
	}
	var nodes []cloud.Node
	for i, line := range lines {
		text, ok := line.(string)
		if !ok {
			continue
		}
		m, err := parseRecord(ids[i], text)
		if err != nil {
			return nil, err
		}
		if shown(m, at) {
			nodes = append(nodes, m.node(deployment, region, at))
		}
	}
	return nodes, nil
}

// list reads all machines of a home as of a time that are there by then.
func (c *Cloud) list(ctx context.Context, home, deployment, region string, at int64, there showing, show func([]cloud.Node) error) error {
	seen := map[string]bool{} // a scan may show a field twice
	words := map[string]string{}
	for cursor := uint64(0); ; {
		all, next, err := c.rdb.HScan(ctx, c.key("m:"+home), cursor, "", page).Result()
		if err != nil {
			return err
		}
		nodes := make([]cloud.Node, 0, len(all)/2)
		for i := 0; i+1 < len(all); i += 2 {
			m, err := parseRecord(all[i], all[i+1])
			if err != nil {
				return err
			}
			if !there(m, at) || seen[m.id] {
				continue
			}
			seen[m.id] = true
			m.zone, m.typ, m.how, m.nonce = once(words, m.zone), once(words, m.typ), once(words, m.how), strings.Clone(m.nonce)
			nodes = append(nodes, m.node(deployment, region, at))
		}
		if err := show(nodes); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// once keeps one copy of a text, so that the line that it was cut from need not stay in memory.
func once(all map[string]string, s string) string {
	if same, ok := all[s]; ok {
		return same
	}
	s = string([]byte(s))
	all[s] = s
	return s
}

// shorten leaves out some of the machines that no list has left out lately.
func (c *Cloud) shorten(ctx context.Context, home string, nodes []cloud.Node, at time.Time) ([]cloud.Node, error) {
	key := c.key("short:" + home)
	if err := c.rdb.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(at.UnixMilli(), 10)).Err(); err != nil {
		return nil, err
	}
	until := float64(at.Add(shortPause).UnixMilli())
	claims := make([]*redis.IntCmd, len(nodes))
	_, err := c.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, n := range nodes {
			if rand.IntN(shortPart) == 0 || len(nodes) == 1 {
				claims[i] = pipe.ZAddNX(ctx, key, redis.Z{Score: until, Member: n.ID})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := nodes[:0]
	for i, n := range nodes {
		if claims[i] == nil || claims[i].Val() == 0 {
			kept = append(kept, n)
		}
	}
	return kept, nil
}

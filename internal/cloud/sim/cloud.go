package sim

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// name is the provider's name.
const name = "sim"

//go:embed lua/*.lua
var luaFiles embed.FS

// script loads a file in lua/ with what all of them share.
func script(file string) *redis.Script {
	var all strings.Builder
	for _, f := range []string{"lib", file} {
		src, err := luaFiles.ReadFile("lua/" + f + ".lua")
		if err != nil {
			panic(err) // the files are part of the binary
		}
		all.Write(src)
	}
	return redis.NewScript(all.String())
}

var (
	luaTick      = script("tick")
	luaHit       = script("hit")
	luaHome      = script("home")
	luaCreate    = script("create")
	luaTerminate = script("terminate")
	luaPreempt   = script("preempt")
	luaCapacity  = script("capacity")
	luaLose      = script("lose")
	luaClock     = script("clock")
	luaStart     = script("start")
	luaStop      = script("stop")
)

// Cloud is a world as one process sees it. It is safe for concurrent use.
type Cloud struct {
	rdb    redis.UniversalClient
	world  World
	prefix string
	began  int64 // Unix ms

	ahead   atomic.Int64 // ms by which the clock of Redis is ahead of ours
	applied atomic.Int64 // until when capacities have been applied, Unix ms; an earlier time does no harm
	homes   sync.Map     // numbers of the regions of deployments
	looks   *looks
}

// Open opens a world, and founds it if it is new. rdb stays the caller's.
func Open(ctx context.Context, rdb redis.UniversalClient, w World) (*Cloud, error) {
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("the world of the sim provider: %w", err)
	}
	if _, several := rdb.(*redis.ClusterClient); several { // whose servers have a clock each
		return nil, errors.New("the world of the sim provider needs a Redis of one server, not a cluster: name one as sim.redis")
	}
	w.ViewEvery, w.Keep = cmp.Or(w.ViewEvery, defaultViewEvery), cmp.Or(w.Keep, defaultKeep)
	c := &Cloud{rdb: rdb, world: w, prefix: "sim:{" + w.Name + "}:"}
	c.looks = &looks{cloud: c}
	if err := c.found(ctx); err != nil {
		return nil, fmt.Errorf("open the world of the sim provider: %w", err)
	}
	return c, nil
}

// World is what there is.
func (c *Cloud) World() World { return c.world }

func (c *Cloud) key(name string) string { return c.prefix + name }

// found begins the world, unless that was done before, and sets the capacities that do not change.
func (c *Cloud) found(ctx context.Context) error {
	t, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	c.saw(t.UnixMilli())
	isNew, err := c.rdb.SetNX(ctx, c.key("began"), t.UnixMilli(), 0).Result()
	if err != nil {
		return err
	}
	if c.began, err = c.rdb.Get(ctx, c.key("began")).Int64(); err != nil {
		return err
	}
	if isNew {
		for i, f := range c.world.Faults {
			if err := c.putFault(ctx, fmt.Sprint("world-", i), f.record(c.began)); err != nil {
				return err
			}
		}
	}
	for _, z := range c.world.Zones {
		if !z.Capacity.constant() {
			n := z.Capacity.At(c.world.Seed, z.Name, time.Duration(t.UnixMilli()-c.began)*time.Millisecond)
			if err := c.rdb.HSetNX(ctx, c.key("room"), z.Name, n).Err(); err != nil { // of a zone that is new in an old world
				return err
			}
			continue
		}
		if err := c.run(ctx, luaCapacity, "", z.Name, z.Capacity.N, z.Notice.Milliseconds(), 0).Err(); err != nil {
			return err
		}
	}
	_, err = c.tick(ctx, "", "", "", nil)
	return err
}

// run runs a script for a caller.
func (c *Cloud) run(ctx context.Context, lua *redis.Script, caller string, args ...any) *redis.Cmd {
	ledger := 1
	if c.world.NoLedger {
		ledger = 0
	}
	return lua.Run(ctx, c.rdb, []string{c.prefix}, append([]any{ledger, caller, c.world.Keep.Milliseconds()}, args...)...)
}

// saw notes what the clock of Redis says now.
func (c *Cloud) saw(now int64) { c.ahead.Store(now - time.Now().UnixMilli()) }

// lookAhead is by how much changes of capacity are told before their time: the clock of Redis is known only roughly.
const lookAhead = 2 * time.Second

// tick lets time pass, and tells the faults that befall a call. zones are those that it is for.
func (c *Cloud) tick(ctx context.Context, caller, op, region string, zones []Zone) (plague, error) {
	names := " " + strings.Join(namesOf(zones), " ") + " "
	for {
		changes, err := c.changes()
		if err != nil {
			return nil, err
		}
		out, err := c.run(ctx, luaTick, caller, changes, op, region, names, rand.Int32()).Slice()
		if err != nil {
			return nil, err
		}
		c.saw(integer(out[0]))
		c.applied.Store(integer(out[1]))
		p := plague{}
		for i := 3; i < len(out); i += 2 {
			p[fmt.Sprint(out[i])] = time.Duration(integer(out[i+1])) * time.Millisecond
		}
		if integer(out[2]) == 0 || len(p) > 0 {
			return p, nil
		}
	}
}

func namesOf(zones []Zone) []string {
	names := make([]string, len(zones))
	for i, z := range zones {
		names[i] = z.Name
	}
	return names
}

// changes are those of all capacities since they were applied last, as the script wants them.
func (c *Cloud) changes() (string, error) {
	type zoneChanges struct {
		Zone    string     `json:"z"`
		Notice  int64      `json:"n"`
		Changes [][2]int64 `json:"c"`
	}
	var all []zoneChanges
	from := time.Duration(-1) // what holds at first is a change as well
	if applied := c.applied.Load(); applied > 0 {
		from = max(0, time.Duration(applied-c.began)*time.Millisecond)
	}
	to := time.Duration(time.Now().UnixMilli()+c.ahead.Load()-c.began)*time.Millisecond + lookAhead
	for _, z := range c.world.Zones {
		if z.Capacity.constant() {
			continue
		}
		changes := z.Capacity.changes(c.world.Seed, z.Name, from, to)
		if len(changes) == 0 {
			continue
		}
		zc := zoneChanges{Zone: z.Name, Notice: z.Notice.Milliseconds()}
		for _, ch := range changes {
			zc.Changes = append(zc.Changes, [2]int64{c.began + ch.At.Milliseconds(), int64(ch.N)})
		}
		all = append(all, zc)
	}
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the capacities: %w", err)
	}
	return string(text), nil
}

// home is the number of a region of a deployment.
func (c *Cloud) home(ctx context.Context, deployment, region string) (string, error) {
	key := deployment + " " + region
	if h, ok := c.homes.Load(key); ok {
		return h.(string), nil
	}
	h, err := c.run(ctx, luaHome, "", deployment, region).Text()
	if err != nil {
		return "", err
	}
	c.homes.Store(key, h)
	return h, nil
}

// integer reads a number of an answer.
func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case string:
		return number(n)
	default:
		return 0
	}
}

// number reads a number that one of our scripts wrote.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // 0 for what is damaged
	return n
}

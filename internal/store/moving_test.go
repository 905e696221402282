package store

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
	"github.com/outlast-dev/outlast/internal/job"
)

// TestG10_ASlotOnItsWayIsAPause ensures that whatever a script meets of a slot of a cluster that moves from one node to another, it
// is refused with nothing changed, or does all that it does elsewhere. It never writes half, makes a key again on the one
// node that lies on the other, nor takes for gone what is there (G1). The schedule: a job is made; its slot is opened and some of
// its keys are moved, each alone, all but each, none or all; the script is called; the other keys are moved, the slot is closed;
// the script is called again, if it was refused. The store must be as after the same calls without a move.
func TestG10_ASlotOnItsWayIsAPause(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	client := cluster.Client(t)
	ops := movingOps()
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		op := ops[name]
		quiet := newMoving(t, cluster, client)
		act := op(quiet)
		keys := slices.Sorted(maps.Keys(quiet.dumpShard()))
		quiet.must(t, act())
		want := quiet.comparable()
		subsets := [][]string{nil, keys}
		for i, k := range keys {
			subsets = append(subsets, []string{k}, slices.Concat(keys[:i], keys[i+1:]))
		}
		refused := 0
		for _, moved := range subsets {
			b := newMoving(t, cluster, client)
			act := op(b)
			from, to := b.open()
			b.move(from, to, moved)
			before := b.dumpShard()
			err := act()
			if err != nil {
				refused++
				if trouble, _ := TroubleOf(err); trouble.Code != "redis_cluster_down" && trouble.Code != "redis_cluster" { // sent on too often
					t.Errorf("%s was refused with %v", name, err)
				}
				if diff := cmp.Diff(before, b.dumpShard()); diff != "" {
					t.Errorf("%s was refused (%v) with %v moved, and changed the store (-before +after):\n%s", name, err, moved, diff)
				}
			}
			b.finish(from, to)
			if err != nil {
				b.must(t, act())
			}
			if diff := cmp.Diff(want, b.comparable()); diff != "" {
				t.Errorf("%s with %v moved (%v) leaves another store (-want +got):\n%s", name, moved, err, diff)
			}
		}
		t.Logf("%s: refused in %d of %d moves", name, refused, len(subsets))
	}
}

// movingOps are the calls whose scripts find out keys by themselves. Each prepares a store and returns the call.
func movingOps() map[string]func(b *moving) func() error {
	submit := func(b *moving) func() error {
		return func() error {
			_, err := b.Submit(b.ctx, Submission{Request: told(), Key: "k", Sealed: []byte("sealed")})
			return err
		}
	}
	return map[string]func(b *moving) func() error{
		"submit": submit,
		"claim": func(b *moving) func() error {
			b.running()
			return func() error {
				_, err := b.Claim(b.ctx, 0, 200, lease, lease, grace)
				return err
			}
		},
		"commit": func(b *moving) func() error {
			c := b.claimed(b.running())
			return func() error { return b.commitOne(c, b.endedRecord(c, job.Succeeded)) }
		},
		"resume": func(b *moving) func() error {
			c := b.claimed(b.running())
			b.must(b.t, b.commitOne(c, b.endedRecord(c, job.Failed)))
			return func() error {
				_, err := b.Resume(b.ctx, c.ID, "ada")
				return err
			}
		},
		"cancel": func(b *moving) func() error {
			b.running()
			return func() error {
				ids, _, err := b.CancelWhere(b.ctx, nil, "ada", 0)
				if err == nil && len(ids) != 1 {
					b.t.Errorf("a cancel of all hit %v", ids)
				}
				return err
			}
		},
		"find": func(b *moving) func() error {
			b.running()
			return func() error {
				ids, _, err := b.search(b.ctx, Query{User: "ada", Name: "resnet"})
				if err == nil && len(ids) != 1 {
					b.t.Errorf("a search found %v", ids)
				}
				return err
			}
		},
		"retire": func(b *moving) func() error {
			c := b.claimed(b.running())
			b.must(b.t, b.commitOne(c, b.endedRecord(c, job.Failed)))
			b.must(b.t, b.rdb.Del(b.ctx, b.keys.hooks(0)).Err()) // all is told
			all := must[Retired](b.t)(b.LoadAll(b.ctx, c.ID))
			return func() error {
				gone, err := b.Retire(b.ctx, &all)
				if err == nil && !gone {
					b.t.Error("the job stays")
				}
				return err
			}
		},
	}
}

// told is a request with somebody to tell.
func told() job.Request {
	r := typical(1)
	r.Webhooks = []job.Webhook{{URL: "http://localhost"}}
	return r
}

// moving is a store whose only shard can be moved from one node of a cluster to another.
type moving struct {
	*bench
	t       *testing.T
	cluster *redistest.Cluster
	slot    int
}

func newMoving(t *testing.T, cluster *redistest.Cluster, client *redis.ClusterClient) *moving {
	t.Helper()
	for _, node := range cluster.Nodes {
		if err := node.Client(t).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b := &moving{bench: benchOn(t, client, 1), t: t, cluster: cluster, slot: cluster.Slot("ol:{s00}:due")}
	must[map[string]int64](t)(b.ChainReclaim(b.ctx, []string{WatchChain(0)}, grace))
	return b
}

func (b *moving) running() job.ID {
	id := must[[]job.ID](b.t)(b.Submit(b.ctx, Submission{Request: told(), Sealed: []byte("sealed")}))[0]
	c := must[Claimed](b.t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
	b.commit(b.t, &c, running(c.Record), false)
	return id
}

func (b *moving) claimed(id job.ID) *Claimed {
	due := must[Due](b.t)(b.ClaimThese(b.ctx, 0, lease, grace, id))
	if len(due.Jobs) != 1 {
		b.t.Fatalf("claimed %+v", due)
	}
	return &due.Jobs[0]
}

func (b *moving) endedRecord(c *Claimed, as job.Status) job.Record {
	next := c.Clone()
	next.Step, next.Tasks[0].Status, next.LogRetention = job.StepDone, as, time.Hour
	next.Events = []job.Event{{Kind: "status", From: string(job.Running), To: string(as)}}
	next.Past = []job.Attempt{{Number: 1}}
	return next
}

func (b *moving) commitOne(c *Claimed, next job.Record) error {
	errs, err := b.Commit(b.ctx, 0, Commit{From: c, Next: next})
	if err != nil {
		return err
	}
	return errs[0]
}

// open begins to move the shard's slot.
func (b *moving) open() (from, to *redistest.Server) {
	from, to = b.cluster.Owner(b.slot), b.cluster.Nodes[0]
	if to == from {
		to = b.cluster.Nodes[1]
	}
	b.cluster.Open(b.slot, to)
	return from, to
}

func (b *moving) move(from, to *redistest.Server, keys []string) {
	b.t.Helper()
	if len(keys) == 0 {
		return
	}
	host, port, _ := strings.Cut(to.Address(), ":")
	args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
	for _, k := range keys {
		args = append(args, k)
	}
	if err := from.Client(b.t).Do(b.ctx, args...).Err(); err != nil {
		b.t.Fatal(err)
	}
}

// finish moves what is left, and the slot. A key that is on both nodes fails the test.
func (b *moving) finish(from, to *redistest.Server) {
	b.t.Helper()
	b.move(from, to, must[[]string](b.t)(from.Client(b.t).ClusterGetKeysInSlot(b.ctx, b.slot, 1000).Result()))
	b.cluster.Close(b.slot, to)
}

// dumpShard is all that the shard's slot holds, on whichever node, as Redis dumps it.
func (b *moving) dumpShard() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for _, node := range b.cluster.Nodes {
		rdb := node.Client(b.t)
		for _, key := range must[[]string](b.t)(rdb.ClusterGetKeysInSlot(b.ctx, b.slot, 1000).Result()) {
			if _, twice := out[key]; twice {
				b.t.Errorf("%s is on two nodes", key)
			}
			cmd := redis.NewStringCmd(b.ctx, "dump", key)
			pipe := rdb.Pipeline()
			_ = pipe.Do(b.ctx, "asking")
			_ = pipe.Process(b.ctx, cmd)
			_, _ = pipe.Exec(b.ctx)
			out[key] = must[string](b.t)(cmd.Result())
		}
	}
	return out
}

var changing = regexp.MustCompile(`\d{13}|"nonce":"[0-9a-f]+"|"token":"ol-[0-9a-f]+"`)

// comparable is what the shard holds, without times and what is random.
func (b *moving) comparable() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for _, node := range b.cluster.Nodes {
		rdb := node.Client(b.t)
		for _, key := range must[[]string](b.t)(rdb.ClusterGetKeysInSlot(b.ctx, b.slot, 1000).Result()) {
			var text string
			switch must[string](b.t)(rdb.Type(b.ctx, key).Result()) {
			case "hash":
				all := must[map[string]string](b.t)(rdb.HGetAll(b.ctx, key).Result())
				delete(all, "fence")
				delete(all, "resumed")
				delete(all, "wakes") // a call that is repeated may wake again
				text = fmt.Sprint(all)
			case "zset":
				text = fmt.Sprint(must[[]string](b.t)(rdb.ZRange(b.ctx, key, 0, -1).Result()))
			case "list":
				text = fmt.Sprint(must[[]string](b.t)(rdb.LRange(b.ctx, key, 0, -1).Result()))
			case "set":
				text = fmt.Sprint(must[[]string](b.t)(rdb.SMembers(b.ctx, key).Result()))
			default:
				if strings.Contains(key, ":ix:") {
					text = must[string](b.t)(rdb.GetRange(b.ctx, key, 0, 3*findBlock-1).Result())
				}
			}
			out[key] = changing.ReplaceAllString(text, "*")
		}
	}
	return out
}

// TestScriptsLookForTheKeysThatTheyFindOut ensures that each script that uses keys which are not among KEYS looks first whether
// they are here.
func TestScriptsLookForTheKeysThatTheyFindOut(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`redis\.p?call\('[A-Z]+', ([^,)]+)`)
	looks := 0
	for _, l := range loadScripts().all() {
		found := strings.Contains(l.source, "\nhere(keys)\n")
		for _, m := range call.FindAllStringSubmatch(l.source, -1) {
			if !found && !strings.HasPrefix(m[1], "KEYS[") && m[1] != "made" { // which is KEYS[2] of submit
				t.Errorf("%s uses a key that it has not looked for, in:\n%s", m[0], l.source)
			}
		}
		if found {
			looks++
		}
	}
	if looks < 7 {
		t.Errorf("only %d scripts look for keys", looks)
	}
}

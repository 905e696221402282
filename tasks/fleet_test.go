package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// paged lists the machines of a region page by page, and fails in the end if there is an error.
type paged struct {
	*rented
	pages [][]cloud.Node
	err   error
}

func (p *paged) Pages(_ context.Context, _ string, page func([]cloud.Node) error) error {
	for _, nodes := range p.pages {
		if err := page(nodes); err != nil {
			return err
		}
	}
	return p.err
}

// stored are the names of the machines of a stored view.
func (b *bench) stored(provider, region string) map[string]bool {
	b.Helper()
	v, err := b.store.View(b.Context(), provider, region)
	if err != nil {
		b.Fatal(err)
	}
	blocks, err := b.store.ViewBlocks(b.Context(), provider, region)
	if err != nil {
		b.Fatal(err)
	}
	var all [][]byte
	for _, block := range blocks {
		all = append(all, block)
	}
	nodes, err := cloud.Listed(v.Machines, all...)
	if err != nil {
		b.Fatal(err)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		names[n.ID] = true
	}
	return names
}

// TestG6_ViewsWakeWhoLostMachines ensures that the job of a machine that is in one list and not in the next is woken at once,
// whichever version of a worker has kept the list before, and that of a list which fails half way nothing counts.
func TestG6_ViewsWakeWhoLostMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &paged{rented: &rented{name: "far", terminate: func(cloud.Match) error { return nil }}}
	w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far.rented, nil)}; c.Sites["far"].Provider = far })
	id := b.submit(1)[0]
	d := b.begun(w, id, job.PhaseStarted)
	next := d.job.Clone()
	next.Step, next.Due = job.StepWatch, d.now().Add(time.Hour)
	if err := d.commit(t.Context(), next, false); err != nil {
		t.Fatal(err)
	}
	node := func(id string, job job.ID) cloud.Node {
		return cloud.Node{
			Identity: cloud.Identity{Deployment: "test", Job: job, Nonce: d.job.Nonce, Attempt: 1},
			ID:       id, Provider: "far", Region: "r", State: cloud.Running, CreatedAt: time.Now().UTC(),
		}
	}
	ours, other, third := node("ours", id), node("other", 1000), node("third", 2000)
	list := func(pages ...[]cloud.Node) error {
		far.pages = pages
		return w.view(t.Context(), w.sites["far"], "r")
	}
	due := func() job.Time {
		t.Helper()
		rec, err := b.store.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return rec.Due
	}
	quiet := due()
	older := func(nodes ...cloud.Node) { // keeps a view as a worker of an older version does
		t.Helper()
		v, err := b.store.View(t.Context(), "far", "r")
		if err != nil {
			t.Fatal(err)
		}
		if v.Machines, err = json.Marshal(nodes); err != nil {
			t.Fatal(err)
		}
		if err := b.store.PutView(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, err error, woken bool, want ...string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		names := map[string]bool{}
		for _, name := range want {
			names[name] = true
		}
		if diff := cmp.Diff(names, b.stored("far", "r")); diff != "" {
			t.Errorf("%s: stored (-want +got):\n%s", what, diff)
		}
		if got := due() < quiet; got != woken {
			t.Errorf("%s: the job is woken: %t", what, got)
		}
		if woken { // and it is calm again
			if err := b.store.Redis().ZAdd(t.Context(), fmt.Sprintf("ol:{s%02d}:due", b.store.ShardOf(id)), redis.Z{Score: float64(quiet), Member: int64(id)}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("first list", list([]cloud.Node{ours}, []cloud.Node{other}), false, "ours", "other")
	check("the same in another order", list([]cloud.Node{other, ours}), false, "ours", "other")
	far.err = errors.New("half way")
	if err := list([]cloud.Node{third}); err == nil {
		t.Error("a list that failed is no error")
	}
	far.err = nil
	check("a list that fails half way", nil, false, "ours", "other")
	if v, err := b.store.View(t.Context(), "far", "r"); err != nil || v.Error == "" {
		t.Errorf("the view does not tell of the failure: %+v, %v", v, err)
	}
	check("one more", list([]cloud.Node{ours, other}, []cloud.Node{third}), false, "ours", "other", "third")
	check("lost", list([]cloud.Node{other, third}), true, "other", "third")
	check("back", list([]cloud.Node{other, ours, third}), false, "ours", "other", "third")
	older(ours, other)
	check("an older version has listed", nil, false, "ours", "other")
	check("lost since", list([]cloud.Node{other}), true, "other")
	check("back again", list([]cloud.Node{other, ours}), false, "ours", "other")
	older(other)
	check("an older version sees the loss", list([]cloud.Node{other}), true, "other")
	older()
	check("an older version sees none", nil, false)
	check("nor do we", list(), false)
}

// sent counts round trips.
type sent struct{ n atomic.Int64 }

func (*sent) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

// received is how many bytes Redis has got from its clients.
func (b *bench) received() int {
	b.Helper()
	text, err := b.store.Redis().Info(b.Context(), "stats").Result()
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.Atoi(regexp.MustCompile(`total_net_input_bytes:(\d+)`).FindStringSubmatch(text)[1])
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// TestCostOfViews pins what it costs to keep the view of a region, in round trips and in bytes that are sent to Redis: as much
// with many machines as with few, if nothing or one machine has changed.
func TestCostOfViews(t *testing.T) {
	t.Parallel()
	for _, machines := range []int{1000, 20_000} {
		t.Run(strconv.Itoa(machines), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			far := &paged{rented: &rented{name: "far"}, pages: [][]cloud.Node{make([]cloud.Node, machines)}}
			w := b.worker(func(c *Config) { c.Sites = Sites{"far": site(far.rented, nil)}; c.Sites["far"].Provider = far })
			for i := range machines {
				far.pages[0][i] = cloud.Node{ // ended, so that no job is asked for
					Identity: cloud.Identity{Deployment: "test", Job: job.ID(i + 1), Nonce: "0123456789abcdef", Attempt: 1},
					ID:       fmt.Sprintf("i-%016d", i), Provider: "far", Region: "r", State: cloud.Terminated,
					Address: "10.11.12.13:22", CreatedAt: time.Unix(int64(1_700_000_000+i), 0).UTC(),
				}
			}
			trips := &sent{}
			b.store.Redis().AddHook(trips)
			view := func(what string, mostTrips int64, mostBytes int) {
				t.Helper()
				bytes, before := b.received(), trips.n.Load()
				if err := w.view(t.Context(), w.sites["far"], "r"); err != nil {
					t.Fatal(err)
				}
				n, took := trips.n.Load()-before, b.received()-bytes
				t.Logf("%s: %d round trips, %d bytes", what, n, took)
				if n > mostTrips || took > mostBytes {
					t.Errorf("%s: %d round trips and %d bytes, which may be %d and %d", what, n, took, mostTrips, mostBytes)
				}
			}
			view("the first view", 5+int64(machines/4096)+1, 100*machines)
			view("a view in which nothing has changed", 4, 1000)
			far.pages[0][machines/2].Reason = "changed"
			view("a view in which one machine has changed", 5, 10_000)
			if got := len(b.stored("far", "r")); got != machines {
				t.Errorf("%d machines are stored", got)
			}
		})
	}
}

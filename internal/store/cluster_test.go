package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestCluster ensures that the whole life of jobs runs on a Redis Cluster of three nodes: no script touches two slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	b := benchOn(t, startCluster(t), 64)
	ids := must[[]job.ID](t)(b.Submit(b.ctx, Submission{Request: typical(1), Count: 200, Key: "k", Sealed: []byte("s")}))
	caps := Caps{Launches: 150, Live: 180}
	if got := must[[]job.ID](t)(b.Join(b.ctx, caps, 0, ids)); len(got) != 150 {
		t.Errorf("%d jobs got a launch slot", len(got))
	}
	chains := []string{"fleet:gc"}
	for shard := range b.Shards() {
		chains = append(chains, WatchChain(shard))
	}
	if got := must[map[string]int64](t)(b.ChainReclaim(b.ctx, chains, grace)); len(got) != len(chains) {
		t.Errorf("%d chains began", len(got))
	}
	for _, id := range ids {
		c := must[Claimed](t)(b.Begin(b.ctx, id, job.StepLaunch, 1, "token", lease))
		must[bool](t)(b.Beat(b.ctx, id, c.Fence, lease))
		b.commit(t, &c, running(c.Record), true)
		b.commit(t, &c, c.Clone(), false)
		if w := must[Woken](t)(b.Wake(b.ctx, id)); w.Epoch != 1 || !w.Live {
			t.Fatalf("wake told %+v", w)
		}
		must[[]job.ID](t)(b.Release(b.ctx, caps, id, false))
	}
	if n, woken, err := b.CancelWhere(b.ctx, nil, "ada", -1); err != nil || len(n) != 200 || len(woken) != 64 {
		t.Errorf("cancelled %d in %d shards: %v", len(n), len(woken), err)
	}
	taken := 0
	for shard := range b.Shards() {
		tick := must[Tick](t)(b.ChainBegin(b.ctx, WatchChain(shard), 1, grace))
		due := must[Due](t)(b.Claim(b.ctx, shard, 200, 0, lease, grace))
		taken += len(due.Jobs)
		for i := range due.Jobs {
			next := due.Jobs[i].Clone()
			next.Step, next.Tasks[0].Status = job.StepDone, job.Cancelled
			b.commit(t, &due.Jobs[i], next, false)
		}
		must[time.Duration](t)(b.ChainEnd(b.ctx, tick, time.Second, grace))
	}
	if taken != len(ids) {
		t.Errorf("%d jobs were due", taken)
	}
	b.sound(t, ids)
	if page := must[Page](t)(b.Find(b.ctx, Query{User: "ada", Name: "RESNET", Limit: 150})); len(page.Jobs) != 150 || page.Next != ids[50] {
		t.Errorf("listed %d, next is %d", len(page.Jobs), page.Next)
	}
	if got := must[[]job.ID](t)(b.Forgotten(b.ctx)); len(got) != 180 {
		t.Errorf("%d jobs ended and still count as live", len(got))
	}
	b.must(t, b.PutView(b.ctx, View{Provider: "aws", Region: "eu-central-1", At: 1}))
	b.must(t, b.TailAppend(b.ctx, ids[0], 0, 1, 0, []byte("hello")))
	if p := must[Piece](t)(b.TailRead(b.ctx, ids[0], 0, 1, 0, 10)); string(p.Data) != "hello" {
		t.Errorf("the tail is %q", p.Data)
	}
	must[int64](t)(b.ChainWake(b.ctx, "fleet:gc"))
	if _, err := b.Beat(b.ctx, ids[0], 1, lease); !errors.Is(err, ErrStale) {
		t.Errorf("a beat after the end gave %v", err)
	}
}

// startCluster runs three nodes that share the slots and returns a client of them.
func startCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("this test needs redis-server")
	}
	addrs, buses := make([]string, 3), make([]int, 3)
	for i := range addrs {
		addrs[i], buses[i] = startNode(t, binary)
	}
	for i, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
		t.Cleanup(func() { _ = c.Close() })
		eventually(t, "node answers", func() bool { return c.Ping(t.Context()).Err() == nil })
		if err := c.ClusterAddSlotsRange(t.Context(), i*16384/3, (i+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		for j, other := range addrs[:i] {
			host, port, _ := net.SplitHostPort(other)
			if err := c.Do(t.Context(), "CLUSTER", "MEET", host, port, buses[j]).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	eventually(t, "every node knows all slots", func() bool {
		return c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:3")) {
				err = errors.New("not yet")
			}
			c.ReloadState(ctx)
			return err
		}) == nil && c.Ping(t.Context()).Err() == nil
	})
	return c
}

// startNode runs one node and returns its address and the port on which nodes talk to each other.
func startNode(t *testing.T, binary string) (addr string, bus int) {
	t.Helper()
	port, bus := freePort(t), freePort(t)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port", fmt.Sprint(bus))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	return fmt.Sprintf("127.0.0.1:%d", port), bus
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually waits until ok, which is asked every few milliseconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			t.Fatalf("it is not so that %s", what)
		case <-tick.C:
		}
	}
}

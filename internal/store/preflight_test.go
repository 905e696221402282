package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// TestJudge ensures what is thought of a Redis that may forget: the settings under which jobs would be lost are refused,
// others that are worth a word are told, and silence is held against nobody.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		info   map[string]string
		slip   time.Duration
		refuse bool
		warns  []string
	}{
		{"as it should be", map[string]string{"maxmemory": "100", "maxmemory_policy": "noeviction", "aof_enabled": "1", "redis_version": "7.0.15"}, 0, false, nil},
		{"it tells nothing", nil, time.Second, false, nil},
		{"evicts", map[string]string{"maxmemory": "100", "maxmemory_policy": "allkeys-lru"}, 0, true, nil},
		{"would evict if it had a limit", map[string]string{"maxmemory": "0", "maxmemory_policy": "allkeys-lru"}, 0, true, nil},
		{"evicts what has a time to live", map[string]string{"maxmemory": "100", "maxmemory_policy": "volatile-ttl"}, 0, true, nil},
		{"evicts in a way to come", map[string]string{"maxmemory_policy": "allkeys-new"}, 0, true, nil},
		{"forgets at its end", map[string]string{"aof_enabled": "0"}, 0, false, []string{"append-only"}},
		{"too old", map[string]string{"redis_version": "6.2.1"}, 0, false, []string{"6.2.1"}},
		{"ahead", nil, time.Hour, false, []string{"1h0m0s ahead of"}},
		{"behind", map[string]string{"aof_enabled": "0"}, -3 * time.Second, false, []string{"append-only", "3s behind"}},
	} {
		warnings, err := judge(tt.info, tt.slip)
		var evicts *EvictsError
		if errors.As(err, &evicts) != tt.refuse {
			t.Errorf("%s: %v, want it refused: %v", tt.name, err, tt.refuse)
		}
		if len(warnings) != len(tt.warns) {
			t.Errorf("%s: warnings %q, want %q", tt.name, warnings, tt.warns)
			continue
		}
		for i, w := range tt.warns {
			if !strings.Contains(warnings[i], w) {
				t.Errorf("%s: %q does not speak of %q", tt.name, warnings[i], w)
			}
		}
	}
}

// TestPreflight ensures that a real server tells what is judged, that one which is asked with a clock of its own hour is
// found out, and that miniredis, which tells nothing, is no trouble.
func TestPreflight(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		if warnings, err := Preflight(b.ctx, b.rdb, time.Now); err != nil || len(warnings) != 0 {
			t.Errorf("a server as it should be: %q, %v", warnings, err)
		}
		late := func() time.Time { return time.Now().Add(-time.Hour) }
		if warnings, err := Preflight(b.ctx, b.rdb, late); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "ahead of") {
			t.Errorf("an hour behind: %q, %v", warnings, err)
		}
	})
}

// TestPreflightRefusesEveryPolicyButOne ensures that a server which may throw away keys is refused, whatever its policy and
// whether it has a limit or not, with a reason that fits.
func TestPreflightRefusesEveryPolicyButOne(t *testing.T) {
	b := newBench(t, 2)
	for policy, reason := range map[string]string{
		"allkeys-lru": "jobs", "allkeys-lfu": "jobs", "allkeys-random": "jobs",
		"volatile-lru": "two drivers", "volatile-lfu": "two drivers", "volatile-random": "two drivers", "volatile-ttl": "two drivers",
	} {
		for _, limit := range []string{"0", "100mb"} {
			b.must(t, b.rdb.ConfigSet(b.ctx, "maxmemory-policy", policy).Err())
			b.must(t, b.rdb.ConfigSet(b.ctx, "maxmemory", limit).Err())
			var evicts *EvictsError
			if _, err := Preflight(b.ctx, b.rdb, time.Now); !errors.As(err, &evicts) || !strings.Contains(err.Error(), policy) ||
				!strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "no limit now") != (limit == "0") {
				t.Errorf("%s with the limit %s: %v", policy, limit, err)
			}
		}
	}
	b.must(t, b.rdb.ConfigSet(b.ctx, "maxmemory-policy", "noeviction").Err())
	if warnings, err := Preflight(b.ctx, b.rdb, time.Now); err != nil || len(warnings) > 0 {
		t.Errorf("noeviction: %q, %v", warnings, err)
	}
}

// TestPreflightAsksEveryMaster ensures that one master of a cluster which may throw away keys is found out.
func TestPreflightAsksEveryMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	rdb := c.Client(t)
	if _, err := Preflight(t.Context(), rdb, time.Now); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[2].Client(t).ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	var evicts *EvictsError
	if _, err := Preflight(t.Context(), rdb, time.Now); !errors.As(err, &evicts) {
		t.Errorf("a master that evicts: %v", err)
	}
}

// TestScriptsRunWhatIsProbed ensures that the probe of rights knows every command of every script, and that a user who
// lacks one, whichever it is, is told so by name before it begins, and by the script that needs it.
func TestScriptsRunWhatIsProbed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	admin := srv.Client(t)
	commands := map[string]bool{}
	for _, list := range scriptCommands {
		for _, c := range list {
			commands[c] = true
		}
	}
	if len(commands) < 40 {
		t.Fatalf("only %d commands", len(commands))
	}
	user := func(rights ...string) redis.UniversalClient {
		if err := admin.ACLSetUser(t.Context(), "poor", append([]string{"reset", "on", ">word", "~*", "&*", "+@all"}, rights...)...).Err(); err != nil {
			t.Fatal(err)
		}
		o := srv.Options()
		o.Username, o.Password = "poor", "word"
		c := redis.NewClient(o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for c := range commands {
		if err := mayRun(t.Context(), user("-"+c)); !strings.Contains(adviceOf(err), "lacks +"+c+":") {
			t.Errorf("without %s: %v, %s", c, err, adviceOf(err))
		}
	}
	if err := mayRun(t.Context(), user()); err != nil {
		t.Errorf("with all: %v", err)
	}
	rdb := user("-hsetnx")
	if _, err := Found(t.Context(), rdb, Deployment{Shards: 1}); err == nil || !strings.Contains(adviceOf(err), "+hsetnx:") {
		t.Errorf("a script that lacks a command: %v, %s", err, adviceOf(err))
	}
	rdb = user("-hset")
	if err := rdb.HSet(t.Context(), "ol:x", "a", "b").Err(); !strings.Contains(adviceOf(err), "+hset:") {
		t.Errorf("a command: %v, %s", err, adviceOf(err))
	}
	rdb = user("resetkeys", "~other:*")
	if err := rdb.Get(t.Context(), "ol:x").Err(); !strings.Contains(adviceOf(err), KeyRights) {
		t.Errorf("a key: %v, %s", err, adviceOf(err))
	}
	if err := mayRun(t.Context(), rdb); !strings.Contains(adviceOf(err), KeyRights) {
		t.Errorf("keys: %v, %s", err, adviceOf(err))
	}
	rdb = user("resetchannels")
	if err := rdb.Publish(t.Context(), "asynq:cancel", "").Err(); !strings.Contains(adviceOf(err), ChannelRights) {
		t.Errorf("a channel: %v, %s", err, adviceOf(err))
	}
}

func adviceOf(err error) string {
	trouble, _ := TroubleOf(err)
	return trouble.Advice
}

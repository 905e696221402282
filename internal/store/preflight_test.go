package store

import (
	"errors"
	"strings"
	"testing"
	"time"
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
		{"would evict if it had a limit", map[string]string{"maxmemory": "0", "maxmemory_policy": "allkeys-lru"}, 0, false, []string{"noeviction"}},
		{"evicts what has a time to live", map[string]string{"maxmemory": "100", "maxmemory_policy": "volatile-ttl"}, 0, false, []string{"volatile-ttl"}},
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
	b := newBench(t, 2)
	b.must(t, b.rdb.ConfigSet(b.ctx, "maxmemory-policy", "allkeys-random").Err())
	b.must(t, b.rdb.ConfigSet(b.ctx, "maxmemory", "100mb").Err())
	var evicts *EvictsError
	if _, err := Preflight(b.ctx, b.rdb, time.Now); !errors.As(err, &evicts) {
		t.Errorf("a server that evicts: %v", err)
	}
}

package store

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	oldestRedis = 7               // version that has all which is used here
	clockSlip   = 2 * time.Second // difference of clocks that is worth a word: a tick is a second
)

// EvictsError says that Redis may throw away keys to make room, which would lose jobs (G1), or what keeps two drivers from
// one job (G2).
type EvictsError struct {
	Policy  string
	Limited bool // it has a limit already, at which it begins to
}

func (e *EvictsError) Error() string {
	what := "any key when it is full, and jobs with it"
	if strings.HasPrefix(e.Policy, "volatile-") {
		what = "keys that have a time to live when it is full, such as the locks that keep a job from two drivers"
	}
	when := ""
	if !e.Limited {
		when = "; that it has no limit now can change while it runs"
	}
	return fmt.Sprintf("this Redis may throw away %s (maxmemory-policy %s%s): set maxmemory-policy noeviction", what, e.Policy, when)
}

// Preflight looks whether Redis is set so that it keeps what it is told, every master of it, and whether its user may run what
// scripts do. The error is what no worker should begin with, the
// warnings are for people. What Redis does not tell, or this user may not ask, is not held against it. now is the
// caller's clock.
func Preflight(ctx context.Context, rdb redis.UniversalClient, now func() time.Time) ([]string, error) {
	var mu sync.Mutex
	var all []string
	look := func(ctx context.Context, c redis.Cmdable) error {
		warnings, err := judge(infoOf(ctx, c), slip(ctx, c, now))
		mu.Lock() // the masters of a cluster are asked at once
		defer mu.Unlock()
		all = append(all, warnings...)
		return err
	}
	if err := mayRun(ctx, rdb); err != nil {
		return nil, err
	}
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return look(ctx, c) })
		return all, err
	}
	err := look(ctx, rdb)
	return all, err
}

// infoOf are the fields that a server tells about itself; those that it does not tell are "".
func infoOf(ctx context.Context, c redis.Cmdable) map[string]string {
	fields := map[string]string{}
	for _, section := range []string{"server", "memory", "persistence"} {
		text, err := c.Info(ctx, section).Result()
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		for lines.Scan() {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
				fields[name] = value
			}
		}
	}
	return fields
}

// slip is how far the server's clock is ahead of ours, at least: what the answer took is not counted. 0 if it does not
// tell.
func slip(ctx context.Context, c redis.Cmdable, now func() time.Time) time.Duration {
	before := now()
	there, err := c.Time(ctx).Result()
	after := now()
	switch {
	case err != nil:
		return 0
	case there.After(after):
		return there.Sub(after)
	case there.Before(before):
		return there.Sub(before)
	default:
		return 0
	}
}

// judge is what is to be thought of a server that tells these fields.
func judge(info map[string]string, slip time.Duration) (warnings []string, err error) {
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return nil, &EvictsError{Policy: policy, Limited: info["maxmemory"] != "" && info["maxmemory"] != "0"}
	}
	if info["aof_enabled"] == "0" {
		warnings = append(warnings, "this Redis has no append-only file: jobs since its last snapshot are lost when it ends: set appendonly yes")
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldestRedis {
		warnings = append(warnings, fmt.Sprintf("this Redis has version %s: outlast needs %d or later", info["redis_version"], oldestRedis))
	}
	if slip.Abs() > clockSlip {
		warnings = append(warnings, fmt.Sprintf("the clock of Redis is %s %s this computer's: looks come that much early or late: set both by NTP", slip.Abs().Round(100*time.Millisecond), direction(slip)))
	}
	return warnings, nil
}

func direction(slip time.Duration) string {
	if slip > 0 {
		return "ahead of"
	}
	return "behind"
}

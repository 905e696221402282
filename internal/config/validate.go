package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// maxShards bounds the shards: each has a chain of ticks of its own, once a second.
const maxShards = 100 // their keys have two digits

// zoneName is what the local provider takes: it becomes part of a directory's name.
var zoneName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// validate reports every setting that cannot work.
func (c Config) validate() error {
	var mistakes []error
	for _, rule := range []struct {
		key  string
		ok   bool
		want string
	}{
		{"archive", validArchive(c.Archive), "must be a URL such as file:///path or s3://bucket"},
		{"http", validAddress(c.HTTP), `must be an address such as "127.0.0.1:8080"`},
		{"log_format", slices.Contains([]string{LogAuto, LogConsole, LogJSON}, c.LogFormat), "must be auto, console or json"},
		{"log_level", slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel), "must be debug, info, warn or error"},
		{"secrets", slices.Contains([]string{SecretsAuto, SecretsRequired, SecretsOff}, c.Secrets), "must be auto, required or off"},
		{"identity_key", c.IdentityKey == "" || c.Origin("identity") == "default", "identity is set as well: only one of them can hold the key"},
		{"providers", validNames(c.Providers), "must name at least one, and each once"},
		{"sim.world", c.Sim.World != "" || !slices.Contains(c.Providers, "sim"), "must name the file that describes the world of the provider sim"},
		{"concurrency.watch", c.Concurrency.Watch >= 1, "must be at least 1"},
		{"concurrency.acts", c.Concurrency.Acts >= 1, "must be at least 1"},
		{"shards", c.Shards >= 1 && c.Shards <= maxShards, fmt.Sprintf("must be 1 to %d", maxShards)},
		{"launches", c.Launches >= 1, "must be at least 1"},
		{"live", c.Live >= 0, "must not be negative"},
		{"intervals.quick", c.Intervals.Quick >= time.Second, "must be at least 1s"}, // the grid of the ticks
		{"intervals.quiet", c.Intervals.Quiet >= c.Intervals.Quick, "must not be shorter than intervals.quick"},
		{"lease", c.Lease >= 2*time.Second, "must be at least 2s"}, // several renewals, and a margin, must fit in
		{"claim", c.Claim >= 2*time.Second, "must be at least 2s"},
		{"durable", c.Durable >= 0 && c.Durable <= time.Minute, "must be 0s to 1m"},
		{"failure_grace", c.FailureGrace >= 0, "must not be negative"},
		{"unreachable.probes", c.Unreachable.Probes >= 1, "must be at least 1"},
		{"unreachable.elapsed", c.Unreachable.Elapsed >= 0, "must not be negative"},
		{"boot_timeout", c.BootTimeout > 0, "must be longer than nothing"},
		{"log_limit", c.LogLimit >= MiB && c.LogLimit <= 64*GiB, "must be 1MiB to 64GiB"},
		{"backoff", c.Backoff > 0, "must be longer than nothing"},
		{"redis_replicas", c.RedisReplicas >= 0, "must not be negative"},
		{"retention.jobs", c.Retention.Jobs >= 0, "must not be negative"},
		{"retention.count", c.Retention.Count >= 0, "must not be negative"},
		{"retention.archive", c.Retention.Archive >= 0, "must not be negative"},
		{"retention.logs", c.Retention.Logs >= 0, "must not be negative"},
		{"retention.log_bytes", c.Retention.LogBytes >= 0, "must not be negative"},
	} {
		if !rule.ok {
			mistakes = append(mistakes, fmt.Errorf("%s (%s): %s", rule.key, c.Origin(rule.key), rule.want))
		}
	}
	if err := c.validateRedis(); err != nil {
		mistakes = append(mistakes, fmt.Errorf("redis (%s): %w", c.Origin("redis"), err))
	}
	if err := c.validateLeases(); err != nil {
		mistakes = append(mistakes, fmt.Errorf("lease_redis (%s): %w", c.Origin("lease_redis"), err))
	}
	if err := validateLimits(c.Limits); err != nil {
		mistakes = append(mistakes, fmt.Errorf("limits (%s): %w", c.Origin("limits"), err))
	}
	if _, err := c.Sim.Redis.options(); c.Sim.Redis != "" && err != nil {
		mistakes = append(mistakes, fmt.Errorf("sim.redis (%s): %w", c.Origin("sim.redis"), err))
	}
	if err := validateZones(c.Local.Zones); err != nil {
		mistakes = append(mistakes, fmt.Errorf("local.zones (%s): %w", c.Origin("local.zones"), err))
	}
	return errors.Join(mistakes...)
}

// validateRedis looks at the URL together with what else says how Redis is reached.
func (c Config) validateRedis() error {
	if c.Redis == "" {
		return nil
	}
	if c.RedisSentinel != (RedisSentinel{}) && c.Redis.kind() != kindSentinel {
		return errors.New("redis_sentinel is set, and the URL names no Sentinels: write redis+sentinel://host,host/name")
	}
	r := Redis{URL: c.Redis, TLS: c.RedisTLS, Sentinel: c.RedisSentinel}
	if !c.Redis.secure() && slices.ContainsFunc(c.LeaseRedis, RedisURL.secure) {
		r.TLS = RedisTLS{} // it is theirs
	}
	_, err := r.options()
	return err
}

// validateLeases looks at the further servers of the lease: independent ones of which most can be alive when one is not.
func (c Config) validateLeases() error {
	if len(c.LeaseRedis) == 0 {
		return nil
	}
	if n := len(c.LeaseRedis); n < 3 || n%2 == 0 {
		return fmt.Errorf("must be 3, 5 or another odd number of servers, not %d: most of them must be there", n)
	}
	seen := map[string]bool{}
	for n, u := range c.LeaseRedis {
		_, err := c.ServerAt(u).options()
		switch name := u.Place(); {
		case err != nil:
			return fmt.Errorf("server %d: %w", n+1, err)
		case u.kind() != "":
			return fmt.Errorf("server %d: must be a single server, not a %s: they must not depend on each other", n+1, u.kind())
		case seen[name]:
			return fmt.Errorf("server %d: %s is there twice", n+1, name)
		default:
			seen[name] = true
		}
	}
	return nil
}

func validArchive(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Path != "")
}

func validAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != ""
}

func validNames(names []string) bool {
	seen := map[string]bool{}
	for _, name := range names {
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(seen) > 0
}

func validateZones(zones []Zone) error {
	seen := map[string]bool{}
	for n, z := range zones {
		switch {
		case !zoneName.MatchString(z.Name):
			return fmt.Errorf("zone %d: name: must be lower-case letters, digits and inner dashes", n+1)
		case seen[z.Name]:
			return fmt.Errorf("zone %d: name: %q is there twice", n+1, z.Name)
		case z.CPUs < 0 || z.Memory < 0 || z.Price < 0 || z.SpotPrice < 0:
			return fmt.Errorf("zone %d: numbers must not be negative", n+1)
		}
		seen[z.Name] = true
	}
	return nil
}

package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// recordTimeout is how long the record client waits for an answer. Scripts take a millisecond; a lease of 10 s must
	// survive one answer that never comes.
	recordTimeout = 2 * time.Second
	// recordRetries may be more than none because every script of ours gives the same answer when it runs twice.
	recordRetries = 2
	// queueSpare are the connections that asynq needs besides one for each handler.
	queueSpare = 10
	// leaseTimeout is how long one of several lease servers may take before it counts as away. The others are asked at the
	// same time.
	leaseTimeout = time.Second
)

// Redis is how a Redis is reached: its URL, and what no URL can say.
type Redis struct {
	URL      RedisURL
	TLS      RedisTLS      // for rediss://
	Sentinel RedisSentinel // for redis+sentinel://
}

// RedisSentinel is how Sentinels are logged in to, if they ask. The user and the password in the URL are for the servers
// behind them.
type RedisSentinel struct {
	User     string
	Password Secret
}

// Server is the Redis of the deployment.
func (c Config) Server() Redis { return c.ServerAt(c.Redis) }

// ServerAt is a Redis at another URL, reached with the same certificates. What the URL has no use for is left out.
func (c Config) ServerAt(url RedisURL) Redis {
	r := Redis{URL: url}
	if url.secure() {
		r.TLS = c.RedisTLS
	}
	if url.kind() == kindSentinel {
		r.Sentinel = c.RedisSentinel
	}
	return r
}

// RecordClient returns a client for records, locks and logs. It keeps to the deadlines of contexts.
func (r Redis) RecordClient() (redis.UniversalClient, error) {
	o, err := r.RecordOptions()
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(o), nil
}

// RecordOptions are the settings of [Redis.RecordClient].
func (r Redis) RecordOptions() (*redis.UniversalOptions, error) {
	o, err := r.options()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	o.ContextTimeoutEnabled = true
	o.DialTimeout = recordTimeout
	o.ReadTimeout = recordTimeout
	o.WriteTimeout = recordTimeout
	o.MaxRetries = recordRetries
	return o, nil
}

// LeaseOptions are the settings of a client for one of several lease servers: what it does not do at once is not waited for.
func (r Redis) LeaseOptions() (*redis.UniversalOptions, error) {
	o, err := r.options()
	if err != nil {
		return nil, fmt.Errorf("lease_redis: %w", err)
	}
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = leaseTimeout, leaseTimeout, leaseTimeout
	o.MaxRetries, o.DialerRetries = -1, 1 // the lease itself tries again
	return o, nil
}

// QueueClient returns a client for asynq, with connections for so many handlers. It does not keep to the deadlines of
// contexts: asynq writes the end of a task with a context that may have ended.
func (r Redis) QueueClient(handlers int) (redis.UniversalClient, error) {
	o, err := r.QueueOptions(handlers)
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(o), nil
}

// QueueOptions are the settings of [Redis.QueueClient].
func (r Redis) QueueOptions(handlers int) (*redis.UniversalOptions, error) {
	o, err := r.options()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	o.ContextTimeoutEnabled = false
	o.PoolSize = handlers + queueSpare
	return o, nil
}

// RecordClient is that of a Redis which needs nothing but its URL.
func (u RedisURL) RecordClient() (redis.UniversalClient, error) { return Redis{URL: u}.RecordClient() }

// QueueClient is that of a Redis which needs nothing but its URL.
func (u RedisURL) QueueClient(handlers int) (redis.UniversalClient, error) {
	return Redis{URL: u}.QueueClient(handlers)
}

// options are what the URL says, with the certificates and the login of Sentinels.
func (r Redis) options() (*redis.UniversalOptions, error) {
	o, err := r.URL.options()
	if err != nil {
		return nil, err
	}
	if err := r.TLS.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	if o.TLSConfig != nil {
		o.Dialer = dialer(o.TLSConfig, recordTimeout)
		o.DialerRetries = 1 // a server that does not speak TLS never answers: commands are repeated anyway
	}
	o.SentinelUsername, o.SentinelPassword = r.Sentinel.User, string(r.Sentinel.Password)
	return o, nil
}

// kinds of several servers that belong together.
const (
	kindCluster  = "cluster"
	kindSentinel = "sentinel"
)

// secure says whether the URL asks for TLS.
func (u RedisURL) secure() bool { return strings.HasPrefix(string(u), "rediss") }

// kind is kindCluster, kindSentinel, or "" for a single server.
func (u RedisURL) kind() string {
	scheme, _, _ := strings.Cut(string(u), "://")
	_, kind, _ := strings.Cut(scheme, "+")
	return kind
}

// options reads the URL. Errors never quote it.
func (u RedisURL) options() (*redis.UniversalOptions, error) {
	scheme, rest, ok := strings.Cut(string(u), "://")
	if !ok {
		return nil, errors.New("must be a URL such as redis://host:6379")
	}
	base, kind, _ := strings.Cut(scheme, "+")
	switch {
	case base == "unix" && kind == "":
		return single(base, rest)
	case base != "redis" && base != "rediss":
		return nil, fmt.Errorf("%q is not one of redis, rediss and unix", base)
	case kind == "":
		return single(base, rest)
	case kind == kindCluster:
		return several(base, rest, clusterOf)
	case kind == kindSentinel:
		return several(base, rest, sentinelOf)
	default:
		return nil, fmt.Errorf("%q is not one of cluster and sentinel", kind)
	}
}

// single reads the URL of one server.
func single(scheme, rest string) (*redis.UniversalOptions, error) {
	one, err := redis.ParseURL(scheme + "://" + rest)
	if err != nil {
		return nil, errors.New("must be a URL such as redis://user:password@host:6379/0") // go-redis quotes it
	}
	if _, query, _ := strings.Cut(rest, "?"); !knownQuery(query) {
		return nil, errors.New("only db and skip_verify may follow the question mark") // the rest is set here
	}
	return universal(one, one.Addr), nil
}

func knownQuery(query string) bool {
	values, err := url.ParseQuery(query)
	for name := range values {
		if name != "db" && name != "skip_verify" {
			return false
		}
	}
	return err == nil
}

// several reads the URL of servers that belong together: user, password, port and TLS as for a single one, for each
// host.
func several(
	scheme, rest string, finish func(o *redis.UniversalOptions, path string) error,
) (*redis.UniversalOptions, error) {
	rest, query, _ := strings.Cut(rest, "?")
	user := ""
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, rest = rest[:at+1], rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	var o *redis.UniversalOptions
	for host := range strings.SplitSeq(hosts, ",") {
		next, err := single(scheme, user+strings.TrimSpace(host)+"?"+query)
		if err != nil || host == "" {
			return nil, errors.New("must be a URL such as redis+cluster://user:password@host:6379,host:6379")
		}
		if o == nil {
			o = next
			continue
		}
		o.Addrs = append(o.Addrs, next.Addrs...)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // each host has its own
	}
	return o, finish(o, path)
}

func clusterOf(o *redis.UniversalOptions, path string) error {
	if path != "" || o.DB != 0 {
		return errors.New("a cluster has no databases")
	}
	o.IsClusterMode = true
	return nil
}

func sentinelOf(o *redis.UniversalOptions, path string) error {
	if path == "" || strings.Contains(path, "/") {
		return errors.New("must name the master: redis+sentinel://host,host/name")
	}
	o.MasterName = path
	return nil
}

// universal takes over what a URL can say, and turns off what go-redis would try at each connection and servers
// before Redis 7.2 answer with errors.
func universal(one *redis.Options, address string) *redis.UniversalOptions {
	var secure *tls.Config
	if one.TLSConfig != nil {
		secure = one.TLSConfig.Clone()
		secure.MinVersion = tls.VersionTLS12
	}
	return &redis.UniversalOptions{
		Addrs:                    []string{address},
		Username:                 one.Username,
		Password:                 one.Password,
		DB:                       one.DB,
		TLSConfig:                secure,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

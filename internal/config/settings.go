package config

import "strings"

// setting is one thing that can be set in T.
type setting[T any] struct {
	key    string
	usage  string
	noFlag bool // a flag would show it to every user of the computer, or cannot express it
	noFile bool // has a file of its own
	at     func(*T) any
	mask   func(string) string // takes secrets out of the value; only for types that do not do so themselves
}

// env is the environment variable of the setting.
func (s setting[T]) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// flag is the name of its flag, without dashes.
func (s setting[T]) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.key) }

// zonesKey is the only setting that is a list of mappings.
const zonesKey = "local.zones"

// settings is the one table of what can be set.
func settings() []setting[Config] {
	return []setting[Config]{
		{key: "redis", at: func(c *Config) any { return &c.Redis },
			usage: "URL of Redis: redis://, rediss://, unix://, redis+cluster://a,b or redis+sentinel://a,b/name"},
		{key: "redis_tls.ca", at: func(c *Config) any { return &c.RedisTLS.CA },
			usage: "file with the authorities that the certificate of Redis may come from (default: those of this computer)"},
		{key: "redis_tls.cert", at: func(c *Config) any { return &c.RedisTLS.Cert },
			usage: "file with the certificate to show to Redis"},
		{key: "redis_tls.key", at: func(c *Config) any { return &c.RedisTLS.Key },
			usage: "file with the private key of redis_tls.cert"},
		{key: "redis_tls.server_name", at: func(c *Config) any { return &c.RedisTLS.ServerName },
			usage: "name that the certificate of Redis is for (default: the host in the URL)"},
		{key: "redis_sentinel.user", at: func(c *Config) any { return &c.RedisSentinel.User },
			usage: "user to log in to Sentinels with; that in the URL is for the servers"},
		{key: "redis_sentinel.password", noFlag: true, at: func(c *Config) any { return &c.RedisSentinel.Password },
			usage: "password to log in to Sentinels with"},
		{key: "redis_replicas", at: func(c *Config) any { return &c.RedisReplicas },
			usage: "replicas of Redis that must have what a client is told is done"},
		{key: "lease_redis", at: func(c *Config) any { return &c.LeaseRedis },
			usage: "URLs of 3 or 5 further, independent servers, most of which must agree on who drives a job"},
		{key: "home", at: func(c *Config) any { return &c.Home },
			usage: "directory for what this computer keeps"},
		{key: "archive", at: func(c *Config) any { return &c.Archive }, mask: maskURL,
			usage: "URL of the bucket for bundles and logs (default: a directory in home)"},
		{key: "log_format", at: func(c *Config) any { return &c.LogFormat },
			usage: "form of log lines: auto, console or json"},
		{key: "log_level", at: func(c *Config) any { return &c.LogLevel },
			usage: "least level of log lines: debug, info, warn or error"},
		{key: "http_token", noFlag: true, at: func(c *Config) any { return &c.HTTPToken },
			usage: "token that browsers and API clients must show"},
		{key: "http", at: func(c *Config) any { return &c.HTTP },
			usage: "address to serve pages, API and metrics on"},
		{key: "profiles", at: func(c *Config) any { return &c.Profiles },
			usage: "whether Go's profiles of this process are served at /debug/pprof/, to whom may read the pages"},
		{key: "worker", at: func(c *Config) any { return &c.Worker },
			usage: "name of this worker, unique in its deployment (default: host name and process number)"},
		{key: "identity", at: func(c *Config) any { return &c.Identity },
			usage: "file with the key that opens sealed secrets (default: in home)"},
		{key: "identity_key", noFlag: true, noFile: true, at: func(c *Config) any { return &c.IdentityKey },
			usage: "the key itself, instead of a file (in the environment only)"},
		{key: "secrets", at: func(c *Config) any { return &c.Secrets },
			usage: "without a key for secrets: auto makes one, required does not start, off goes without"},
		{key: "providers", at: func(c *Config) any { return &c.Providers },
			usage: "providers to rent machines from"},
		{key: "limits", at: func(c *Config) any { return &c.Limits },
			usage: "calls a second of a provider, of all workers together, in each region, such as aws.write=20 or aws.read=20:100"},
		{key: "concurrency.watch", at: func(c *Config) any { return &c.Concurrency.Watch },
			usage: "machines to look at at a time"},
		{key: "concurrency.acts", at: func(c *Config) any { return &c.Concurrency.Acts },
			usage: "launches at a time, as many recoveries and clean-ups, and as many of urgent jobs"},
		{key: "shards", at: func(c *Config) any { return &c.Shards },
			usage: "shards of the job index; fixed when a deployment first starts"},
		{key: "launches", at: func(c *Config) any { return &c.Launches },
			usage: "jobs being launched at a time, over all workers"},
		{key: "live", at: func(c *Config) any { return &c.Live },
			usage: "jobs holding machines at a time, over all workers; 0 means no limit"},
		{key: "intervals.quick", at: func(c *Config) any { return &c.Intervals.Quick },
			usage: "time between two looks at a job while something is about to change"},
		{key: "intervals.quiet", at: func(c *Config) any { return &c.Intervals.Quiet },
			usage: "time between two looks at a job that runs undisturbed"},
		{key: "lease", at: func(c *Config) any { return &c.Lease },
			usage: "time after which the lock of a worker that went silent ends"},
		{key: "claim", at: func(c *Config) any { return &c.Claim },
			usage: "time after which a look that was never finished is done again"},
		{key: "durable", at: func(c *Config) any { return &c.Durable },
			usage: "time after which Redis cannot lose any more what it has answered; 0 if it has appendfsync always"},
		{key: "failure_grace", at: func(c *Config) any { return &c.FailureGrace },
			usage: "time between a failed exit and the look at the machines that tells a failure from a preemption"},
		{key: "unreachable.probes", at: func(c *Config) any { return &c.Unreachable.Probes },
			usage: "probes without an answer after which a machine is given up"},
		{key: "unreachable.elapsed", at: func(c *Config) any { return &c.Unreachable.Elapsed },
			usage: "time without an answer after which a machine is given up"},
		{key: "boot_timeout", at: func(c *Config) any { return &c.BootTimeout },
			usage: "time that a new machine has to come up"},
		{key: "backoff", at: func(c *Config) any { return &c.Backoff },
			usage: "wait after a round in which no offer could be had; grows with each round"},
		{key: "log_limit", at: func(c *Config) any { return &c.LogLimit },
			usage: "how much of the output of one attempt is kept: its beginning and its end"},
		{key: "retention.jobs", at: func(c *Config) any { return &c.Retention.Jobs },
			usage: "time after its end that a job moves from Redis to the archive; 0 means never"},
		{key: "retention.count", at: func(c *Config) any { return &c.Retention.Count },
			usage: "ended jobs in Redis: what is beyond moves to the archive; 0 means no limit"},
		{key: "retention.archive", at: func(c *Config) any { return &c.Retention.Archive },
			usage: "time after its end that a job is forgotten by the archive; 0 means never"},
		{key: "retention.logs", at: func(c *Config) any { return &c.Retention.Logs },
			usage: "time after the end of a job that its logs are removed, unless the job says so itself; 0 means never"},
		{key: "retention.log_bytes", at: func(c *Config) any { return &c.Retention.LogBytes },
			usage: "bytes in the archive that the logs of all jobs that left Redis may take; 0 means no limit"},
		{key: "callbacks", at: func(c *Config) any { return &c.Callbacks },
			usage: "whether workers run the event_callback of jobs, which is code of their users"},
		{key: "webhooks.private", at: func(c *Config) any { return &c.Webhooks.Private },
			usage: "whether webhooks may be sent to this computer and to private networks"},
		{key: zonesKey, noFlag: true, at: func(c *Config) any { return &c.Local.Zones },
			usage: "zones of the local provider (in the file only)"},
		{key: "sim.world", at: func(c *Config) any { return &c.Sim.World },
			usage: "file that describes the world of the sim provider, which runs nothing"},
		{key: "sim.redis", at: func(c *Config) any { return &c.Sim.Redis },
			usage: "URL of the Redis that holds the machines of the sim provider (default: the deployment's)"},
	}
}

// zoneSettings is the table of what can be set for one local zone.
func zoneSettings() []setting[Zone] {
	return []setting[Zone]{
		{key: "name", at: func(z *Zone) any { return &z.Name }},
		{key: "capacity", at: func(z *Zone) any { return &z.Capacity }},
		{key: "boot", at: func(z *Zone) any { return &z.Boot }},
		{key: "cpus", at: func(z *Zone) any { return &z.CPUs }},
		{key: "memory", at: func(z *Zone) any { return &z.Memory }},
		{key: "price", at: func(z *Zone) any { return &z.Price }},
		{key: "spot_price", at: func(z *Zone) any { return &z.SpotPrice }},
		{key: "accelerators", at: func(z *Zone) any { return &z.Accelerators }},
	}
}

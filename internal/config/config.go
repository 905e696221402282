package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"
)

// Config is every setting. It holds no references that its users may change.
type Config struct {
	Redis         RedisURL // "" means the running `worker dev`, or, in there, one of its own
	RedisTLS      RedisTLS
	RedisSentinel RedisSentinel
	// RedisReplicas is how many replicas must have what a client is told is done.
	RedisReplicas int
	// LeaseRedis are further servers, independent of each other, most of which must agree on who drives a job.
	LeaseRedis []RedisURL

	Home      string   // directory for what this computer keeps
	Archive   string   // URL of a bucket
	HTTP      string   // address to listen on; port 0 means any free one
	HTTPToken Secret   // asked of browsers and API clients; "" asks nothing
	Profiles  bool     // whether Go's profiles are served, too
	LogFormat string   // LogAuto, LogConsole or LogJSON
	LogLevel  string   // "debug", "info", "warn" or "error"
	Worker    string   // name of this worker, unique in its deployment
	Providers []string // names of those that this deployment rents machines from
	Limits    []string // of calls of providers; see [Config.LimitsOf]
	Identity  string   // path of the file that opens sealed secrets
	// IdentityKey is the content of such a file, instead of one. Only the environment may hold it.
	IdentityKey Secret
	Secrets     string // SecretsAuto, SecretsRequired or SecretsOff

	Concurrency Concurrency
	Shards      int // of the job index; fixed when a deployment first starts
	Launches    int // machines being started at a time, over all workers
	Live        int // jobs holding machines at a time, over all workers; 0 means no limit

	Intervals    Intervals
	Lease        time.Duration // an act's lock ends so long after its last renewal
	Claim        time.Duration // a watch's claim on a job ends after so long
	Durable      time.Duration // after so long no crash of Redis or of its computer loses what it has answered
	FailureGrace time.Duration // between a failed exit and the look at the machines that decides whose fault it was
	Unreachable  Unreachable
	Callbacks    bool // users may run code on the workers: event_callback
	Webhooks     Webhooks
	BootTimeout  time.Duration // from a machine's creation to the first answer of its agent
	LogLimit     Bytes         // of the output of one attempt; more is dropped from its middle
	Backoff      time.Duration // after the first round in which every offer failed; grows with each round

	Retention Retention

	Local Local
	Sim   Sim

	origins map[string]string
}

// Concurrency is how much one worker does at a time.
type Concurrency struct {
	Watch int // looks at machines
	Acts  int // launches, recoveries and clean-ups
}

// Intervals say how often a job is looked at.
type Intervals struct {
	Quick time.Duration // while something is about to change
	Quiet time.Duration // while it runs undisturbed
}

// Unreachable says when a machine that its provider calls running, but that does not answer, is given up: when both
// are exceeded.
type Unreachable struct {
	Probes  int
	Elapsed time.Duration
}

// Retention says how long what is left of ended jobs is kept; zero is for ever, or any number.
type Retention struct {
	Jobs     time.Duration // in Redis
	Count    int           // in Redis, at most so many
	Archive  time.Duration // in the archive
	Logs     time.Duration // in the archive
	LogBytes Bytes         // in the archive, of the logs of jobs that have left Redis
}

// Webhooks configures what is told to URLs of users.
type Webhooks struct {
	Private bool // they may be addresses of this computer and of private networks
}

// Local configures the provider that runs jobs as processes of the worker's own computer.
type Local struct {
	Zones []Zone // none means the provider's own choice
}

// Sim configures the provider that runs nothing, for tests, benchmarks and simulation.
type Sim struct {
	World string   // path of the file that says what there is
	Redis RedisURL // where its machines are; "" means the deployment's
}

// Zone is a pretended zone of the local provider.
type Zone struct {
	Name      string
	Capacity  int           // machines at a time
	Boot      time.Duration // how long a machine takes to come up
	CPUs      float64
	Memory    float64 // GB
	Price     float64 // per hour, on demand
	SpotPrice float64 // per hour

	Accelerators map[string]int // kinds that its machines may have, and how many at most
}

// What a worker does about the key for secrets.
const (
	SecretsAuto     = "auto"     // makes one if there is none
	SecretsRequired = "required" // does not start without one: somebody must have given it
	SecretsOff      = "off"      // needs none: jobs with secrets are refused, or wait for another worker
)

// The forms of log lines.
const (
	LogAuto    = "auto"    // console on a terminal, else JSON
	LogConsole = "console" // for people
	LogJSON    = "json"    // for programs
)

// Defaults are the settings of a deployment. Home and what lies in it are filled in by [Load].
func Defaults() Config {
	return Config{
		HTTP:         "127.0.0.1:8080",
		LogFormat:    LogAuto,
		LogLevel:     "info",
		Secrets:      SecretsAuto,
		Providers:    []string{"local"},
		Concurrency:  Concurrency{Watch: 32, Acts: 32},
		Shards:       64, // half a million jobs on two cores
		Launches:     64,
		Intervals:    Intervals{Quick: time.Second, Quiet: 15 * time.Second},
		Lease:        10 * time.Second,
		Claim:        15 * time.Second,
		Durable:      2 * time.Second,
		FailureGrace: 5 * time.Second, // a preemption shows up at the provider a little after the run has failed
		Unreachable:  Unreachable{Probes: 5, Elapsed: time.Minute},
		BootTimeout:  10 * time.Minute,
		Backoff:      time.Minute,
		Retention:    Retention{Jobs: 7 * 24 * time.Hour, Count: 100_000, Logs: 30 * 24 * time.Hour},
		LogLimit:     256 * MiB,
		Callbacks:    true,
	}
}

// DevDefaults are the settings of `worker dev`: everything on one computer, and several at a time do not collide.
func DevDefaults() Config {
	c := Defaults()
	c.HTTP = "127.0.0.1:0"
	c.Shards = 4
	c.Durable = 0 // whatever takes Redis down takes the machines, too
	return c
}

// Origin tells where the value of a key came from: "flag --redis", "environment variable OUTLAST_REDIS", "file /etc/...",
// or "default".
func (c Config) Origin(key string) string {
	if origin, ok := c.origins[key]; ok {
		return origin
	}
	return "default"
}

// String lists all settings as "key: value" lines with where they came from, without secrets.
func (c Config) String() string {
	var b strings.Builder
	for _, s := range settings() {
		value := show(s.at(&c))
		if s.mask != nil {
			value = s.mask(value)
		}
		fmt.Fprintf(&b, "%s: %s (%s)\n", s.key, value, c.Origin(s.key))
	}
	return b.String()
}

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

// complete fills in what depends on other settings and on this computer.
func (c *Config) complete() error {
	if c.Home == "" {
		c.Home = filepath.Join(xdg.StateHome, "outlast")
	}
	if c.Identity == "" {
		c.Identity = filepath.Join(c.Home, "identity")
	}
	for _, path := range []*string{&c.Home, &c.Identity, &c.Sim.World} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("make %s an absolute path: %w", *path, err)
		}
		*path = abs
	}
	if c.Archive == "" {
		c.Archive = (&url.URL{Scheme: "file", Path: filepath.Join(c.Home, "archive")}).String()
	}
	if c.Worker == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name this worker: %w", err)
		}
		c.Worker = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return nil
}

// clone copies what a shallow copy would share.
func (c Config) clone() Config {
	c.Providers, c.Limits = slices.Clone(c.Providers), slices.Clone(c.Limits)
	c.LeaseRedis = slices.Clone(c.LeaseRedis)
	c.Local.Zones = slices.Clone(c.Local.Zones)
	c.origins = maps.Clone(c.origins)
	return c
}

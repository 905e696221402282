package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// times are the settings of the fleet: the defaults divided, so that within minutes much can happen, and still longer than
// a busy computer delays anything.
var times = history.Times{
	Lease:     4 * time.Second,
	Claim:     4 * time.Second,
	Backoff:   2 * time.Second,
	Collector: 45 * time.Second, // 30 s until a machine may be called an orphan, then a list and its end
	Grace:     30 * time.Second,
	Probes:    5,
	ProbeTime: 8 * time.Second,
}

// size is how large a run is.
type size struct {
	name     string
	workers  int
	launches int // slots: few, so that there is a line for them
	shards   int
	every    time.Duration // between two submissions
	open     int           // jobs at a time; no more are submitted until some have ended
	blows    time.Duration // between two faults
	pace     pace
	patience time.Duration // for calm after the last fault; a longer one is a violation
}

// sizes are the sizes that there are.
var sizes = map[string]size{
	"ci": {
		name: "ci", workers: 3, launches: 6, shards: 4, every: 700 * time.Millisecond, open: 40, blows: 1200 * time.Millisecond,
		pace: pace{short: 2 * time.Second, long: 15 * time.Second}, patience: 4 * time.Minute,
	},
	"long": {
		name: "long", workers: 4, launches: 10, shards: 8, every: 400 * time.Millisecond, open: 120, blows: 1500 * time.Millisecond,
		pace: pace{short: 4 * time.Second, long: 60 * time.Second}, patience: 8 * time.Minute,
	},
}

func (r *round) config() string { return filepath.Join(r.dir, "worker.yaml") }

// writeConfig writes the settings of the workers.
func (r *round) writeConfig() error {
	zones := []map[string]any{}
	for i, z := range groundZones {
		zone := map[string]any{"name": z, "capacity": 4, "boot": "100ms", "price": 1 + 0.1*float64(i)}
		if z == emptyZone {
			zone["capacity"] = -1
		}
		zones = append(zones, zone)
	}
	c := map[string]any{
		"providers": r.providers, "http": "127.0.0.1:0", "log_format": "json", "log_level": "debug",
		"shards": r.size.shards, "launches": r.size.launches,
		"lease": times.Lease.String(), "claim": times.Claim.String(), "backoff": times.Backoff.String(),
		"failure_grace": "1s", "boot_timeout": "20s",
		"intervals":   map[string]any{"quick": "1s", "quiet": "3s"},
		"unreachable": map[string]any{"probes": times.Probes, "elapsed": times.ProbeTime.String()},
		"local":       map[string]any{"zones": zones},
	}
	if r.replicas > 0 {
		c["redis_replicas"] = r.replicas
	}
	if r.sky != nil {
		c["sim"] = r.sky.settings()
	}
	if err := os.WriteFile(r.config(), []byte(document(c)), 0o600); err != nil {
		return fmt.Errorf("write the settings of the workers: %w", err)
	}
	return nil
}

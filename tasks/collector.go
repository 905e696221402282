package tasks

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// collector tells Prometheus how many jobs there are in each status. It reads the store when it is asked, so every
// worker tells the same.
type collector struct {
	store *store.Store
	jobs  *prometheus.Desc
}

// NewCollector makes the collector of a deployment's counts.
func NewCollector(s *store.Store) prometheus.Collector {
	return &collector{store: s, jobs: prometheus.NewDesc("outlast_jobs", "Jobs by status, of the whole deployment.", []string{"status"}, nil)}
}

// scrapeLimit keeps a scrape from hanging on a store that is away.
const scrapeLimit = 2 * time.Second

func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.jobs }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, done := context.WithTimeout(context.Background(), scrapeLimit)
	defer done()
	counts, err := c.store.Statuses(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.jobs, err)
		return
	}
	for _, s := range job.Statuses {
		ch <- prometheus.MustNewConstMetric(c.jobs, prometheus.GaugeValue, float64(counts[s]), string(s))
	}
}

package tasks

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// metrics of one worker. None has a label that grows with the jobs.
type metrics struct {
	looks, reclaimed, lost, faults, corrupt prometheus.Counter
	commits, acts, redispatched, collected  *prometheus.CounterVec
	moves, errors, retention                *prometheus.CounterVec
	told, calls, turns                      *prometheus.CounterVec
	orphans                                 *prometheus.GaugeVec
	lateness                                prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "outlast", Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Namespace: "outlast", Name: name, Help: help}, labels)
	}
	return &metrics{
		looks:        counter("looks_total", "Looks of the watch at jobs."),
		reclaimed:    counter("chains_reclaimed_total", "Chains that were silent and were taken over."),
		lost:         counter("leases_lost_total", "Drives that ended because their lease could not be trusted any more."),
		faults:       counter("faults_total", "Errors inside outlast while driving a job."),
		corrupt:      counter("corrupt_records_total", "Looks at records that cannot be read."),
		commits:      vec("commits_total", "Decisions written to the record.", "result"),
		acts:         vec("acts_total", "Acts taken from the queue.", "step"),
		redispatched: vec("acts_redispatched_total", "Acts made by the watch: due after a wait or a death, or lost by the queue.", "why"),
		collected:    vec("machines_collected_total", "Machines ended because they belonged to nobody.", "provider"),
		moves:        vec("transitions_total", "Changes of status.", "to", "cause"),
		retention:    vec("retention_total", "Jobs retired to the archive, logs of jobs removed, jobs that cannot be read, ticks that failed.", "what"),
		told:         vec("told_total", "Tries to tell news of jobs to webhooks and callbacks.", "receiver", "result"),
		calls:        vec("provider_calls_total", "Calls of providers.", "provider", "call"),
		turns:        vec("provider_turns_missed_total", "Calls of providers that were put off, since the limit of calls was reached.", "provider", "kind"),
		errors:       vec("provider_errors_total", "Failed calls of providers.", "provider", "class"),
		lateness: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: "outlast", Name: "look_lateness_seconds", Help: "From when a job was due to when its look began.",
			Buckets: []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 1.25, 1.5, 2, 3, 5, 10, 15, 30, 60, 300},
		}),
		orphans: f.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "outlast", Name: "machines_orphaned", Help: "Machines in the last view that belong to nobody.",
		}, []string{"provider", "region"}),
	}
}

func (m *metrics) commit(err error) {
	result := "ok"
	if errors.Is(err, store.ErrStale) {
		result = "stale"
	}
	m.commits.WithLabelValues(result).Inc()
}

func (m *metrics) providerError(provider string, err error) {
	m.errors.WithLabelValues(provider, string(cloud.ClassOf(err))).Inc()
}

// told counts and logs what a commit has changed.
func (w *Worker) told(log zerolog.Logger, after *job.Record) {
	for _, e := range after.Events {
		line, text := log.Debug(), e.Kind+" "+e.To
		if e.Kind == "status" {
			w.metrics.moves.WithLabelValues(e.To, string(e.Cause.Code)).Inc()
			line, text = log.Info(), "the job is "+e.To
		}
		if e.Kind == "note" {
			text = "note"
		}
		line = line.Int("attempt", e.Attempt)
		for _, field := range [][2]string{{"from", e.From}, {"cause", string(e.Cause.Code)}, {"why", e.Cause.Text}, {"evidence", e.Cause.Evidence}} {
			if field[1] != "" {
				line = line.Str(field[0], field[1])
			}
		}
		line.Msg(text)
	}
}

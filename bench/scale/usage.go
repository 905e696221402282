package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// usage is what all processes have used up to a moment, and what the workers have counted.
type usage struct {
	at       time.Time
	redis    time.Duration // processor time
	away     time.Duration
	workers  time.Duration
	resident int64 // bytes of memory of all workers
	memory   float64
	commands float64
	calls    map[string]float64 // of the provider, by name
	looks    float64
	retired  float64
	late     histogram
}

// usage reads the present state of everything.
func (f *fleet) usage(ctx context.Context) (usage, error) {
	u := usage{at: time.Now(), calls: map[string]float64{}}
	var err error
	if u.redis, err = cpuOf(f.redis.pid); err != nil {
		return u, err
	}
	if u.away, err = cpuOf(f.away.pid); err != nil {
		return u, err
	}
	for _, w := range f.workers {
		cpu, err := cpuOf(w.cmd.Process.Pid)
		if err != nil {
			return u, err
		}
		rss, err := residentOf(w.cmd.Process.Pid)
		if err != nil {
			return u, err
		}
		u.workers += cpu
		u.resident += rss
		if err := w.scrape(ctx, &u); err != nil {
			return u, err
		}
	}
	if u.memory, err = f.redis.info(ctx, "memory", "used_memory"); err != nil {
		return u, err
	}
	u.commands, err = f.redis.info(ctx, "stats", "total_commands_processed")
	return u, err
}

// cpuOf is the processor time that a process has used, its own and that of the system for it.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the state on, which is field 3
	user, err := strconv.ParseInt(rest[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(rest[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err // Linux counts in hundredths for everybody
}

// residentOf is the memory that a process has in use.
func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %d tells nothing of its memory", pid)
}

// info reads a number from INFO.
func (s *server) info(ctx context.Context, section, field string) (float64, error) {
	text, err := s.rdb.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

// scrape adds what a worker has counted.
func (w *worker) scrape(ctx context.Context, u *usage) error {
	families, err := w.metrics(ctx)
	if err != nil {
		return err
	}
	for _, m := range families["outlast_provider_calls_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "call" {
				u.calls[l.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	for _, m := range families["outlast_looks_total"].GetMetric() {
		u.looks += m.GetCounter().GetValue()
	}
	for _, m := range families["outlast_retention_total"].GetMetric() {
		if m.GetLabel()[0].GetValue() == "retired" {
			u.retired += m.GetCounter().GetValue()
		}
	}
	for _, m := range families["outlast_look_lateness_seconds"].GetMetric() {
		u.late.add(m.GetHistogram())
	}
	return nil
}

func (w *worker) metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(res.Body)
}

// changes are the calls that make and end machines.
func (u usage) changes() float64 {
	return u.calls["create"] + u.calls["terminate"] + u.calls["preempt"]
}

// all are all calls of the provider.
func (u usage) all() float64 {
	n := 0.0
	for _, c := range u.calls {
		n += c
	}
	return n
}

// histogram counts samples up to each bound.
type histogram struct {
	bounds []float64
	counts []float64 // cumulative
	total  float64
}

func (h *histogram) add(d *dto.Histogram) {
	if h.bounds == nil {
		for _, b := range d.GetBucket() {
			h.bounds = append(h.bounds, b.GetUpperBound())
		}
		h.counts = make([]float64, len(h.bounds))
	}
	for i, b := range d.GetBucket() {
		if i < len(h.counts) {
			h.counts[i] += float64(b.GetCumulativeCount())
		}
	}
	h.total += float64(d.GetSampleCount())
}

// since are the samples that came after an earlier state.
func (h histogram) since(before histogram) histogram {
	out := histogram{bounds: h.bounds, counts: make([]float64, len(h.counts)), total: h.total - before.total}
	for i := range h.counts {
		out.counts[i] = h.counts[i]
		if i < len(before.counts) {
			out.counts[i] -= before.counts[i]
		}
	}
	return out
}

// quantile is the bound that at least a part of the samples do not exceed, within its bucket by proportion. What is beyond
// the last bound counts as that.
func (h histogram) quantile(part float64) float64 {
	want, below, from := part*h.total, 0.0, 0.0
	for i, n := range h.counts {
		if n >= want && n > below {
			return from + (h.bounds[i]-from)*(want-below)/(n-below)
		}
		below, from = n, h.bounds[i]
	}
	return from
}

// most is the bound of the highest bucket that has samples.
func (h histogram) most() float64 {
	below, most := 0.0, 0.0
	for i, n := range h.counts {
		if n > below {
			most = h.bounds[i]
		}
		below = n
	}
	return most
}

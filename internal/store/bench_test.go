package store

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// redisCPU is the processor time that the server has used.
func (b *bench) redisCPU(tb fataler) time.Duration {
	tb.Helper()
	info := must[string](tb)(b.rdb.Info(b.ctx, "cpu").Result())
	var total float64
	for _, m := range regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`).FindAllStringSubmatch(info, -1) {
		s := must[float64](tb)(strconv.ParseFloat(m[1], 64))
		total += s
	}
	return time.Duration(total * float64(time.Second))
}

// BenchmarkLook measures what a look at a quiet job costs: a claim and a commit of 200 at a time, as the watch does it.
func BenchmarkLook(b *testing.B) {
	s := newBench(b, 1)
	const jobs = 200
	ids := s.submit(b, jobs)
	for _, id := range ids {
		c := must[Claimed](b)(s.Begin(s.ctx, id, job.StepLaunch, 1, "token", lease))
		s.commit(b, &c, running(c.Record), false)
	}
	before := s.redisCPU(b)
	for b.Loop() {
		due := must[Due](b)(s.Claim(s.ctx, 0, jobs, 0, lease, grace))
		if len(due.Jobs) != jobs {
			b.Fatalf("%d jobs were due", len(due.Jobs))
		}
		commits := make([]Commit, jobs)
		for i := range due.Jobs {
			next := due.Jobs[i].Clone()
			next.Look.Every, next.Due = 1000+next.Seq%7, due.Now
			commits[i] = Commit{From: &due.Jobs[i], Next: next}
		}
		must[[]error](b)(s.Commit(s.ctx, 0, commits...))
	}
	looks := float64(b.N * jobs)
	b.ReportMetric(float64((s.redisCPU(b)-before).Nanoseconds())/1000/looks, "redis-us/look")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/looks, "us/look")
}

// BenchmarkSubmit measures how fast jobs are accepted.
func BenchmarkSubmit(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10000} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			s := newBench(b, 64)
			for b.Loop() {
				s.submit(b, n)
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// running is a record as it looks while the user's code runs on one machine.
func running(r job.Record) job.Record {
	next := r.Clone()
	now := r.SubmittedAt
	next.Step = job.StepWatch
	next.Tasks[0].Status, next.Tasks[0].StartedAt, next.Tasks[0].LastRecoveredAt, next.Tasks[0].Attempts = job.Running, now, now, 1
	next.Live = []job.Attempt{{
		Number: 1, Phase: job.PhaseStarted, Token: job.Token("test", r.ID, r.Nonce, 0, 1),
		Offer:    job.Offer{Provider: "aws", Region: "eu-central-1", Zone: "eu-central-1a", Type: "m7g.xlarge", Spot: true, Price: 0.0731, CPUs: 4, MemoryGB: 16},
		Nodes:    []job.Node{{ID: "i-0123456789abcdef0", Address: "ubuntu@10.0.12.34:22"}},
		IntentAt: now, CreatedAt: now, ReadyAt: now, StartedAt: now,
	}}
	next.Look = job.Look{Every: 15000, ViewAt: now, Tail: 123456, Kept: 98304, KeptAt: now}
	next.Events = []job.Event{
		{At: now, Kind: "status", From: "PENDING", To: "STARTING"},
		{At: now, Kind: "status", Attempt: 1, From: "STARTING", To: "RUNNING"},
	}
	return next
}

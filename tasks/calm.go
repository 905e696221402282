package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/store"
)

// A look at a calm job is a question to its agent. If the answer is that nothing has changed, the next look is put off, and
// that was all: no record is read, decided on or written. It is what nearly all looks of a large fleet are. Any other answer,
// and none, is for a look that goes by the record.
//
//	take ──► ask ──► as before ──► rest
//	          └────► anything else ──► claim ──► look, decide, commit      watch.go

// calmReach is how long a calm job's agent may take to answer: the look that goes by the record comes after it, and has a
// claim of its own.
const calmReach = 3 * time.Second

// asked is a calm job and whether its agent has told nothing new.
type asked struct {
	job   *store.Calm
	at    job.Time // when it was asked
	still bool
	cut   bool // it was not asked, or not until the end: somebody else is to
}

// askAll asks the agents of calm jobs, several at a time, and puts off the next looks in batches. Like lookAll it returns when
// most are done.
func (w *Worker) askAll(ctx context.Context, shard int, due store.Due, taken time.Time) error {
	if len(due.Calm) == 0 {
		return nil
	}
	clock := clock{store: due.Now, read: taken}
	answers := make(chan asked, len(due.Calm))
	queueing, done := context.WithDeadlineCause(ctx, taken.Add(w.claim/3), errBusy)
	defer done()
	for i := range due.Calm {
		c := &due.Calm[i]
		leave, err := w.places.enter(queueing)
		if err != nil {
			answers <- asked{job: c, at: clock.now(), cut: true}
			continue
		}
		w.bodies.Go(func() {
			defer leave()
			a := asked{job: c, at: clock.now()}
			w.metrics.looks.Inc()
			w.looked.Add(1)
			w.metrics.lateness.Observe(max(a.at.Sub(c.Due), 0).Seconds())
			a.still = guarded(func() error { return w.ask(ctx, c) }) == nil
			a.cut = !a.still && w.stopping.Err() != nil
			answers <- a
		})
	}
	return w.patiently(func() error { return w.settle(context.WithoutCancel(ctx), shard, due.Until, answers, len(due.Calm)) })
}

// errNews says that a look has to go by the record.
var errNews = errors.New("there is something new")

// ask asks the agent of a calm job. It returns nil if nothing has changed.
func (w *Worker) ask(tick context.Context, c *store.Calm) error {
	if c.Every != w.rules.Quiet { // settings have changed
		return errNews
	}
	site, err := w.sites.of(c.Provider)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(tick), calmReach) // the tick may end before a slow agent answers
	defer done()
	defer context.AfterFunc(w.stopping, done)()
	shell, err := site.Dialer.Dial(ctx, c.Node)
	if err != nil {
		return err
	}
	client := machine.NewClient(shell, site.Agent)
	defer client.Close()
	s, err := client.Poll(ctx, site.Dir(c.Node), c.Tail, 1)
	switch {
	case err != nil:
		return err
	case s.State == agent.Absent, s.State == agent.Exited, s.State == agent.Lost, s.Exit != nil, s.Notice != nil, s.LogSize != c.Tail:
		return errNews
	default:
		return nil
	}
}

// settle puts off the looks at those jobs of which nothing new was heard, and looks at the others.
func (w *Worker) settle(ctx context.Context, shard int, until job.Time, in <-chan asked, n int) error {
	var failed error
	for n > 0 {
		group := gather(in, n)
		n -= len(group)
		var rest []store.Rested
		var news []job.ID
		for _, a := range group {
			switch {
			case a.still:
				rest = append(rest, store.Rested{ID: a.job.ID, Due: w.nextLook(a)})
			case a.cut:
				rest = append(rest, store.Rested{ID: a.job.ID, Due: a.at})
			default:
				news = append(news, a.job.ID)
			}
		}
		failed = errors.Join(failed, w.store.Rest(ctx, shard, until, rest...), w.lookCloser(ctx, shard, news))
	}
	return failed
}

// nextLook is when a calm job is looked at again: at the second of the period that is its own, about one period from now at
// the latest. Jobs that were due together, since they were launched at once or no worker was there for a while, would else be
// due together for ever.
func (w *Worker) nextLook(a asked) job.Time {
	every, second := a.job.Every.Milliseconds(), w.every.Milliseconds()
	own := int64(a.job.ID) / int64(w.store.Shards()) % max(every/second, 1) * second
	latest := int64(a.at) + every + second/2 // a tick may be early by that
	return job.Time(latest - (latest-own)%every)
}

// lookCloser looks at jobs that were taken for calm and are not.
func (w *Worker) lookCloser(ctx context.Context, shard int, ids []job.ID) error {
	if len(ids) == 0 {
		return nil
	}
	due, err := w.store.ClaimThese(ctx, shard, w.claim, lineGrace, ids...)
	if err != nil {
		return err
	}
	claimed := time.Now()
	w.tellCorrupt(due.Corrupt)
	return errors.Join(w.redispatch(ctx, due.Acts), w.lookAll(ctx, shard, due.Jobs, claimed))
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// fleet dispatches a tick of the fleet's chains.
func (w *Worker) fleet(ctx context.Context, chain string) (time.Duration, error) {
	if chain == ChainAdmission {
		return time.Second, w.admission(ctx)
	}
	if chain == ChainRetention {
		return w.retention(ctx)
	}
	if provider, ok := strings.CutPrefix(chain, offersPrefix); ok {
		site, err := w.sites.of(provider)
		if err != nil {
			return time.Minute, err
		}
		return offersEvery, w.tellOffers(ctx, site)
	}
	if chain == ChainHooks {
		return hooksEvery, w.hooks(ctx)
	}
	parts := strings.SplitN(chain, ":", 3)
	if len(parts) != 3 || parts[0] != "view" {
		return time.Minute, fmt.Errorf("nobody knows the chain %q", chain)
	}
	site, err := w.sites.of(parts[1])
	if err != nil {
		return time.Minute, err
	}
	return site.ViewEvery, w.view(ctx, site, parts[2])
}

// admission hands out launch slots whose holders died, and takes back what is held by jobs that do not launch, and places
// of jobs that are done.
func (w *Worker) admission(ctx context.Context) error {
	found, err := w.store.AdmissionTick(ctx, w.caps)
	if err != nil {
		return err
	}
	w.callAll(ctx, found.Granted)
	if err := w.takeBack(ctx, found); err != nil {
		return err
	}
	if w.caps.Live == 0 {
		return nil
	}
	left, err := w.store.Forgotten(ctx)
	if err != nil {
		return err
	}
	for _, id := range left {
		granted, err := w.store.Release(ctx, w.caps, id, true)
		if err != nil {
			return err
		}
		w.callAll(ctx, granted)
	}
	return nil
}

// takeBack ends the slots of jobs that do not launch. Whoever drives a job gives its slot back, but after the commit that
// says so: a worker that dies in between, a call that is lost, or a Redis that fails over and forgets it leaves the slot
// held for nothing (G9).
func (w *Worker) takeBack(ctx context.Context, found store.Admission) error {
	ids := make([]job.ID, len(found.Quiet))
	for i, slot := range found.Quiet {
		ids[i] = slot.ID
	}
	known, damaged, err := w.store.LoadMany(ctx, ids)
	if err != nil {
		return err
	}
	needless := slices.DeleteFunc(found.Quiet, func(slot store.Slot) bool {
		rec, there := known[slot.ID]
		return damaged[slot.ID] != nil || there && rec.NeedsSlot(slot.Grant, found.Now)
	})
	if len(needless) == 0 {
		return nil
	}
	granted, err := w.store.TakeBack(ctx, w.caps, needless)
	if err != nil {
		return err
	}
	w.callAll(ctx, granted)
	return nil
}

// view lists all machines of a region, wakes the jobs that lost one since the last view, keeps what has changed in the view,
// and ends what belongs to nobody. A list that failed changes nothing but what is said about it.
func (w *Worker) view(ctx context.Context, site *Site, region string) error {
	provider := site.Provider.Name()
	old, err := w.store.View(ctx, provider, region)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return err
	case err != nil && !errors.Is(err, store.ErrNotFound):
		w.log.Warn().Err(err).Msg("the last view cannot be read, and is replaced")
	}
	marks, err := w.store.ViewMarks(ctx, provider, region)
	if err != nil {
		return err
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	compared := cloud.Compare(marks, old.Machines != nil)
	var strangers []cloud.Node
	at, err := w.views.walk(ctx, provider, region, now, clock{store: now, read: time.Now()}, func(nodes []cloud.Node) error {
		more, err := w.strangers(ctx, nodes)
		strangers = append(strangers, more...)
		compared.Add(nodes)
		return err
	})
	switch {
	case waitOf(err) > 0:
		return nil // the next tick asks again
	case errors.Is(err, store.ErrUnavailable):
		return err
	case err != nil:
		return errors.Join(err, w.viewFailed(ctx, provider, region, old, err))
	}
	if err := w.keepView(ctx, store.View{Provider: provider, Region: region, At: at}, old, compared); err != nil {
		return err
	}
	return w.collect(ctx, site, region, strangers, at)
}

// keepView keeps what has changed in a view, and wakes the jobs that lost machines before: a crash in between wakes them twice,
// never not at all.
func (w *Worker) keepView(ctx context.Context, v, old store.View, compared *cloud.Comparison) error {
	stored := map[int64][]byte{}
	if changed := compared.Changed(); len(changed) > 0 {
		var err error
		if stored, err = w.store.ViewBlocks(ctx, v.Provider, v.Region, changed...); err != nil {
			return err
		}
	}
	changes, before, came, err := compared.Merge(stored)
	if err != nil {
		return fmt.Errorf("encode the view: %w", err)
	}
	whole, err := cloud.Listed(old.Machines)
	if err != nil {
		w.log.Warn().Err(err).Msg("the last view cannot be read")
	}
	if err := w.wakeLosers(ctx, append(before, whole...), came); err != nil {
		return err
	}
	blocks := make([]store.ViewBlock, len(changes))
	for i, c := range changes {
		blocks[i] = store.ViewBlock(c)
	}
	err = w.store.PutView(ctx, v, blocks...)
	if errors.Is(err, store.ErrStale) {
		return nil // another tick's changes stand, and the next tick compares with those
	}
	return err
}

// viewFailed says in the view why it grows old. It does so also when the time of the tick is up.
func (w *Worker) viewFailed(ctx context.Context, provider, region string, old store.View, why error) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), scrapeLimit)
	defer done()
	old.Provider, old.Region, old.Error = provider, region, why.Error()
	return w.store.PutView(ctx, old)
}

// wakeLosers wakes the jobs of machines that were alive before and are not any more. A machine that is in neither has not
// changed.
func (w *Worker) wakeLosers(ctx context.Context, before, came []cloud.Node) error {
	now := map[string]cloud.State{}
	for _, n := range came {
		now[n.ID] = n.State
	}
	var losers []cloud.Node
	for _, n := range before {
		state, there := now[n.ID]
		if n.State.Ended() || there && (state == n.State || state == cloud.Running) {
			continue
		}
		losers = append(losers, n)
	}
	shards, err := w.store.DoubtAll(ctx, cloud.JobsOf(losers))
	for _, woken := range shards {
		w.runWatch(ctx, woken)
	}
	return err
}

// strangers are those of the machines that are not known to be in use without a look at a record: few, when nothing happens.
func (w *Worker) strangers(ctx context.Context, nodes []cloud.Node) ([]cloud.Node, error) {
	living := slices.DeleteFunc(slices.Clone(nodes), func(n cloud.Node) bool { return n.State.Ended() })
	calm, err := w.store.Calms(ctx, cloud.JobsOf(living))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(living, func(n cloud.Node) bool { // the machine that its job runs on: most of them
		c, ok := calm[n.Job]
		return ok && c.Node.ID == n.ID && c.Provider == n.Provider
	}), nil
}

// collect ends those of the machines that no job of ours needs any more (G4). The provider's list came first, the records
// come second: a machine that is in use is in both.
func (w *Worker) collect(ctx context.Context, site *Site, region string, living []cloud.Node, at job.Time) error {
	var owners cloud.Owners
	var err error
	if owners.Known, owners.Damaged, err = w.store.LoadMany(ctx, cloud.JobsOf(living)); err != nil {
		return err
	}
	orphans := 0
	var failed error
	for _, n := range living {
		verdict := owners.Judge(n, at.Std(), w.minAge)
		if verdict.Kind != cloud.VerdictOrphan {
			continue
		}
		orphans++
		w.log.Warn().Str("provider", n.Provider).Str("machine", n.ID).Int64("job", int64(n.Job)).Int("attempt", n.Attempt).Str("why", verdict.Why).Msg("ending a machine that belongs to nobody")
		w.metrics.collected.WithLabelValues(n.Provider).Inc()
		err := site.Provider.Terminate(calling(ctx, caller{Caller: store.Caller{Name: "collect:" + n.ID}}), region, cloud.Match{Deployment: n.Deployment, Job: n.Job, NodeID: n.ID})
		if waitOf(err) > 0 {
			break // the next tick goes on
		}
		failed = errors.Join(failed, err) // one that cannot be ended keeps no other one alive
	}
	w.metrics.orphans.WithLabelValues(site.Provider.Name(), region).Set(float64(orphans))
	return failed
}

// callAll calls jobs whose turn to launch has come. One that cannot be called is told again by the ticks of the admission.
func (w *Worker) callAll(ctx context.Context, ids []job.ID) {
	if err := w.queue.Call(ctx, w.store, ids); err != nil {
		w.log.Debug().Err(err).Msg("cannot call jobs whose turn has come; they are called again")
	}
}

func (w *Worker) runWatch(ctx context.Context, woken store.Woken) {
	if !woken.Live {
		return
	}
	if err := w.queue.RunWatch(ctx, woken.Shard, woken.Epoch); err != nil {
		w.log.Debug().Err(err).Msg("cannot run a tick early")
	}
}

package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Retention says how long what is left of ended jobs is kept, and where. Zero is for ever, or any number.
type Retention struct {
	Jobs     time.Duration // in Redis, from their end; after that in the archive
	Count    int           // in Redis, at most so many; those that ended last stay
	Archive  time.Duration // in the archive, from their end
	Logs     time.Duration // from the job's end; the job's own log_retention wins
	LogBytes int64         // that the logs of jobs in the archive may take together
}

// The ticks of retention. What one of them does is bounded: with more to do, the next one comes at once.
const (
	retireEvery  = 15 * time.Second
	retireMost   = 500              // jobs, or logs of jobs, in one go
	retireWide   = 32               // at a time: in a bucket each waits for its answers
	retireRead   = 100              // jobs that are read from Redis at once
	retireWithin = 10 * time.Second // jobs are moved for so long in one tick, go after go
	retireLimit  = 30 * time.Second // for one tick; what is left is for the next one
	recountEvery = 10 * time.Minute // between two looks at all that the archive holds
	expireStay   = 500              // documents that stay, found in one look, until it ends
)

// retention moves jobs that ended long ago from Redis to the archive, and removes what is too old there. Everything that
// it does may be cut off anywhere and repeated: a job is deleted only when its document was read back from the archive, and
// only as it was written there; the mark that its logs are due one day comes before that.
func (w *Worker) retention(ctx context.Context) (time.Duration, error) {
	ctx, done := context.WithTimeout(ctx, retireLimit)
	defer done()
	now, err := w.store.Now(ctx)
	if err != nil {
		return retireEvery, err
	}
	more := false
	var failed []error
	for _, part := range []func(context.Context, job.Time) (bool, error){w.retireJobs, w.expireLogs, w.recount} {
		again, err := part(ctx, now)
		more, failed = more || again, append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		w.metrics.retention.WithLabelValues("failed").Inc()
		return retireEvery, err // nothing is lost, and all of it is tried again
	}
	if more {
		return time.Second, nil
	}
	return retireEvery, nil
}

// age is how long a job stays in Redis after its end: no longer than its logs do, since what is due is known of jobs in
// the archive only. Zero is for ever.
func (r Retention) age() time.Duration {
	if r.Logs > 0 && (r.Jobs == 0 || r.Logs < r.Jobs) {
		return r.Logs
	}
	return r.Jobs
}

// retireJobs moves jobs to the archive, however many have ended: Redis holds what lives, and no more of what ended than it may. It
// reports whether there may be more.
func (w *Worker) retireJobs(ctx context.Context, now job.Time) (bool, error) {
	var before job.Time
	if age := w.cfg.Retention.age(); age > 0 {
		before = now.Add(-age)
	}
	for began := time.Now(); ; {
		ids, err := w.store.Retirable(ctx, before, int64(w.cfg.Retention.Count), retireMost)
		if err != nil {
			return false, err
		}
		err = w.retireAll(ctx, ids, now)
		if more := len(ids) == retireMost; err != nil || !more || time.Since(began) > retireWithin {
			return more, err
		}
	}
}

// retireAll moves some jobs to the archive, and then puts them into its index. A job that cannot be moved keeps no other back.
func (w *Worker) retireAll(ctx context.Context, ids []job.ID, now job.Time) error {
	var mu sync.Mutex
	var moved []archive.Brief
	var g errgroup.Group // without a context, for the same reason
	g.SetLimit(retireWide)
	for part := range slices.Chunk(ids, retireRead) {
		all, errs := w.store.LoadAllOf(ctx, part)
		for i, id := range part {
			g.Go(func() error {
				doc, err := w.retire(ctx, id, &all[i], errs[i], now)
				if doc != nil {
					mu.Lock()
					moved = append(moved, archive.BriefOf(doc))
					mu.Unlock()
				}
				return err
			})
		}
	}
	err := g.Wait()
	if len(moved) == 0 {
		return err
	}
	return errors.Join(err, w.archive.Index(ctx, moved)) // without it they are found, too, only not as quickly
}

// retire moves one job to the archive, which was read with an error or without. It returns the document if it is there.
func (w *Worker) retire(ctx context.Context, id job.ID, all *store.Retired, err error, now job.Time) (*archive.Document, error) {
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return nil, err
	case errors.Is(err, store.ErrNotFound): // somebody was faster, or a part of it is missing
		if gone, err := w.store.Forget(ctx, id); gone || err != nil {
			return nil, err
		}
	}
	if err != nil { // damaged: it stays where somebody can mend it
		w.metrics.retention.WithLabelValues("damaged").Inc()
		w.log.Error().Err(err).Int64("job", int64(id)).Msg("a job that ended cannot be read, and stays in Redis")
		return nil, w.store.Defer(ctx, id)
	}
	w.at("retire: read")
	doc := archive.DocumentOf(&all.Record, all.Request, all.Past, all.Events, now)
	if err := w.archive.PutJob(ctx, doc); err != nil {
		return nil, err
	}
	if len(all.Journal) > 0 { // its worker may have died before it did so
		if err := w.archive.PutJournal(ctx, id, all.Journal); err != nil {
			return &doc, err
		}
	}
	w.at("retire: document")
	size, err := w.archive.LogBytes(ctx, id)
	if err != nil {
		return &doc, err
	}
	if size > 0 {
		if err := w.archive.PutExpiry(ctx, expiryOf(&doc, size)); err != nil {
			return &doc, err
		}
	}
	w.at("retire: mark")
	gone, err := w.store.Retire(ctx, all)
	if err != nil {
		return &doc, err
	}
	w.at("retire: gone")
	if gone {
		w.metrics.retention.WithLabelValues("retired").Inc()
		w.log.Debug().Int64("job", int64(id)).Msg("the job is in the archive now")
	}
	return &doc, nil
}

// expiryOf says when the logs of a job are due.
func expiryOf(d *archive.Document, size int64) archive.Expiry {
	ended, own := d.EndedAt(), d.Head.LogRetention
	switch {
	case own < 0:
		return archive.NewExpiry(archive.RuleKeep, ended, d.Head.ID, size)
	case own > 0:
		return archive.NewExpiry(archive.RuleOwn, ended.Add(own), d.Head.ID, size)
	default:
		return archive.NewExpiry(archive.RuleUsual, ended, d.Head.ID, size)
	}
}

// expireLogs removes logs whose time has come. It reports whether there may be more.
func (w *Worker) expireLogs(ctx context.Context, now job.Time) (bool, error) {
	more := false
	var failed []error
	for _, rule := range []archive.LogRule{archive.RuleUsual, archive.RuleOwn} {
		keep := w.cfg.Retention.Logs
		if rule == archive.RuleOwn {
			keep = 0
		} else if keep == 0 {
			continue
		}
		var due []archive.Expiry
		err := w.archive.Expiries(ctx, rule, func(e archive.Expiry) bool {
			if e.Hour.Add(time.Hour+keep) > now { // the hour has to be over
				return false
			}
			due = append(due, e)
			return len(due) < retireMost
		})
		if err != nil {
			return false, err
		}
		more = more || len(due) == retireMost
		failed = append(failed, w.removeEach(ctx, due, archive.Notice{At: now, After: keep}))
	}
	return more, errors.Join(failed...)
}

// removeEach removes the logs of several jobs. One of which they cannot be removed keeps no other back; the first error is
// returned.
func (w *Worker) removeEach(ctx context.Context, marks []archive.Expiry, n archive.Notice) error {
	var first error
	for _, e := range marks {
		n.Job = e.Job
		if err := w.removeLogs(ctx, e, n); err != nil && first == nil {
			first = fmt.Errorf("remove the logs of job %d: %w", e.Job, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return first
}

// removeLogs removes the logs of a job in the archive and leaves a notice in their place, unless the mark is of
// before the job was resumed and says nothing any more.
func (w *Worker) removeLogs(ctx context.Context, e archive.Expiry, n archive.Notice) error {
	rec, err := w.store.Load(ctx, e.Job)
	switch {
	case err == nil && rec.Ended():
		return nil // on its way to the archive
	case err == nil:
		return w.archive.RemoveExpiry(ctx, e)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	doc, err := w.archive.Job(ctx, e.Job)
	unknown := errors.Is(err, archive.ErrNotFound) // its time was over, too: nobody can ask for its logs
	switch {
	case err != nil && !unknown:
		return err
	case !unknown && expiryOf(&doc, e.Bytes) != e:
		return w.archive.RemoveExpiry(ctx, e)
	}
	if e.Rule == archive.RuleOwn && n.Limit == 0 {
		n.After = doc.Head.LogRetention
	}
	if !unknown {
		if err := w.archive.PutNotice(ctx, n); err != nil {
			return err
		}
	}
	w.at("logs: notice")
	if err := w.archive.RemoveLogs(ctx, e.Job); err != nil {
		return err
	}
	w.at("logs: removed")
	w.metrics.retention.WithLabelValues("logs").Inc()
	w.log.Info().Int64("job", int64(e.Job)).Int64("bytes", e.Bytes).Msg("removed the logs of a job")
	return w.archive.RemoveExpiry(ctx, e)
}

// recount holds the archive as a whole to its limits, now and then.
func (w *Worker) recount(ctx context.Context, now job.Time) (bool, error) {
	if last := job.Time(w.recounted.Load()); last > 0 && now.Sub(last) < recountEvery {
		return false, nil
	}
	more, err1 := w.limitLogs(ctx, now)
	again, err2 := w.expireDocuments(ctx, now)
	if !more && !again { // also after an error: what cannot be read is not looked at all the time
		w.recounted.Store(int64(now))
	}
	return more || again, errors.Join(err1, err2)
}

// limitLogs removes logs, those of the jobs that ended first first, until they take no more than they may.
func (w *Worker) limitLogs(ctx context.Context, now job.Time) (bool, error) {
	limit := w.cfg.Retention.LogBytes
	if limit == 0 {
		return false, nil
	}
	var total int64
	for _, rule := range []archive.LogRule{archive.RuleUsual, archive.RuleOwn, archive.RuleKeep} {
		if err := w.archive.Expiries(ctx, rule, func(e archive.Expiry) bool { total += e.Bytes; return true }); err != nil {
			return false, err
		}
	}
	var over []archive.Expiry
	for _, rule := range []archive.LogRule{archive.RuleUsual, archive.RuleOwn} { // what is to be kept for ever, is
		err := w.archive.Expiries(ctx, rule, func(e archive.Expiry) bool {
			if total <= limit || len(over) == retireMost {
				return false
			}
			over, total = append(over, e), total-e.Bytes
			return true
		})
		if err != nil {
			return false, err
		}
	}
	return len(over) == retireMost, w.removeEach(ctx, over, archive.Notice{At: now, Limit: limit})
}

// expireDocuments deletes what is known of jobs whose time in the archive is over. It begins with the oldest and ends when it
// has found enough that stay: jobs end more or less in the order in which they were submitted.
func (w *Worker) expireDocuments(ctx context.Context, now job.Time) (bool, error) {
	keep := w.cfg.Retention.Archive
	if keep == 0 {
		return false, nil
	}
	removed, stay := 0, 0
	var first error
	err := w.archive.OldestJobs(ctx, func(ids []job.ID) (bool, error) {
		// The document of a job that is in Redis again is of an earlier end, and may be written anew at any moment. One of a
		// job that is not, is the last.
		here, damaged, err := w.store.LoadMany(ctx, ids)
		if err != nil {
			return false, err
		}
		left := len(ids)
		for _, id := range slices.Backward(ids) {
			if _, yes := here[id]; yes || damaged[id] != nil {
				continue
			}
			gone, err := w.expireDocument(ctx, id, now.Add(-keep))
			if err != nil && first == nil {
				first = err
			}
			if gone {
				removed, left = removed+1, left-1
			} else {
				stay++
			}
			if left == 0 {
				first = errors.Join(first, w.archive.RemoveIndex(ctx, id))
			}
			if removed == retireMost || ctx.Err() != nil {
				return false, nil
			}
		}
		return stay < expireStay, nil
	})
	return removed == retireMost, errors.Join(err, first)
}

// expireDocument deletes what is known of a job if it ended before a time, and reports whether it did.
func (w *Worker) expireDocument(ctx context.Context, id job.ID, before job.Time) (bool, error) {
	doc, err := w.archive.Job(ctx, id)
	switch {
	case errors.Is(err, archive.ErrNotFound): // somebody was faster
		return false, nil
	case err != nil || doc.EndedAt() > before:
		return false, err
	}
	err = errors.Join(w.archive.RemoveNotice(ctx, id), w.archive.RemoveJob(ctx, id))
	return err == nil, err
}

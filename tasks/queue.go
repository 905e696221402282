package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// maxRetry: asynq archives a task that was retried too often, and every tick counts as a retry. Never archive.
const maxRetry = math.MaxInt32

// Timeouts of the handlers. asynq renews the lease of a process, not of a handler, so one that hangs is
// ended by its own deadline only.
const (
	tickTimeout = time.Minute
	actTimeout  = 15 * time.Minute
)

// again is what a chain's handler returns at the end of a tick: asynq then moves the same task to its next time in one
// script, so that the chain can neither be lost nor doubled by the hand-over.
type again struct{ in time.Duration }

func (again) Error() string { return "ok, next tick" }

// retryDelay is asynq's RetryDelayFunc. asynq keeps whole seconds and truncates; the store puts ticks on whole seconds,
// so rounding to the nearest one keeps the phase.
func retryDelay(n int, err error, _ *asynq.Task) time.Duration {
	var next again
	switch {
	case errors.As(err, &next) && next.in <= 0:
		return 0
	case errors.As(err, &next):
		return time.Until(time.Now().Add(next.in).Round(time.Second)) + time.Millisecond
	case errors.Is(err, asynq.ErrLeaseExpired):
		return 0
	default:
		return min(time.Duration(1<<min(n, 5))*time.Second, 30*time.Second)
	}
}

// isFailure is asynq's IsFailure: what is no failure is not counted, and never archived.
func isFailure(err error) bool {
	var next again
	return err != nil && !errors.As(err, &next) && !errors.Is(err, asynq.ErrLeaseExpired) && !errors.Is(err, context.Canceled)
}

// KeepWrites makes a Redis client fit for asynq. From v0.25.0 on, asynq hands the repetition of a failed Done or Retry a
// context that is cancelled already, so a task that succeeded during a short outage would be run again. The
// hook lets every command run to its end.
func KeepWrites(c redis.UniversalClient) { c.AddHook(keepWrites{}) }

type keepWrites struct{}

func (keepWrites) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (keepWrites) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return next(context.WithoutCancel(ctx), cmd) }
}

func (keepWrites) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(context.WithoutCancel(ctx), cmds) }
}

// Dispatcher makes the tasks that the record asks for. Making one twice is harmless, and so is losing one: the watch
// looks for what is missing.
type Dispatcher struct {
	rdb     redis.UniversalClient
	client  *asynq.Client
	inspect *asynq.Inspector
}

// NewDispatcher uses a client that was prepared with [KeepWrites]. It does not close it.
func NewDispatcher(c redis.UniversalClient) *Dispatcher {
	return &Dispatcher{rdb: c, client: asynq.NewClientFromRedisClient(c), inspect: asynq.NewInspectorFromRedisClient(c)}
}

// Dispatch makes an act. That it exists already is success, also because go-redis may have made it twice.
func (d *Dispatcher) Dispatch(ctx context.Context, a store.Act) error {
	return d.enqueue(ctx, string(a.Step), actID(a.Step, a.ID, a.N), queueOfAct(a), actTimeout)
}

// Call makes the acts of jobs whose turn has come, without a tick in between. What fails is found missing by the ticks.
func (d *Dispatcher) Call(ctx context.Context, s *store.Store, ids []job.ID) error {
	if len(ids) == 0 {
		return nil
	}
	acts, woken, err := s.Call(ctx, ids, actGrace)
	var all errgroup.Group
	all.SetLimit(callsAtOnce)
	for _, a := range acts {
		all.Go(func() error { return d.Dispatch(ctx, a) })
	}
	for _, w := range woken {
		all.Go(func() error { return d.RunWatch(ctx, w.Shard, w.Epoch) })
	}
	return errors.Join(err, all.Wait())
}

// callsAtOnce is how many acts are made at a time where many jobs have their turn at once.
const callsAtOnce = 8

// RunWatch runs the tick of a shard's watch now. If the tick is under way already, it sees the wake by itself.
func (d *Dispatcher) RunWatch(ctx context.Context, shard int, epoch int64) error {
	return d.runChain(store.WatchChain(shard), epoch)
}

// RunChain runs the tick of a chain now.
func (d *Dispatcher) RunChain(ctx context.Context, chain string, epoch int64) error {
	return d.runChain(chain, epoch)
}

func (d *Dispatcher) runChain(chain string, epoch int64) error {
	if epoch == 0 {
		return nil // it never began: the first worker begins it
	}
	var err error
	for range runTries {
		err = d.inspect.RunTask(chainQueue(chain), chainID(chain, epoch))
		if err == nil || errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
			return nil
		}
		if info, e := d.inspect.GetTaskInfo(chainQueue(chain), chainID(chain, epoch)); e == nil &&
			(info.State == asynq.TaskStateActive || info.State == asynq.TaskStatePending) {
			return nil
		}
	}
	return fmt.Errorf("run the tick of %s: %w", chain, err)
}

// runTries: a tick that waited or ran when it was to be run, which asynq refuses without a type of error, may have ended
// by the time that it is looked at.
const runTries = 2

// beginChain makes the task of a chain's new epoch.
func (d *Dispatcher) beginChain(ctx context.Context, chain string, epoch int64) error {
	kind := "fleet"
	if chainQueue(chain) == QueueWatch {
		kind = "watch"
	}
	return d.enqueue(ctx, kind, chainID(chain, epoch), chainQueue(chain), tickTimeout)
}

func (d *Dispatcher) enqueue(ctx context.Context, kind, id, queue string, timeout time.Duration) error {
	_, err := d.client.EnqueueContext(ctx, asynq.NewTask(kind, nil),
		asynq.TaskID(id), asynq.Queue(queue), asynq.MaxRetry(maxRetry), asynq.Timeout(timeout)) // no Retention, no Unique: both block the id
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("make task %s: %w", id, err)
	}
	return nil
}

// remember keeps our queues in the set that asynq's inspector looks into first. A client of asynq puts a queue there once in its
// life: if somebody deletes its keys, no tick could be run early again before all workers had been restarted.
func (d *Dispatcher) remember(ctx context.Context) error {
	return d.rdb.SAdd(ctx, "asynq:queues", QueueWatch, QueueControl, QueueLaunch, QueueUrgent, QueueFleet, QueueHooks).Err()
}

// queued tells what became of an act's task.
type queued int

const (
	queuedMissing queued = iota // the queue lost it
	queuedWaiting               // it will be run
	queuedTaken                 // a worker took it, and may have died with it
)

func (d *Dispatcher) look(a store.Act) (queued, error) {
	id := actID(a.Step, a.ID, a.N)
	info, err := d.inspect.GetTaskInfo(queueOfAct(a), id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound):
		return queuedMissing, nil
	case err != nil:
		return 0, fmt.Errorf("look for task %s: %w", id, err)
	case info.State == asynq.TaskStatePending || info.State == asynq.TaskStateScheduled || info.State == asynq.TaskStateRetry:
		return queuedWaiting, nil
	default:
		return queuedTaken, nil
	}
}

package tasks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/outlast-dev/outlast/internal/store"
)

// ticks keeps count of the ticks of chains.
type ticks struct {
	mu      sync.Mutex
	count   map[string]int
	running map[string]int
	overlap []string // chains of which two ticks ran at a time
}

func newTicks() *ticks { return &ticks{count: map[string]int{}, running: map[string]int{}} }

// body is that of a chain which ticks as often as it can.
func (k *ticks) body(ctx context.Context, chain string) (time.Duration, error) {
	k.mu.Lock()
	k.count[chain]++
	k.running[chain]++
	if k.running[chain] > 1 {
		k.overlap = append(k.overlap, chain)
	}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.running[chain]--
		k.mu.Unlock()
	}()
	return time.Second, sleep(ctx, 100*time.Millisecond) // so that an overlap would be seen
}

// of is how often a chain has ticked.
func (k *ticks) of(chain string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count[chain]
}

// beyond reports whether all of the chains have ticked n times more than before.
func (k *ticks) beyond(before map[string]int, n int, chains []string) bool {
	for _, c := range chains {
		if k.of(c) < before[c]+n {
			return false
		}
	}
	return true
}

func (k *ticks) all(chains []string) map[string]int {
	m := map[string]int{}
	for _, c := range chains {
		m[c] = k.of(c)
	}
	return m
}

// ticker is a worker whose chains have that body.
func (b *bench) ticker(silence time.Duration, body tick) *Worker {
	b.Helper()
	w := b.worker(func(c *Config) { c.Silence = silence })
	if err := w.serve(w.handleTick(body), 8, map[string]int{QueueWatch: 1, QueueFleet: 1}); err != nil {
		b.Fatal(err)
	}
	return w
}

// keeper is a ticker that looks after all chains of the deployment, as a worker does.
func (b *bench) keeper(silence time.Duration, body tick) *Worker {
	b.Helper()
	w := b.ticker(silence, body)
	w.loops.Go(func() { w.keepChains(w.stopping) })
	return w
}

// begin makes the next epoch of a chain, as whoever finds it silent does.
func (b *bench) begin(chain string, silence time.Duration) int64 {
	b.Helper()
	taken, err := b.store.ChainReclaim(b.Context(), []string{chain}, silence)
	if err != nil || taken[chain] == 0 {
		b.Fatalf("cannot take over %s: %v, %v", chain, taken, err)
	}
	if err := b.queue.beginChain(b.Context(), chain, taken[chain]); err != nil {
		b.Fatal(err)
	}
	return taken[chain]
}

// chains are those of the deployment under test.
var chains = []string{store.WatchChain(0), store.WatchChain(1), ChainAdmission}

// Ensure that two workers which look after the same chains make one of each: nobody takes over what is well, and no two
// ticks of one chain run at a time.
func TestTwoKeepersMakeOneChain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := newTicks()
	b.keeper(DefaultSilence, k.body)
	b.keeper(DefaultSilence, k.body)
	b.until("four ticks of each chain", func() bool { return k.beyond(nil, 4, chains) })
	for _, chain := range chains {
		if b.task(chainQueue(chain), chainID(chain, 1)) == nil {
			t.Errorf("the first task of %s is gone", chain)
		}
		if b.task(chainQueue(chain), chainID(chain, 2)) != nil {
			t.Errorf("%s has two tasks", chain)
		}
	}
	if len(k.overlap) > 0 {
		t.Errorf("two ticks at a time of %v", k.overlap)
	}
}

// Ensure that chains whose tasks are all deleted tick again, with a new epoch, though their workers do not notice anything
// else (G1).
func TestG1_DeletedChainsTickAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := newTicks()
	const silence = 1500 * time.Millisecond
	b.keeper(silence, k.body)
	b.keeper(silence, k.body)
	b.until("the first ticks", func() bool { return k.beyond(nil, 1, chains) })

	before, began := k.all(chains), time.Now()
	b.forget()
	b.until("all chains to tick again", func() bool { return k.beyond(before, 2, chains) })
	t.Logf("all tick again after %v", time.Since(began).Round(100*time.Millisecond))
	for _, chain := range chains {
		epoch, err := b.store.ChainWake(t.Context(), chain)
		if err != nil || epoch < 2 {
			t.Errorf("%s ticks with epoch %d, %v", chain, epoch, err)
		}
	}
}

// forget deletes everything that asynq knows.
func (b *bench) forget() {
	b.Helper()
	c := b.redis.Client(b)
	keys, err := c.Keys(b.Context(), "asynq:*").Result()
	if err == nil && len(keys) == 0 {
		err = errors.New("there are none")
	}
	if err == nil {
		err = c.Del(b.Context(), keys...).Err()
	}
	if err != nil {
		b.Fatalf("delete the queues: %v", err)
	}
}

// Ensure that a task of an old epoch ends at its next begin without a tick, however late it comes, and so does a task that is not
// ours; the chain's owner ticks on.
func TestStaleEpochEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := newTicks()
	const chain = "watch-0"
	for range 2 { // with no patience the chain is silent at once
		b.begin(chain, 0)
	}
	foreign := asynq.NewTask("watch", nil)
	if _, err := b.tasks.Enqueue(foreign, asynq.TaskID("no-epoch"), asynq.Queue(QueueWatch)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var begun []string
	b.ticker(DefaultSilence, func(ctx context.Context, chain string) (time.Duration, error) {
		id, _ := asynq.GetTaskID(ctx)
		mu.Lock()
		begun = append(begun, id)
		mu.Unlock()
		return k.body(ctx, chain)
	})
	b.until("ticks", func() bool { return k.of(chain) > 1 })
	b.until("the others to end", func() bool {
		return b.task(QueueWatch, "watch-0:1") == nil && b.task(QueueWatch, "no-epoch") == nil
	})
	mu.Lock()
	defer mu.Unlock()
	for _, id := range begun {
		if id != "watch-0:2" {
			t.Errorf("%s has ticked", id)
		}
	}
}

// Ensure that a chain whose epoch is raised during a tick does not go on after it.
func TestOvertakenTickEnds(t *testing.T) {
	t.Parallel()
	b, chain := newBench(t), store.WatchChain(0) // a fleet's tick may take its time
	running, end := make(chan struct{}), make(chan struct{})
	b.ticker(200*time.Millisecond, func(context.Context, string) (time.Duration, error) {
		running <- struct{}{}
		<-end
		return time.Second, nil
	})
	epoch := b.begin(chain, DefaultSilence)
	<-running
	b.until("the tick to take too long", func() bool {
		taken, err := b.store.ChainReclaim(t.Context(), []string{chain}, DefaultSilence)
		return err == nil && taken[chain] == epoch+1
	})
	close(end)
	b.until("the task to end", func() bool { return b.task(QueueWatch, chainID(chain, epoch)) == nil })
}

// hourly is a chain with one tick an hour, of which the test lets each one end.
type hourly struct {
	began chan struct{}
	end   chan struct{}
}

func newHourly() *hourly { return &hourly{began: make(chan struct{}), end: make(chan struct{})} }

func (h *hourly) body(ctx context.Context, _ string) (time.Duration, error) {
	h.began <- struct{}{}
	<-h.end
	return time.Hour, nil
}

// Ensure that RunChain runs a tick now that is due in an hour, and only one.
func TestRunChain(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newHourly()
	b.ticker(DefaultSilence, h.body)
	epoch := b.begin(ChainAdmission, DefaultSilence)
	id := chainID(ChainAdmission, epoch)
	for range 3 {
		<-h.began
		h.end <- struct{}{}
		b.until("the tick to be put off", func() bool { return b.is(QueueFleet, id, asynq.TaskStateRetry) })
		if in := time.Until(b.task(QueueFleet, id).NextProcessAt); in < 59*time.Minute {
			t.Fatalf("the next tick is due in %v, want an hour", in)
		}
		if err := b.queue.RunChain(t.Context(), ChainAdmission, epoch); err != nil {
			t.Fatal(err)
		}
	}
	<-h.began
	close(h.end)
}

// Ensure that a wake which comes during a tick, after what it is about was looked at, leads to another tick at once.
func TestWakeDuringATick(t *testing.T) {
	t.Parallel()
	b, h := newBench(t), newHourly()
	b.ticker(DefaultSilence, h.body)
	b.begin(store.WatchChain(1), DefaultSilence)
	<-h.began
	for range 2 { // twice is not more
		epoch, err := b.store.ChainWake(t.Context(), store.WatchChain(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.queue.RunWatch(t.Context(), 1, epoch); err != nil {
			t.Fatal(err)
		}
	}
	h.end <- struct{}{}
	<-h.began
	h.end <- struct{}{}
	id := chainID(store.WatchChain(1), 1)
	b.until("the tick to be put off", func() bool { return b.is(QueueWatch, id, asynq.TaskStateRetry) })
	if in := time.Until(b.task(QueueWatch, id).NextProcessAt); in < 59*time.Minute {
		t.Errorf("the next tick is due in %v, want an hour: nobody has woken it again", in)
	}
}

// Ensure that a tick which fails is repeated at its period: an error of a body never ends its chain.
func TestFailedTickIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	runs := make(chan struct{}, 64)
	b.ticker(DefaultSilence, func(context.Context, string) (time.Duration, error) {
		runs <- struct{}{}
		return 0, errors.New("failed")
	})
	id := chainID(ChainAdmission, b.begin(ChainAdmission, DefaultSilence))
	for range 3 {
		<-runs
	}
	if info := b.task(QueueFleet, id); info == nil || info.Retried != 0 {
		t.Errorf("the task is %+v, want it there and not counted", info)
	}
}

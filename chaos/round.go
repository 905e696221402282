package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/store"
)

// The two providers of the suite.
const (
	local = "local"
	simul = "sim"
)

// The secret that must be found nowhere: its name, and the begin of its value.
const (
	secretName  = "CHAOS_TOKEN"
	secretValue = "planted-and-never-to-be-seen-"
)

// background is for what goes on when a run is interrupted: healing and cleaning up.
var background = context.Background()

func now() history.Time { return history.TimeOf(time.Now()) }

// round is one deployment, from its first worker to its verdict.
type round struct {
	opts  options
	size  size
	bin   binaries
	name  string
	seed  uint64
	lasts time.Duration // for which things are broken

	replicas int // that must have what a client is told is done

	dir       string // its history, logs and files
	home      string // of the product: local machines, archive, identity
	shared    string // traces of the code on local machines
	providers []string

	ctx  context.Context //nolint:containedctx // a round is a run: all that it has started ends with it
	stop context.CancelFunc
	out  *history.Writer
	run  history.Run

	net     *network
	single  *server    // the Redis of the deployment, or
	ring    *sentinels // a master with a replica
	sky     *sky       // what the sim provider's machines live in; nil without it
	ground  *ground    // the local provider's machines
	workers []*worker
	client  *client
	book    book

	wounds     wounds
	deployment string

	mu       sync.Mutex
	tally    map[string]int // faults by name
	troubles []error        // of the suite itself: whatever they are, the run has not shown that all is well
}

// trouble notes that something went wrong that no fault explains.
func (r *round) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles = append(r.troubles, err)
}

// play plays a round: build the deployment, break it while jobs run, heal it, and write down what is left. An error says
// that it could not be played; what the product did wrong is for the judge.
func (r *round) play(ctx context.Context) (err error) {
	r.ctx, r.stop = context.WithCancel(ctx)
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return err
	}
	r.run.Began = now()
	r.out.Add(r.run)

	var watching sync.WaitGroup
	looking, enough := context.WithCancel(r.ctx)
	defer enough()
	watching.Go(func() { r.sample(looking) })

	loading, stopLoad := context.WithTimeout(r.ctx, r.lasts)
	defer stopLoad()
	rest, stopRest := context.WithTimeout(r.ctx, r.lasts+r.size.patience)
	defer stopRest()
	var load sync.WaitGroup
	load.Go(func() { r.load(loading, rest) })
	r.breakAll(loading)
	r.run.Healed = now()
	load.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.calm(rest)
	r.collected(ctx)
	enough()
	watching.Wait()
	return r.dump(ctx)
}

// open starts everything.
func (r *round) open(ctx context.Context) error {
	r.home, r.shared = filepath.Join(r.dir, "home"), filepath.Join(r.dir, "shared")
	for _, d := range []string{r.home, r.shared, filepath.Join(r.dir, "jobs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("make the folders of a round: %w", err)
		}
	}
	r.out, r.net = history.NewWriter(r.dir), newNetwork()
	r.book.seen = map[int64]history.Seen{}
	r.run = history.Run{
		Seed: r.seed, Size: r.size.name, Planted: r.opts.plant, Secret: secretValue + fmt.Sprintf("%016x", r.seed),
		Launches: r.size.launches, Shards: r.size.shards, Times: times,
	}
	if r.sky != nil {
		if err := r.sky.open(ctx, r); err != nil {
			return err
		}
		r.run.Worlds = []string{r.sky.world}
	}
	if err := r.openRedis(ctx); err != nil {
		return err
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	if err := r.startFleet(ctx, r.size.workers); err != nil {
		return err
	}
	if err := r.learn(ctx); err != nil {
		return err
	}
	r.sky.attach(r.deployment)
	ground, err := newGround(r)
	r.ground = ground
	return err
}

// learn asks which deployment it is that the first worker has founded: machines carry its name.
func (r *round) learn(ctx context.Context) error {
	admin, err := r.admin(ctx)
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, admin)
	if err != nil {
		return fmt.Errorf("ask for the deployment: %w", err)
	}
	r.deployment = st.Deployment().ID
	return nil
}

// openRedis starts the deployment's Redis, and makes the client's way to it.
func (r *round) openRedis(ctx context.Context) error {
	r.client = &client{r: r}
	if r.ring != nil {
		ring, err := newSentinels(ctx, r.dir, r.net)
		r.ring = ring
		if err != nil {
			return err
		}
		r.client.way, r.client.url, err = r.wayFor("client")
		return err
	}
	var err error
	if r.single, err = newServer(r.dir, "redis"); err != nil {
		return err
	}
	if err := r.single.start(ctx); err != nil {
		return err
	}
	r.client.way, r.client.url, err = r.wayFor("client")
	return err
}

// wayFor makes a way to Redis for one party alone, and tells where it finds it.
func (r *round) wayFor(name string) (way, string, error) {
	if r.ring != nil {
		return r.ring.way(r.net, name)
	}
	l, err := r.net.link(name, r.single.addr())
	if err != nil {
		return nil, "", err
	}
	return way{l}, "redis://" + l.listen, nil
}

// admin is a connection to the Redis that holds the records now, not by way of any proxy.
func (r *round) admin(ctx context.Context) (*redis.Client, error) {
	if r.ring == nil {
		return r.single.admin, nil
	}
	m, err := r.ring.master(ctx)
	if err != nil {
		return nil, err
	}
	return m.admin, nil
}

// calm waits until all jobs have ended and are cleaned up.
func (r *round) calm(ctx context.Context) {
	r.say("healed: %d jobs are on their way to their ends", r.book.open())
	for {
		live, err := r.live(ctx)
		r.askQueue(ctx)
		if err == nil && live == 0 && r.book.open() == 0 {
			r.run.CalmAt = now()
			return
		}
		if !pause(ctx, 500*time.Millisecond) {
			r.say("not calm: %d jobs have not ended, %d are not cleaned up", r.book.open(), live)
			return
		}
	}
}

// close ends everything that the round has started.
func (r *round) close() error {
	r.stop()
	for _, w := range r.workers {
		w.down()
		w.way.close()
	}
	var errs []error
	if r.client != nil {
		r.client.way.close()
	}
	errs = append(errs, r.ring.stop(), r.single.stop(), r.sky.close(), r.ground.close())
	if r.out != nil {
		errs = append(errs, r.out.Close())
	}
	return errors.Join(errs...)
}

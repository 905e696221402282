package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// fault is a row of the table of what can break.
type fault struct {
	name   string
	weight int
	needs  func(r *round) bool
	// inject begins it. What it holds is given back with its end. errTaken says that there is nothing to break.
	inject func(r *round, d dice) (injury, error)
}

// forgetful is the fault of a Redis that loses what it has acknowledged.
const forgetful = "failover that forgets"

// What a fault stops: see history.Fault.
const (
	stopsOne   = "one"
	stopsAll   = "all"
	stopsTicks = "ticks"
)

// faults are what can break.
var faults = slices.Concat(ofProcesses, ofTheSky(), ofCalls())

// ofProcesses are the faults of what runs on this computer.
var ofProcesses = []fault{
	{"worker killed", 12, nil, killWorker},
	{"worker frozen", 8, nil, freezeWorker},
	{"worker restarted", 6, nil, restartWorker},
	{"workers replaced", 3, nil, replaceWorkers},
	{"all workers killed", 2, nil, killAllWorkers},

	{"worker partitioned", 6, nil, onWorker("asks nobody and hears nothing", time.Second, leaseAnd(4*time.Second), func(w way, _ dice) (func() error, error) { return w.apart() })},
	{"answers lost", 6, nil, onWorker("what it asks is done, the answers are lost", time.Second, leaseAnd(2*time.Second), func(w way, _ dice) (func() error, error) { return w.deaf() })},
	{"worker slowed", 4, nil, onWorker("each answer late", time.Second, 6*time.Second, func(w way, d dice) (func() error, error) {
		return w.slow(d.between(50*time.Millisecond, 900*time.Millisecond))
	})},
	{"connections torn", 4, nil, onWorker("connections end in the middle of answers", time.Second, 4*time.Second, func(w way, d dice) (func() error, error) {
		return w.torn(d.IntN(4000))
	})},
	{"connections cut", 4, nil, onWorker("refused", 100*time.Millisecond, 3*time.Second, func(w way, _ dice) (func() error, error) { return w.cut() })},
	{"client cut off", 4, nil, cutClient},

	{"Redis killed", 6, single, killRedis},
	{"Redis frozen", 5, single, freezeRedis},
	{"Redis full", 4, single, fillRedis},
	{"queue flushed", 4, nil, flushQueue},
	{"failover", 12, several, failOver},
	{forgetful, 8, durable, failOverBehind},
	{"Sentinel killed", 4, several, killSentinel},

	{"preempted by hand", 4, nil, preemptByHand},
	{"machine taken", 14, onGround, takeMachine(0)},
	{"machine taken with notice", 8, onGround, takeMachine(3 * time.Second)},
	{"machine dies", 6, onGround, killMachine},
	{"local zone lost", 2, onGround, loseGround},
}

// ofTheSky are those of the machines of a cloud.
func ofTheSky() []fault {
	return []fault{
		{"cloud machine taken", 14, inSky, takeFromSky(0)},
		{"cloud machine taken with notice", 8, inSky, takeFromSky(3 * time.Second)},
		{"cloud zone lost", 3, inSky, loseSky},
		{"cloud zone without room", 5, inSky, emptySky},
		{"clock of a machine set", 4, inSky, stepClock},
	}
}

// ofCalls are those of a cloud's calls: each that its provider may meet.
func ofCalls() []fault {
	var all []fault
	for _, op := range slices.Sorted(maps.Keys(skyFaults)) {
		for _, kind := range skyFaults[op] {
			all = append(all, fault{op + ": " + kind, 2, inSky, calls(op, kind)})
		}
	}
	return all
}

func single(r *round) bool   { return r.ring == nil }
func several(r *round) bool  { return r.ring != nil }
func durable(r *round) bool  { return r.ring != nil && r.replicas > 0 }
func onGround(r *round) bool { return r.plays(local) }
func inSky(r *round) bool    { return r.plays(simul) }

// leaseAnd is a time that outlasts a lease.
func leaseAnd(more time.Duration) time.Duration { return times.Lease + more }

// hurt is an injury that goes on.
func (r *round) hurt(target, holds, stops string, lasts time.Duration, heal func() error) injury {
	return injury{
		Fault: history.Fault{ID: r.wounds.next(), At: now(), Target: target, Stops: stops, Detail: "for " + lasts.String()},
		holds: holds, lasts: lasts, heal: heal,
	}
}

// anyWorker takes a worker that nothing else is done to.
func (r *round) anyWorker(d dice) (*worker, error) {
	for _, i := range d.Perm(len(r.workers)) {
		if w := r.workers[i]; r.wounds.take(w.name) {
			return w, nil
		}
	}
	return nil, errTaken
}

func killWorker(r *round, d dice) (injury, error) {
	w, err := r.anyWorker(d)
	if err != nil {
		return injury{}, err
	}
	in := r.hurt(w.name, w.name, stopsOne, d.between(0, 3*time.Second), w.up)
	w.down()
	return in, nil
}

// freezeWorker stops a worker for longer than its leases last, and lets it go on as if nothing had been.
func freezeWorker(r *round, d dice) (injury, error) {
	w, err := r.anyWorker(d)
	if err != nil {
		return injury{}, err
	}
	in := r.hurt(w.name, w.name, stopsOne, d.between(times.Lease+500*time.Millisecond, leaseAnd(5*time.Second)), w.thaw)
	return in, w.freeze()
}

func restartWorker(r *round, d dice) (injury, error) {
	w, err := r.anyWorker(d)
	if err != nil {
		return injury{}, err
	}
	in := r.hurt(w.name, w.name, stopsOne, 0, func() error { w.leave(w.version); return w.up() })
	in.Detail = "TERM, and started again"
	return in, nil
}

// replaceWorkers gives the fleet another version, one worker after the other.
func replaceWorkers(r *round, _ dice) (injury, error) {
	if !r.wounds.take("fleet") {
		return injury{}, errTaken
	}
	in := r.hurt("fleet", "fleet", "", 0, func() error {
		for _, w := range r.workers {
			for !r.wounds.take(w.name) {
				if !pause(r.ctx, 100*time.Millisecond) {
					return nil
				}
			}
			w.leave(1 - w.version)
			err := w.up()
			r.wounds.give(w.name)
			if err != nil {
				return err
			}
		}
		return nil
	})
	in.Detail = "by another version, one worker after the other"
	return in, nil
}

// killAllWorkers kills the whole fleet at once.
func killAllWorkers(r *round, d dice) (injury, error) {
	var taken []*worker
	give := func() {
		for _, w := range taken {
			r.wounds.give(w.name)
		}
	}
	for _, w := range r.workers {
		if !r.wounds.take(w.name) {
			give()
			return injury{}, errTaken
		}
		taken = append(taken, w)
	}
	in := r.hurt("fleet", "", stopsAll, d.between(0, 4*time.Second), func() error {
		defer give()
		for _, w := range taken {
			if err := w.up(); err != nil {
				return err
			}
		}
		return nil
	})
	for _, w := range taken {
		w.down()
	}
	return in, nil
}

// onWorker makes a fault of the way of one worker to Redis.
func onWorker(what string, lo, hi time.Duration, do func(w way, d dice) (func() error, error)) func(r *round, d dice) (injury, error) {
	return func(r *round, d dice) (injury, error) {
		w, err := r.anyWorker(d)
		if err != nil {
			return injury{}, err
		}
		in := r.hurt(w.name, w.name, stopsOne, d.between(lo, hi), nil)
		in.Detail = what + " " + in.Detail
		in.heal, err = do(w.way, d)
		return in, err
	}
}

// cutClient does one of these to the clients.
func cutClient(r *round, d dice) (injury, error) {
	if !r.wounds.take("client") {
		return injury{}, errTaken
	}
	in := r.hurt("client", "client", "", d.between(500*time.Millisecond, 4*time.Second), nil)
	var err error
	switch d.IntN(4) {
	case 0:
		in.heal, err = r.client.way.cut()
		in.Detail = "refused " + in.Detail
	case 1:
		in.heal, err = r.client.way.deaf()
		in.Detail = "answers lost " + in.Detail
	case 2:
		in.heal, err = r.client.way.torn(d.IntN(2000))
		in.Detail = "torn " + in.Detail
	default:
		in.heal, err = r.client.way.slow(d.between(50*time.Millisecond, 900*time.Millisecond))
		in.Detail = "slow " + in.Detail
	}
	return in, err
}

func killRedis(r *round, d dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	in := r.hurt("redis", "redis", stopsAll, d.between(50*time.Millisecond, 6*time.Second), func() error { return r.single.start(background) })
	r.single.proc.kill()
	return in, nil
}

func freezeRedis(r *round, d dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	in := r.hurt("redis", "redis", stopsAll, d.between(500*time.Millisecond, leaseAnd(3*time.Second)), r.single.proc.thaw)
	return in, r.single.proc.freeze()
}

func fillRedis(r *round, d dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	in := r.hurt("redis", "redis", stopsAll, d.between(500*time.Millisecond, 6*time.Second), func() error { return r.single.roomy(background) })
	return in, r.single.full(r.ctx)
}

func flushQueue(r *round, _ dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	in := injury{Fault: history.Fault{Target: "redis", Stops: stopsTicks}, holds: "redis"}
	admin := r.single
	if r.ring != nil {
		m, err := r.ring.master(r.ctx)
		if err != nil {
			return in, err
		}
		admin = m
	}
	n, err := admin.flushQueue(r.ctx)
	in.Detail = fmt.Sprintf("%d keys", n)
	return in, err
}

// failOver kills the master; the Sentinels make the replica the new one. The old one comes back a little later and takes
// itself for the master, until it is told otherwise.
func failOver(r *round, d dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	old, err := r.ring.master(r.ctx)
	if err != nil {
		return injury{holds: "redis"}, err
	}
	in := r.hurt(old.name, "redis", stopsAll, 0, func() error { return r.ring.switched(background, old) })
	in.Detail = "killed"
	if err := r.ring.caughtUp(r.ctx, old); err != nil {
		in.heal = func() error { return goOn(background, old) }
		return in, err
	}
	return r.killMaster(in, old, d), nil
}

// failOverBehind does the same to a master whose replica has not heard of the last moment: what was written in it is lost.
func failOverBehind(r *round, d dice) (injury, error) {
	if !r.wounds.take("redis") {
		return injury{}, errTaken
	}
	old, err := r.ring.master(r.ctx)
	if err != nil {
		return injury{holds: "redis"}, err
	}
	in := r.hurt(old.name, "redis", stopsAll, 0, func() error { return r.ring.switched(background, old) })
	heal, err := way{r.ring.linkOf(old)}.deaf()
	if err != nil {
		in.heal = heal
		return in, err
	}
	pause(r.ctx, d.between(100*time.Millisecond, sentinelDown*2/3))
	mine, err := offset(r.ctx, old, "master_repl_offset")
	theirs, err2 := offset(r.ctx, r.ring.other(old), "slave_repl_offset")
	in = r.killMaster(in, old, d)
	in.Forgets, in.Detail = now(), fmt.Sprintf("killed, with %d bytes that its replica had not heard", mine-theirs)
	return in, errors.Join(err, err2, heal())
}

// killMaster kills a master, which comes back a little later.
func (r *round) killMaster(in injury, old *server, d dice) injury {
	old.proc.kill()
	back := d.between(0, 3*time.Second)
	in.after = func() error {
		pause(r.ctx, back)
		if err := old.start(background); err != nil {
			return err
		}
		return r.ring.settled(background)
	}
	return in
}

// preemptByHand has the fleet itself take the machine of a job, as a user does who tries out what happens then.
func preemptByHand(r *round, d dice) (injury, error) {
	live := r.book.with(running)
	if len(live) == 0 {
		return injury{}, errTaken
	}
	p := history.Preemption{At: now(), Job: pick(d, live), Notice: time.Duration(d.IntN(2)) * 2 * time.Second}
	args := []string{"preempt", strconv.FormatInt(p.Job, 10), "-o", "json"}
	if p.Notice > 0 {
		args = append(args, "--notice", p.Notice.String())
	}
	r.out.Add(p) // before it is asked for: an answer may get lost
	in := r.hurt(fmt.Sprintf("job %d", p.Job), "", "", 0, func() error {
		r.client.run(r.ctx, args...) // whatever it says: the job may have ended, or Redis be away
		return nil
	})
	in.Detail = "with a notice of " + p.Notice.String()
	return in, nil
}

func killSentinel(r *round, d dice) (injury, error) {
	i := 1 + d.IntN(sentinelCount-1) // the first one is asked by the suite itself
	name := fmt.Sprintf("sentinel-%d", i+1)
	if !r.wounds.take("redis") { // no failover can go wrong for want of votes
		return injury{}, errTaken
	}
	in := r.hurt(name, "redis", "", d.between(500*time.Millisecond, 4*time.Second), func() error {
		if err := r.ring.startWatch(i); err != nil {
			return err
		}
		return r.ring.settled(background)
	})
	r.ring.watch[i].kill()
	return in, nil
}

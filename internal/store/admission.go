package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Caps bound the fleet.
type Caps struct {
	Launches int // jobs between create and started at a time
	Live     int // jobs between their first launch and their end; 0 means as many as the clouds allow
}

const (
	// slotLife is how long a slot lasts that its holder does not renew, so that a crash never leaks one.
	slotLife = 2 * time.Minute
	// grantLife is how long a granted slot waits for its job to take it.
	grantLife = 15 * time.Second
	// grantTold is how long a job may take for that before it is woken once more: the answer with its grant may be lost.
	grantTold = 2 * time.Second
	// slotQuiet is for how long nobody has renewed a slot when it is looked whether its job still needs it.
	slotQuiet = 5 * time.Second
)

// Slot is a launch slot that a job holds.
type Slot struct {
	ID    job.ID
	Until job.Time // when it runs out, if nobody renews it
	Grant bool     // the job has not taken it yet
}

// Admission is what a look at the slots has found.
type Admission struct {
	Now     job.Time
	Granted []job.ID // whose turn it is: wake them
	Quiet   []Slot   // that nobody has renewed, or taken, for a while
}

// order sorts waiting jobs: higher priority first, then earlier submission. Exact in a double up to 2^41 jobs.
func order(priority int, id job.ID) int64 {
	return int64(job.MaxPriority-priority)<<41 + int64(id)
}

func (s *Store) admit(ctx context.Context, op string, caps Caps, args ...any) (got bool, found Admission, err error) {
	keys := []string{deploymentPrefix + "slots", deploymentPrefix + "waiting", deploymentPrefix + "admitted"}
	all := append([]any{op, caps.Launches, caps.Live, ms(slotLife), ms(grantLife), ms(grantTold)}, args...)
	reply, err := s.lua.admit.Run(ctx, s.rdb, keys, all...).Slice()
	if err != nil {
		return false, Admission{}, unavailable("admit", err)
	}
	found.Now = job.Time(asInt(reply[3]))
	granted, _ := reply[1].([]any)
	for _, v := range granted {
		found.Granted = append(found.Granted, job.ID(asInt(v)))
	}
	quiet, _ := reply[2].([]any)
	for i := 0; i+1 < len(quiet); i += 2 {
		slot := Slot{ID: job.ID(asInt(quiet[i])), Until: job.Time(asInt(quiet[i+1]))}
		slot.Grant = slot.Until <= found.Now.Add(grantLife)
		found.Quiet = append(found.Quiet, slot)
	}
	return asInt(reply[0]) == 1, found, nil
}

// Hold asks for a launch slot, or renews it. Without one the job stands in the queue and is to be woken when its turn
// has come. The ids are of other jobs whose turn it is now: wake them.
func (s *Store) Hold(ctx context.Context, caps Caps, id job.ID, priority int) (bool, []job.ID, error) {
	got, found, err := s.admit(ctx, "hold", caps, int64(id), order(priority, id))
	return got, found.Granted, err
}

// Join puts new jobs in the queue and returns those that got a slot at once.
func (s *Store) Join(ctx context.Context, caps Caps, priority int, ids []job.ID) ([]job.ID, error) {
	var granted []job.ID
	for from := 0; from < len(ids); from += 1000 {
		var args []any
		for _, id := range ids[from:min(from+1000, len(ids))] {
			args = append(args, int64(id), order(priority, id))
		}
		_, got, err := s.admit(ctx, "join", caps, args...)
		if err != nil {
			return granted, err
		}
		granted = append(granted, got.Granted...)
	}
	return granted, nil
}

// Release gives a slot back, or the place in the queue, and returns the jobs whose turn it is now: wake them.
func (s *Store) Release(ctx context.Context, caps Caps, id job.ID, ended bool) ([]job.ID, error) {
	flag := 0
	if ended {
		flag = 1
	}
	_, found, err := s.admit(ctx, "release", caps, int64(id), flag)
	return found.Granted, err
}

// TakeBack ends slots that their jobs have no use for, each unless somebody has renewed it since it was seen, and returns
// the jobs whose turn it is now: wake them.
func (s *Store) TakeBack(ctx context.Context, caps Caps, slots []Slot) ([]job.ID, error) {
	var args []any
	for _, slot := range slots {
		args = append(args, int64(slot.ID), int64(slot.Until))
	}
	_, found, err := s.admit(ctx, "back", caps, args...)
	return found.Granted, err
}

// AdmissionTick hands out slots that became free because their holders died, and tells whom to wake: also those that
// have not taken theirs, since nobody may have told them.
func (s *Store) AdmissionTick(ctx context.Context, caps Caps) (Admission, error) {
	_, found, err := s.admit(ctx, "tick", caps, ms(slotQuiet))
	return found, err
}

// StandInLine reports which of the jobs wait in the queue for a slot.
func (s *Store) StandInLine(ctx context.Context, ids []job.ID) (map[job.ID]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.FloatCmd, len(ids))
	for i, id := range ids {
		cmds[i] = pipe.ZScore(ctx, deploymentPrefix+"waiting", strconv.FormatInt(int64(id), 10))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	in := map[job.ID]bool{}
	for i, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, unavailable("look into the queue", err)
		}
		in[ids[i]] = c.Err() == nil
	}
	return in, nil
}

// Forgotten returns admitted jobs that are done, left over by a worker that died before it could release them.
func (s *Store) Forgotten(ctx context.Context) ([]job.ID, error) {
	members, err := s.rdb.ZRange(ctx, deploymentPrefix+"admitted", 0, -1).Result()
	if err != nil {
		return nil, unavailable("read the admitted jobs", err)
	}
	pipe := s.rdb.Pipeline()
	cmds := make([]*redis.StringCmd, len(members))
	for i, m := range members {
		id, _ := strconv.ParseInt(m, 10, 64)
		cmds[i] = pipe.HGet(ctx, s.keys.of(job.ID(id), "job"), "step")
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	var done []job.ID
	for i, c := range cmds {
		gone := errors.Is(c.Err(), redis.Nil)
		if c.Err() != nil && !gone {
			return nil, unavailable("read the admitted jobs", c.Err())
		}
		if gone || c.Val() == string(job.StepDone) {
			id, _ := strconv.ParseInt(members[i], 10, 64)
			done = append(done, job.ID(id))
		}
	}
	return done, nil
}

package tasks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/tasks"
)

// Ensure that Redis killed in the middle of a run and restarted from its append-only file is a pause: the job goes on,
// on the same machine (G1, G10).
//
// skypilot #9748: a short outage of the database failed jobs, or left machines that nobody knew.
func TestG10_RedisKilledAndRestarted(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	d.worker()
	id := d.submit(d.request(training))
	other := d.submit(d.request(`while [ ! -e "$SHARED/go" ]; do sleep 0.05; done`))
	d.running(id)
	d.running(other)
	d.redis.Kill9()
	d.redis.Restart()
	if rec := d.done(id); rec.Status() != job.Succeeded || rec.Recoveries() != 0 {
		t.Errorf("want SUCCEEDED without a recovery:\n%s", d.describe(id))
	}
	// Again, and this time Redis is away while the run ends.
	d.redis.Kill9()
	d.write("go")
	d.eventually("the user's code to end without Redis", func() bool { return len(d.userProcesses()) == 0 })
	d.redis.Restart()
	if rec := d.done(other); rec.Status() != job.Succeeded || rec.Recoveries() != 0 {
		t.Errorf("want SUCCEEDED without a recovery:\n%s", d.describe(other))
	}
	d.sound(id, other)
}

// Ensure that the queue is only transport: all of asynq's keys deleted in the middle of a run lose no job (G1).
func TestG1_QueueDeleted(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	running := d.submit(d.request(life))
	d.running(running)
	deleteQueue := func() {
		keys, err := d.client.Keys(context.Background(), "asynq:*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatalf("asynq's keys: %v, %v", keys, err)
		}
		if err := d.client.Del(context.Background(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	waiting := d.submit(d.request("true"))
	deleteQueue()
	d.done(waiting)
	d.takeMachine(running, 0)
	deleteQueue()
	for _, id := range []job.ID{running, waiting} {
		if rec := d.done(id); rec.Status() != job.Succeeded {
			t.Errorf("want SUCCEEDED:\n%s", d.describe(id))
		}
	}
	d.sound(running, waiting)
	deleteQueue()
	last := d.submit(d.request("sleep 1000"))
	d.running(last)
	d.cancel(last, 0)
	d.done(last)
	for _, queue := range []string{tasks.QueueWatch, tasks.QueueLaunch, tasks.QueueControl} { // what is asked for by name is found again
		d.eventually("asynq to know the queue "+queue, func() bool {
			return d.client.SIsMember(context.Background(), "asynq:queues", queue).Val()
		})
	}
}

// Ensure that a cancel is honoured at every step of a life: whichever point a worker is passing when the user
// cancels, also when it dies there, the job ends CANCELLED, unless it had ended before, and no machine is left (G4, G7).
//
// skypilot #10061: a cancel of a job that nobody drove was lost.
func TestG7_CancelAtEveryStep(t *testing.T) {
	points := tracePoints(t)
	seen := map[string]bool{}
	for i, point := range points {
		if seen[point] && point != "before commit" { // each kind of point once; each commit
			continue
		}
		seen[point] = true
		t.Run(fmt.Sprintf("%02d %s", i+1, point), func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t)
			victim := d.worker(func(c *workerConfig) { c.Crash = i + 1 })
			id := d.submit(d.request(life))
			taken := false
			d.eventually("the worker to die, or the job to be done", func() bool {
				if d.read(fmt.Sprintf("take.%d", id)) == "" && !taken && len(d.starts(id)) > 0 {
					taken = true
					for _, n := range d.living() {
						_ = d.cloud.Preempt(context.Background(), n.Region, n.ID, 0)
					}
				}
				rec, err := d.store.Load(context.Background(), id)
				return victim.out() || err == nil && rec.Step == job.StepDone
			})
			d.cancel(id, 0)
			d.worker()
			rec := d.done(id)
			if s := rec.Status(); s != job.Cancelled && s != job.Succeeded || s == job.Succeeded && len(d.starts(id)) < 2 {
				t.Errorf("want CANCELLED:\n%s", d.describe(id))
			}
			d.sound(id)
		})
	}
}

// Ensure a worker that is told to stop hands its jobs over at once: another one goes on, nothing is repeated.
func TestWorkerStopsGracefully(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	first := d.worker()
	id := d.submit(d.request(training))
	d.running(id)
	first.term()
	d.worker()
	rec := d.done(id)
	if rec.Status() != job.Succeeded || rec.Recoveries() != 0 || len(d.starts(id)) != 1 {
		t.Errorf("want SUCCEEDED in one attempt:\n%s", d.describe(id))
	}
	workers, err := d.store.Workers(context.Background())
	if err != nil || len(workers) != 1 {
		t.Errorf("a worker that has stopped is still in the list: %+v, %v", workers, err)
	}
	d.sound(id)
}

// Ensure a machine that ends while nobody looks is noticed from the provider's list, not by a slow probe (G6).
//
// skypilot #7117: a preemption was not noticed, and the job hung for as long as it would have run.
func TestG6_VanishedMachineWakesItsJob(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	id := d.submit(d.request(life))
	d.running(id)
	d.await(id, "a quiet job, looked at rarely", func(r job.Record) bool { return r.Look.Every >= time.Second.Milliseconds()*2 })
	d.takeMachine(id, 0)
	rec := d.await(id, "recovered", func(r job.Record) bool { return r.Recoveries() == 1 })
	if rec.Doubt == 0 {
		t.Error("no view has woken the job")
	}
	d.done(id)
	d.sound(id)
}

package tasks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a job which gets the id of one that a Redis has lost is another job: it has a machine of its own, its code runs
// there, its log has nothing of the other, and the machine of the lost one is ended, though both are attempt 1 of the same id
// (G3, G4, G11).
func TestG3_AnIDThatIsGivenAgainIsAnotherJob(t *testing.T) {
	t.Parallel()
	d := newDeployment(t)
	d.worker()
	d.done(d.submit(d.request("true"))) // chains, views and all else are there
	mark := d.redis.Mark()
	lost := d.submit(d.request(`echo lost >> "$SHARED/ran"; yes of the lost one | head -c 1000000; sleep 1000`))
	theirs := d.logOf(d.await(lost, "running", func(r job.Record) bool { return r.Look.Kept > 0 }).ID, 0, 1) // also in the archive
	d.redis.LoseSince(mark)
	var id job.ID
	d.eventually("Redis to take jobs again", func() bool {
		ids, err := d.store.Submit(t.Context(), store.Submission{Request: d.request(`echo new >> "$SHARED/ran"; echo of the new one`)})
		if err == nil {
			id = ids[0]
		}
		return err == nil
	})
	if id != lost {
		t.Fatalf("the job got the id %d, not that of the lost one, %d", id, lost)
	}
	rec := d.done(id)
	if rec.Status() != job.Succeeded {
		t.Errorf("want SUCCEEDED:\n%s", d.describe(id))
	}
	if ran := d.read("ran"); ran != "lost\nnew\n" {
		t.Errorf("what has run: %q", ran)
	}
	if got := d.archived(id, 0, 1); got != "of the new one\n" {
		t.Errorf("its log begins %.80q", got)
	}
	if ours := d.logOf(id, 0, 1); ours == theirs {
		t.Errorf("both logs have the name %s", ours)
	}
	d.eventually("the machine of the lost job to be ended", func() bool { return len(d.living()) == 0 })
	d.noProcesses()
}

// Ensure that a Redis which lost its last second costs a job nothing but time, wherever the job was: what is forgotten is seen
// again, its code runs once, and no machine is left. The worker that drove it dies with Redis, or goes on with what it knows
// (G1, G2, G3, G4).
func TestG1_RedisLosesItsLastSecond(t *testing.T) {
	for _, point := range []string{
		"before hold", "before create", "after create", "before start", "after start", "before save", "before terminate", "after terminate",
	} {
		for _, dies := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the worker dies %v", point, dies), func(t *testing.T) {
				t.Parallel()
				d := newDeployment(t)
				durable := func(c *workerConfig) { c.Durable = job.DefaultRules.Durable }
				d.worker(durable).term() // has founded what there is to found
				id := d.submit(d.request(`sleep 0.3; echo done`))
				lost := d.lastSecond()
				d.eventually("the job to be older than what is lost", func() bool { return lost.old() })
				victim := d.worker(durable, func(c *workerConfig) { c.Freeze = point })
				d.eventually("the worker to come to "+point, func() bool { lost.sample(); return victim.stopped() }, func() string { return d.describe(id) })
				d.redis.LoseSince(lost.mark())
				if dies {
					victim.kill9()
					d.worker(durable)
				} else {
					victim.thaw()
				}
				if rec := d.done(id); rec.Status() != job.Succeeded || rec.Tasks[0].Recoveries != 0 {
					t.Errorf("want SUCCEEDED without a recovery:\n%s", d.describe(id))
				}
				if n := len(d.starts(id)); n != 1 {
					t.Errorf("the code ran %d times:\n%s", n, d.describe(id))
				}
				if log := d.archived(id, 0, 1); log != "done\n" {
					t.Errorf("its log is %q", log)
				}
				d.sound(id)
			})
		}
	}
}

// lastSecond remembers how far the append-only file of a Redis had come when.
type lastSecond struct {
	d       *deployment
	began   time.Time
	samples []sample
}

type sample struct {
	at   time.Time
	size int64
}

func (d *deployment) lastSecond() *lastSecond {
	l := &lastSecond{d: d, began: time.Now()}
	l.sample()
	return l
}

func (l *lastSecond) sample() { l.samples = append(l.samples, sample{time.Now(), l.d.redis.Mark()}) }

// old reports whether what was there at first is not lost any more.
func (l *lastSecond) old() bool { return time.Since(l.began) > 1100*time.Millisecond }

// mark is what a second ago was written.
func (l *lastSecond) mark() int64 {
	size := l.samples[0].size
	for _, s := range l.samples {
		if time.Since(s.at) >= time.Second {
			size = s.size
		}
	}
	return size
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// book is what the load knows of the jobs that were accepted.
type book struct {
	mu   sync.Mutex
	ids  []int64
	seen map[int64]history.Seen

	asking sync.Mutex // one asks after the other: what is written down is in the order in which it was so
}

// add enters new jobs.
func (b *book) add(ids []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = append(b.ids, ids...)
}

// all are the jobs that were accepted.
func (b *book) all() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ids)
}

// note takes what a client said of a job, and reports whether it is news.
func (b *book) note(s history.Seen) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.seen[s.Job]
	old.At, old.Got, old.Via = s.At, s.Got, s.Via
	b.seen[s.Job] = s
	return old != s
}

// status is what was last seen of a job.
func (b *book) status(id int64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[id].Status
}

// since is what was last seen of a job, if it was asked for after a moment; "" if nobody has asked since.
func (b *book) since(id int64, moment history.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.seen[id]; s.At > moment {
		return s.Status
	}
	return ""
}

// with are the jobs that were last seen with a status.
func (b *book) with(status string) []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []int64
	for _, id := range b.ids {
		if b.seen[id].Status == status {
			all = append(all, id)
		}
	}
	return all
}

// open counts the jobs that are not known to have ended.
func (b *book) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, id := range b.ids {
		if !final(b.seen[id].Status) {
			n++
		}
	}
	return n
}

// final reports whether a status is one that never changes.
func final(status string) bool {
	return slices.Contains([]string{succeeded, failed, failSetup, noResource, cancelled, "FAILED_PRECHECKS", "FAILED_CONTROLLER"}, status)
}

// load submits jobs, cancels some, and asks for all of them, until ctx ends; what it has begun by then it brings to its
// end, for which rest is the limit.
func (r *round) load(ctx, rest context.Context) {
	var begun sync.WaitGroup
	begun.Go(func() { r.ask(ctx) })
	d := newDice(r.seed, "load")
	places := make(chan struct{}, 4) // clients at a time
	for n := 1; ctx.Err() == nil; n++ {
		o := throw(d, r.size.pace, r.providers, r.opts.kinds, n)
		wait := d.between(r.size.every/2, r.size.every*3/2)
		for r.book.open() > r.size.open && pause(ctx, 100*time.Millisecond) {
		}
		begun.Go(func() {
			places <- struct{}{}
			ids := r.submit(rest, &o)
			<-places
			for _, id := range ids {
				if o.cancel != nil {
					r.cancel(ctx, rest, id, *o.cancel)
				}
				if o.resume {
					r.resume(rest, id)
				}
			}
		})
		pause(ctx, wait)
	}
	begun.Wait()
}

// submit hands an order in until it is answered: a submission that got no answer is repeated with its key.
func (r *round) submit(ctx context.Context, o *order) []int64 {
	file := filepath.Join(r.dir, "jobs", o.Key+".yaml")
	if err := os.WriteFile(file, []byte(o.file(r.shared)), 0o600); err != nil {
		r.trouble(err)
		return nil
	}
	args := []string{"launch", "-d", "-o", "json", "--key", o.Key, "--num-jobs", strconv.Itoa(o.count)}
	if slices.ContainsFunc(o.tasks, func(t task) bool { return t.secret }) {
		args = append(args, "--secret", secretName)
	}
	args = append(args, file)
	o.At = now()
	for {
		o.Tries++
		answer := r.impatient(ctx, o.kill, args...)
		o.kill = 0
		switch {
		case answer.unsafe(): // as a person does who is told so
		case answer.exit == 0:
			var got struct{ IDs []int64 }
			if err := json.Unmarshal([]byte(answer.out), &got); err != nil || len(got.IDs) != o.count {
				r.trouble(fmt.Errorf("submit %s: want %d jobs, got %q (%w)", o.Key, o.count, answer.out, err))
				return nil
			}
			o.Got, o.Jobs = now(), got.IDs
			r.book.add(got.IDs)
			r.out.Add(o.Submission)
			return got.IDs
		case !answer.again():
			r.trouble(fmt.Errorf("submit %s: a job file that is right was refused: %s", o.Key, answer.errs))
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			r.trouble(fmt.Errorf("submit %s: no answer after %d tries: %s", o.Key, o.Tries, answer.errs))
			return nil
		}
	}
}

// impatient runs the client and kills it after a while, if that is not zero.
func (r *round) impatient(ctx context.Context, kill time.Duration, args ...string) answer {
	if kill > 0 {
		short, done := context.WithTimeout(ctx, kill)
		defer done()
		return r.client.run(short, args...)
	}
	return r.client.run(ctx, args...)
}

// cancel waits for its moment, which comes with the end of the load at the latest, and cancels a job until that is
// acknowledged.
func (r *round) cancel(ctx, rest context.Context, id int64, m moment) {
	pause(ctx, m.after)
	for m.status != "" && r.book.status(id) != m.status && !final(r.book.status(id)) {
		if !pause(ctx, 50*time.Millisecond) {
			break
		}
	}
	c := history.Cancel{At: now(), Job: id, Saw: r.book.status(id), Grace: m.grace}
	for {
		c.Tries++
		answer := r.client.run(rest, "cancel", strconv.FormatInt(id, 10), "--grace", m.grace.String(), "-o", "json")
		if answer.exit == 0 && !answer.unsafe() {
			var got struct{ IDs []int64 }
			if err := json.Unmarshal([]byte(answer.out), &got); err != nil {
				r.trouble(fmt.Errorf("cancel job %d: %q: %w", id, answer.out, err))
			}
			c.Got, c.Late = now(), len(got.IDs) == 0
			break
		}
		if !answer.again() && !answer.unsafe() {
			r.trouble(fmt.Errorf("cancel job %d: %s", id, answer.errs))
			break
		}
		if !pause(rest, 200*time.Millisecond) {
			break
		}
	}
	r.out.Add(c)
}

// lives is how often a job is let go again at most. One that has not succeeded then has ended for a reason that is not right.
const lives = 3

// resume lets a job go again as soon as it is told to have ended, until it has succeeded.
func (r *round) resume(ctx context.Context, id int64) {
	name := strconv.FormatInt(id, 10)
	asked := history.Time(0) // before this nobody can have seen how its present life ends
	for n := 0; ; {
		switch s := r.book.since(id, asked); {
		case s == succeeded || final(s) && n == lives:
			return
		case final(s):
			n++
			asked = r.goAgain(ctx, id, s)
		}
		if !pause(ctx, 500*time.Millisecond) {
			return
		}
		r.askShow(ctx, name)
	}
}

// goAgain asks for a second life until that is answered, and returns when it was.
func (r *round) goAgain(ctx context.Context, id int64, saw string) history.Time {
	again := history.Resume{At: now(), Job: id, Saw: saw}
	for {
		again.Tries++
		answer := r.client.run(ctx, "resume", strconv.FormatInt(id, 10), "-o", "json")
		switch {
		case answer.exit == 0 && !answer.unsafe():
			again.Got = now()
		case answer.failure().Code == "not_resumable":
			again.Got, again.Late = now(), true
		case !answer.again() && !answer.unsafe():
			r.trouble(fmt.Errorf("resume job %d: %s", id, answer.errs))
		case pause(ctx, 200*time.Millisecond):
			continue
		}
		r.out.Add(again)
		return now()
	}
}

// ask asks for jobs in all the ways there are.
func (r *round) ask(ctx context.Context) {
	d := newDice(r.seed, "ask")
	for ctx.Err() == nil {
		r.askQueue(ctx)
		if ids := r.book.all(); len(ids) > 0 {
			id := strconv.FormatInt(pick(d, ids), 10)
			switch d.IntN(4) {
			case 0:
				r.client.run(ctx, "logs", id)
			case 1:
				r.client.run(ctx, "events", id, "-o", "json")
			case 2:
				r.client.run(ctx, "wait", id, "--timeout", "1s", "-o", "json")
			default:
				r.askShow(ctx, id)
			}
		}
		pause(ctx, d.between(100*time.Millisecond, 500*time.Millisecond))
	}
}

// asked is what a client says of a job.
type asked struct {
	ID         int64
	Status     string
	Recoveries int
	Cause      struct{ Code string }
	Tasks      []struct{ Attempts, Restarts int }
}

func (r *round) askQueue(ctx context.Context) {
	r.book.asking.Lock()
	defer r.book.asking.Unlock()
	a := r.client.run(ctx, "queue", "-a", "--limit", "0", "-o", "json")
	var jobs []asked
	if a.exit != 0 || json.Unmarshal([]byte(a.out), &jobs) != nil {
		return
	}
	for _, j := range jobs {
		r.saw(a, "queue", j)
	}
}

func (r *round) askShow(ctx context.Context, id string) {
	r.book.asking.Lock()
	defer r.book.asking.Unlock()
	a := r.client.run(ctx, "show", id, "-o", "json")
	var j asked
	if a.exit == 0 && json.Unmarshal([]byte(a.out), &j) == nil {
		r.saw(a, "show", j)
	}
}

func (r *round) saw(a answer, via string, j asked) {
	s := history.Seen{At: a.at, Got: a.at.Add(a.took), Via: via, Job: j.ID, Status: j.Status, Cause: j.Cause.Code, Recoveries: j.Recoveries}
	for _, t := range j.Tasks {
		s.Attempts += t.Attempts
		s.Restarts += t.Restarts
	}
	if r.book.note(s) {
		r.out.Add(s)
	}
}

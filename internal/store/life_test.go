package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestLife ensures, for every interleaving of drivers that claim, beat, commit, stall, hand over and die, and of users
// that wake and cancel: a job has one effective driver (G2), is looked at again unless it is done (G1), keeps its cancel
// (G7), never loses a wake, and is counted and indexed as what it is.
func TestLife(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		rapid.Check(t, func(rt *rapid.T) {
			b.again(rt)
			l := &life{bench: b, known: map[job.ID]*known{}}
			l.submit(rt)
			rt.Repeat(map[string]func(*rapid.T){
				"submit": l.submit, "claim": l.claimAll, "begin": l.begin, "beat": l.beat, "commit": l.decide,
				"wake": l.wish, "redispatch": l.redispatch, "hand over": l.handOver, "wait": l.wait, "": l.check,
			})
			l.everyoneIsLookedAt(rt)
		})
	})
}

// life is the store and what must be true of it.
type life struct {
	*bench
	ids    []job.ID
	known  map[job.ID]*known
	claims []*Claimed // all that were ever made, of drivers that live, sleep or are gone
}

// known is what must be true of one job.
type known struct {
	driver     *Claimed // the one claim that can commit; nil if there is none
	held       bool     // its time has not passed
	woken      bool     // since it was claimed
	cancelled  string   // by whom first
	fence, seq int64
}

func (l *life) submit(t *rapid.T) {
	if len(l.ids) >= 4 {
		t.Skip("enough jobs")
	}
	req := typical(rapid.IntRange(1, 2).Draw(t, "tasks"))
	id := must[[]job.ID](t)(l.Submit(l.ctx, Submission{Request: req}))[0]
	l.ids = append(l.ids, id)
	l.known[id] = &known{}
}

func (l *life) anyJob(t *rapid.T) job.ID { return rapid.SampledFrom(l.ids).Draw(t, "job") }

func (l *life) anyClaim(t *rapid.T) *Claimed {
	if len(l.claims) == 0 {
		t.Skip("no claims yet")
	}
	return l.claims[len(l.claims)-1-rapid.IntRange(0, len(l.claims)-1).Draw(t, "claims ago")]
}

// drives notes that c is now the one driver of its job.
func (l *life) drives(t *rapid.T, c *Claimed) {
	k := l.known[c.ID]
	if c.Fence <= k.fence {
		t.Fatalf("the fence went from %d to %d with a claim", k.fence, c.Fence)
	}
	k.driver, k.held, k.woken, k.fence = c, true, false, c.Fence
	l.claims = append(l.claims, c)
}

func (l *life) claimAll(t *rapid.T) {
	for shard := range l.keys.shards {
		var jobs, acts []job.ID
		for _, id := range l.ids {
			if rec := l.load(t, id); l.keys.shardOf(id) == shard && l.isDue(t, id) {
				if rec.Step == job.StepWatch {
					jobs = append(jobs, id)
				} else {
					acts = append(acts, id)
				}
			}
		}
		due := must[Due](t)(l.Claim(l.ctx, shard, 200, 0, lease, grace))
		var gotJobs, gotActs []job.ID
		for i := range due.Jobs {
			gotJobs = append(gotJobs, due.Jobs[i].ID)
			l.drives(t, &due.Jobs[i])
		}
		for _, o := range due.Acts {
			gotActs = append(gotActs, o.ID)
		}
		slices.Sort(gotJobs)
		slices.Sort(gotActs)
		if !slices.Equal(jobs, gotJobs) || !slices.Equal(acts, gotActs) || len(due.Corrupt) > 0 {
			t.Fatalf("due were jobs %v and acts %v, claimed were %v, %v and %v", jobs, acts, gotJobs, gotActs, due.Corrupt)
		}
	}
}

func (l *life) begin(t *rapid.T) {
	id := l.anyJob(t)
	rec, k := l.load(t, id), l.known[id]
	n := rec.Dispatch - rapid.Int64Range(0, 1).Draw(t, "stale")
	c, err := l.Begin(l.ctx, id, rec.Step, n, rapid.StringMatching(`[a-z]{12}`).Draw(t, "token"), lease)
	may := rec.Step.Acts() && n == rec.Dispatch && rec.Ran != n && !k.held
	switch {
	case may != (err == nil), err != nil && !errors.Is(err, ErrStale):
		t.Fatalf("begin act %d of %d (ran %d, held %t): %v", n, rec.Dispatch, rec.Ran, k.held, err)
	case err == nil:
		l.drives(t, &c)
	}
}

func (l *life) beat(t *rapid.T) {
	c := l.anyClaim(t)
	k := l.known[c.ID]
	cancelled, err := l.Beat(l.ctx, c.ID, c.Fence, lease)
	if may := k.driver == c && k.held; may != (err == nil) || err != nil && !errors.Is(err, ErrStale) {
		t.Fatalf("beat with fence %d of %d, held %t: %v", c.Fence, k.fence, k.held, err)
	}
	if err == nil && cancelled != (k.cancelled != "") {
		t.Fatalf("the beat says cancelled: %t, the user said %q", cancelled, k.cancelled)
	}
}

func (l *life) decide(t *rapid.T) {
	c := l.anyClaim(t)
	k := l.known[c.ID]
	keep := rapid.Bool().Draw(t, "keep")
	next := l.someDecision(t, c)
	before, effective := l.load(t, c.ID), k.driver == c
	err := l.tryCommit(t, c, next, keep)
	after := l.load(t, c.ID)
	if !effective {
		if !errors.Is(err, ErrStale) {
			t.Fatalf("a driver that lost its job has committed: %v", err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("a refused commit has changed the record:\n%s", diff)
		}
		return
	}
	if err != nil {
		t.Fatalf("the driver was refused: %v", err)
	}
	k.seq++
	if keep {
		if got, want := c.Cancel != nil, k.cancelled != ""; got != want {
			t.Fatalf("the driver knows of a cancel: %t, there is one: %t", got, want)
		}
		return
	}
	switch {
	case next.Step == job.StepDone:
	case k.woken && !l.isDue(t, c.ID):
		t.Fatal("a wake during the claim was lost")
	case !k.woken && after.Due != next.Due:
		t.Fatalf("due at %d, wanted %d", after.Due, next.Due)
	}
	k.driver, k.held = nil, false
}

// someDecision is a decision as they come: any legal move, any step that goes with it.
func (l *life) someDecision(t *rapid.T, c *Claimed) job.Record {
	next := c.Clone()
	next.Due = c.Now.Add(rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "due"))
	cur := &next.Tasks[next.Cur]
	var to []job.Status
	for _, s := range job.Statuses {
		if job.CanMove(cur.Status, s) {
			to = append(to, s)
		}
	}
	switch {
	case next.Step == job.StepDone: // nothing leaves it
	case next.Ended():
		next.Step = rapid.SampledFrom([]job.Step{job.StepCleanup, job.StepDone}).Draw(t, "end")
	case cur.Status == job.Succeeded:
		next.Cur++
		next.Step = job.StepLaunch
	case rapid.Bool().Draw(t, "move"):
		cur.Status = rapid.SampledFrom(to).Draw(t, "to")
		if cur.Status.Terminal() && cur.Status != job.Succeeded {
			for i := next.Cur + 1; i < len(next.Tasks); i++ {
				next.Tasks[i].Status = job.Cancelled
			}
		}
		next.Events = []job.Event{{At: c.Now, Kind: "status", To: string(cur.Status)}}
		fallthrough
	default:
		next.Step = rapid.SampledFrom([]job.Step{job.StepWatch, job.StepWatch, job.StepLaunch, job.StepRecover, job.StepCleanup}).Draw(t, "step")
		next.Look.Every = rapid.Int64Range(0, 3).Draw(t, "every")
		next.Preempt, next.Doubt = nil, 0
	}
	if next.Step.Acts() && (next.Step != c.Step || rapid.Bool().Draw(t, "another act")) {
		next.Dispatch++
	}
	return next
}

// wish is anything that users and views do to a job.
func (l *life) wish(t *rapid.T) {
	id := l.anyJob(t)
	by := rapid.SampledFrom([]string{"ada", "grace\x1b[31m\xff"}).Draw(t, "by")
	name := typical(1).Name
	wishes := map[string]func() (Woken, error){
		"wake":    func() (Woken, error) { return l.Wake(l.ctx, id) },
		"cancel":  func() (Woken, error) { return l.Cancel(l.ctx, id, by, -1) },
		"preempt": func() (Woken, error) { return l.Preempt(l.ctx, id, time.Second) },
		"follow":  func() (Woken, error) { return l.Follow(l.ctx, id) },
		"doubt":   func() (Woken, error) { return l.Doubt(l.ctx, id) },
		"all": func() (Woken, error) {
			_, _, err := l.CancelWhere(l.ctx, rapid.SampledFrom([]*string{nil, &name}).Draw(t, "name"), by, 0)
			return Woken{Live: l.load(t, id).Step != job.StepDone, Known: true}, err
		},
	}
	what := rapid.SampledFrom([]string{"wake", "cancel", "preempt", "follow", "doubt", "all"}).Draw(t, "wish")
	w := must[Woken](t)(wishes[what]())
	if live := l.load(t, id).Step != job.StepDone; w.Live != live || !w.Known {
		t.Fatalf("%s found the job live: %t, known: %t; it is live: %t", what, w.Live, w.Known, live)
	}
	woken := []job.ID{id}
	if what == "all" {
		woken = l.ids
	}
	for _, id := range woken {
		k := l.known[id]
		rec := l.load(t, id)
		if rec.Step == job.StepDone || what == "all" && rec.Status().Terminal() { // what has ended is not cancelled with all others
			continue
		}
		k.woken = true
		if (what == "cancel" || what == "all") && k.cancelled == "" {
			k.cancelled = by
		}
		if !k.held && !l.isDue(t, id) {
			t.Fatalf("job %d was woken, nobody drives it, and it is not due", id)
		}
	}
}

func (l *life) redispatch(t *rapid.T) {
	id := l.anyJob(t)
	rec, k := l.load(t, id), l.known[id]
	behind := rapid.Int64Range(0, 2).Draw(t, "behind")
	n := must[int64](t)(l.Redispatch(l.ctx, Overdue{Act: Act{ID: id, Step: rec.Step, N: rec.Dispatch - behind}, Ran: rec.Ran}, grace))
	switch {
	case k.held || behind == 2 || !rec.Step.Acts():
		if n != 0 {
			t.Fatalf("act %d was made of a job that is held: %t, at step %s, from a read that was %d acts old", n, k.held, rec.Step, behind)
		}
	case behind == 1: // the same call again
		if n != rec.Dispatch {
			t.Fatalf("a repeated redispatch gave act %d, not %d", n, rec.Dispatch)
		}
	default:
		if n != rec.Dispatch+1 {
			t.Fatalf("redispatch gave act %d after %d", n, rec.Dispatch)
		}
		k.driver, k.fence = nil, k.fence+1
	}
}

func (l *life) handOver(t *rapid.T) {
	c := l.anyClaim(t)
	k := l.known[c.ID]
	before := l.load(t, c.ID)
	must[int64](t)(l.Handover(l.ctx, c))
	if k.driver != c {
		if diff := cmp.Diff(before, l.load(t, c.ID)); diff != "" {
			t.Fatalf("a driver that lost its job handed it over:\n%s", diff)
		}
		return
	}
	k.driver, k.held, k.fence = nil, false, k.fence+1
	if before.Step != job.StepDone && !l.isDue(t, c.ID) {
		t.Fatal("a job that was handed over is not due")
	}
}

// wait lets every claim run out.
func (l *life) wait(t *rapid.T) {
	l.pass(t, 2*lease)
	for _, k := range l.known {
		k.held = false
	}
}

// check ensures what holds after every step.
func (l *life) check(t *rapid.T) {
	for id, rec := range l.sound(t, l.ids) {
		k := l.known[id]
		if rec.Fence != k.fence || rec.Seq != k.seq {
			t.Fatalf("job %d: fence %d and seq %d, wanted %d and %d", id, rec.Fence, rec.Seq, k.fence, k.seq)
		}
		if (rec.Cancel != nil) != (k.cancelled != "") || rec.Cancel != nil && rec.Cancel.By[:3] != k.cancelled[:3] {
			t.Fatalf("job %d: cancel is %v, wanted the one by %q", id, rec.Cancel, k.cancelled)
		}
	}
}

// everyoneIsLookedAt ensures that, with every driver dead, each job that is not done comes up again.
func (l *life) everyoneIsLookedAt(t *rapid.T) {
	l.pass(t, 2*time.Hour)
	seen := map[job.ID]bool{}
	for shard := range l.keys.shards {
		due := must[Due](t)(l.Claim(l.ctx, shard, 200, 0, lease, grace))
		for _, c := range due.Jobs {
			seen[c.ID] = true
		}
		for _, o := range due.Acts {
			seen[o.ID] = true
		}
	}
	for _, id := range l.ids {
		if rec := l.load(t, id); (rec.Step != job.StepDone) != seen[id] {
			t.Fatalf("job %d at step %s is looked at: %t", id, rec.Step, seen[id])
		}
	}
}

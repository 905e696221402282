package store

import (
	"cmp"
	"slices"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestAdmissionOrder ensures that slots go to the higher priority first, then to the earlier submission.
func TestAdmissionOrder(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		one := Caps{Launches: 1}
		first := must[[]job.ID](t)(b.Join(b.ctx, one, 0, []job.ID{1, 2}))
		must[[]job.ID](t)(b.Join(b.ctx, one, job.MinPriority, []job.ID{3}))
		must[[]job.ID](t)(b.Join(b.ctx, one, job.MaxPriority, []job.ID{9}))
		must[[]job.ID](t)(b.Join(b.ctx, one, 0, []job.ID{1 << 40}))
		order := first
		for len(order) < 5 {
			order = append(order, must[[]job.ID](t)(b.Release(b.ctx, one, order[len(order)-1], true))...)
		}
		if diff := diff.Diff([]job.ID{1, 9, 2, 1 << 40, 3}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// TestAdmissionOfTheLiving ensures that with a cap on live jobs a job that recovers gets a slot before any that has
// not begun, however high their priority, and that those wait while the cap is reached.
func TestAdmissionOfTheLiving(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		caps := Caps{Launches: 1, Live: 2}
		if got := must[[]job.ID](t)(b.Join(b.ctx, caps, 0, []job.ID{1})); !slices.Equal(got, []job.ID{1}) {
			t.Fatalf("granted %v", got)
		}
		must[[]job.ID](t)(b.Join(b.ctx, caps, job.MaxPriority, []job.ID{2, 3, 4, 5, 6, 7, 8}))
		if got := must[[]job.ID](t)(b.Release(b.ctx, caps, 1, false)); !slices.Equal(got, []job.ID{2}) { // 1 runs
			t.Fatalf("granted %v", got)
		}
		if got, _, err := b.Hold(b.ctx, caps, 1, 0); got || err != nil { // 1 has lost its machine
			t.Fatalf("hold: %t, %v", got, err)
		}
		if got := must[[]job.ID](t)(b.Join(b.ctx, caps, 0, []job.ID{1})); len(got) != 0 { // a repeated submission
			t.Fatalf("granted %v", got)
		}
		if got := must[[]job.ID](t)(b.Release(b.ctx, caps, 2, false)); !slices.Equal(got, []job.ID{1}) {
			t.Fatalf("granted %v, not the job that recovers", got)
		}
		if got := must[[]job.ID](t)(b.Release(b.ctx, caps, 1, false)); len(got) != 0 {
			t.Fatalf("granted %v beyond the cap on live jobs", got)
		}
		if got := must[[]job.ID](t)(b.Release(b.ctx, caps, 2, true)); !slices.Equal(got, []job.ID{3}) {
			t.Fatalf("granted %v when a job had ended", got)
		}
	})
}

// TestLostGrantIsToldAgain ensures that a job whose slot nobody told it of, since the answer with the grant was lost, is
// named by the next ticks until it takes the slot: else the slot would stand empty until the grant runs out (G9).
func TestLostGrantIsToldAgain(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		caps := Caps{Launches: 2}
		must[[]job.ID](t)(b.Join(b.ctx, caps, 0, []job.ID{1, 2, 3})) // the answer is lost
		if got := must[Admission](t)(b.AdmissionTick(b.ctx, caps)).Granted; len(got) > 0 {
			t.Errorf("told of %v a moment after they were granted", got)
		}
		b.pass(t, 2*grantTold)
		if got, _, err := b.Hold(b.ctx, caps, 2, 0); !got || err != nil {
			t.Fatalf("hold: %t, %v", got, err)
		}
		for range 2 {
			if got := must[Admission](t)(b.AdmissionTick(b.ctx, caps)).Granted; !slices.Equal(got, []job.ID{1}) {
				t.Errorf("told of %v, want the one that has not taken its slot", got)
			}
		}
	})
}

// TestG9_UntouchedSlotsAreTakenBack ensures that a slot which nobody has renewed or taken for a while is found, that it is
// the next job's once it is taken back, and that one is left alone which was renewed after it was found.
func TestG9_UntouchedSlotsAreTakenBack(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		caps := Caps{Launches: 3}
		tick := func() []Slot { return must[Admission](t)(b.AdmissionTick(b.ctx, caps)).Quiet }
		ids := func(slots []Slot) (granted, taken []job.ID) {
			for _, s := range slots {
				if s.Grant {
					granted = append(granted, s.ID)
				} else {
					taken = append(taken, s.ID)
				}
			}
			return granted, taken
		}
		hold := func(id job.ID) {
			t.Helper()
			if got, _, err := b.Hold(b.ctx, caps, id, 0); !got || err != nil {
				t.Fatalf("hold %d: %t, %v", id, got, err)
			}
		}
		must[[]job.ID](t)(b.Join(b.ctx, caps, 0, []job.ID{1, 2, 3, 4, 5}))
		hold(1)
		hold(2)
		if got := tick(); len(got) > 0 {
			t.Errorf("found %v a moment after they were granted and taken", got)
		}
		b.pass(t, slotQuiet+time.Second)
		found := tick()
		if granted, taken := ids(found); !slices.Equal(granted, []job.ID{3}) || !slices.Equal(taken, []job.ID{1, 2}) {
			t.Fatalf("found the grants of %v and the slots of %v", granted, taken)
		}
		hold(2)
		for range 2 { // the answer of the first may be lost
			must[[]job.ID](t)(b.TakeBack(b.ctx, caps, found))
		}
		held := must[[]string](t)(b.rdb.ZRange(b.ctx, deploymentPrefix+"slots", 0, -1).Result())
		slices.Sort(held)
		if !slices.Equal(held, []string{"2", "4", "5"}) {
			t.Errorf("the slots are held by %v", held)
		}
	})
}

// TestForgotten ensures that jobs that ended without a release are found, so that they do not count as live for ever.
func TestForgotten(t *testing.T) {
	b := newBench(t, 2)
	c, next := b.ending(t)
	next.Step = job.StepDone
	b.commit(t, &c, next, false)
	alive := b.watched(t)
	must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 9, Live: 9}, 0, []job.ID{c.ID, alive, 77}))
	got := must[[]job.ID](t)(b.Forgotten(b.ctx))
	slices.Sort(got)
	if !slices.Equal(got, []job.ID{c.ID, 77}) {
		t.Errorf("forgotten are %v", got)
	}
	must[[]job.ID](t)(b.Join(b.ctx, Caps{Launches: 1}, 0, []job.ID{alive, 78}))
	in := must[map[job.ID]bool](t)(b.StandInLine(b.ctx, []job.ID{alive, 78}))
	if in[alive] || !in[78] {
		t.Errorf("in line: %v", in)
	}
}

// TestAdmission ensures, for every sequence of joins, holds, releases and deaths, that the script does what a plain list
// does, that no cap is exceeded, and that no slot is lost.
//
// hatchet #4494: a slot leaked with a crash. kueue #14811, #10407: what was evicted kept its quota.
func TestAdmission(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		rapid.Check(t, func(rt *rapid.T) {
			b.again(rt)
			q := &queue{bench: b, caps: Caps{
				Launches: rapid.IntRange(1, 3).Draw(rt, "launches"), Live: rapid.IntRange(0, 4).Draw(rt, "live"),
			}, slots: map[job.ID]int{}, admitted: map[job.ID]bool{}}
			rt.Repeat(map[string]func(*rapid.T){
				"join": q.join, "hold": q.hold, "release": q.release, "die": q.die, "": q.check,
			})
		})
	})
}

// queue is the plain form of the admission.
type queue struct {
	*bench
	caps     Caps
	slots    map[job.ID]int // job → time left
	waiting  []waiter
	admitted map[job.ID]bool
}

type waiter struct {
	id       job.ID
	living   bool
	priority int
}

// Lives of slots in units of fifteen seconds.
const granted, taken = 1, 8

func (q *queue) stand(w waiter) {
	q.leave(w.id)
	q.waiting = append(q.waiting, w)
	slices.SortFunc(q.waiting, func(a, b waiter) int {
		living := func(w waiter) int {
			if w.living {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(living(a), living(b)), cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
	})
}

func (q *queue) leave(id job.ID) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiter) bool { return w.id == id })
}

// grant hands out what is free and returns to whom.
func (q *queue) grant() []job.ID {
	var out []job.ID
	for _, w := range slices.Clone(q.waiting) {
		if len(q.slots) >= q.caps.Launches {
			break
		}
		if q.caps.Live > 0 && !q.admitted[w.id] {
			if len(q.admitted) >= q.caps.Live {
				continue
			}
			q.admitted[w.id] = true
		}
		q.leave(w.id)
		q.slots[w.id] = granted
		out = append(out, w.id)
	}
	return out
}

var ids = rapid.Custom(func(t *rapid.T) job.ID { return job.ID(rapid.IntRange(1, 8).Draw(t, "id")) })

// priority is fixed for a job.
func priority(id job.ID) int { return int(id%3) * 500 }

func (q *queue) join(t *rapid.T) {
	id := ids.Draw(t, "job")
	if _, has := q.slots[id]; !has && !q.admitted[id] {
		q.stand(waiter{id, false, priority(id)})
	}
	q.same(t, q.grant(), must[[]job.ID](t)(q.Join(q.ctx, q.caps, priority(id), []job.ID{id})))
}

func (q *queue) hold(t *rapid.T) {
	id := ids.Draw(t, "job")
	got, others, err := q.Hold(q.ctx, q.caps, id, priority(id))
	q.must(t, err)
	var want []job.ID
	if _, has := q.slots[id]; !has {
		q.stand(waiter{id, q.caps.Live > 0 && q.admitted[id], priority(id)})
		want = slices.DeleteFunc(q.grant(), func(g job.ID) bool { return g == id })
	}
	_, has := q.slots[id]
	if has {
		q.slots[id] = taken
	}
	if got != has {
		t.Fatalf("job %d holds a slot: %t, wanted %t", id, got, has)
	}
	q.same(t, want, others)
}

func (q *queue) release(t *rapid.T) {
	id, ended := ids.Draw(t, "job"), rapid.Bool().Draw(t, "ended")
	delete(q.slots, id)
	q.leave(id)
	if ended {
		delete(q.admitted, id)
	}
	q.same(t, q.grant(), must[[]job.ID](t)(q.Release(q.ctx, q.caps, id, ended)))
}

// die lets time pass in which nobody renews anything, and then the fleet's tick look after it.
func (q *queue) die(t *rapid.T) {
	n := rapid.SampledFrom([]int{granted, taken}).Draw(t, "time")
	q.pass(t, 2*grantLife*time.Duration(n))
	for id := range q.slots {
		if q.slots[id] -= 2 * n; q.slots[id] <= 0 {
			delete(q.slots, id)
		}
	}
	q.same(t, q.grant(), must[Admission](t)(q.AdmissionTick(q.ctx, q.caps)).Granted)
}

func (q *queue) same(t *rapid.T, want, got []job.ID) {
	if !slices.Equal(want, got) {
		t.Fatalf("granted %v, wanted %v", got, want)
	}
}

func (q *queue) check(t *rapid.T) {
	slots := must[int64](t)(q.rdb.ZCard(q.ctx, deploymentPrefix+"slots").Result())
	live := must[int64](t)(q.rdb.ZCard(q.ctx, deploymentPrefix+"admitted").Result())
	if int(slots) > q.caps.Launches || q.caps.Live > 0 && int(live) > q.caps.Live {
		t.Fatalf("%d slots of %d, %d live jobs of %d", slots, q.caps.Launches, live, q.caps.Live)
	}
	line := must[[]string](t)(q.rdb.ZRange(q.ctx, deploymentPrefix+"waiting", 0, -1).Result())
	if len(line) != len(q.waiting) {
		t.Fatalf("in line are %v, wanted %v", line, q.waiting)
	}
}

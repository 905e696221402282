package cloudtest

import (
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
)

// preempter skips the test if the provider cannot take its machines away.
func (w *world) preempter() cloud.Preempter {
	w.Helper()
	pre, ok := w.p.(cloud.Preempter)
	if !ok {
		w.Skip("the provider cannot take its machines away")
	}
	return pre
}

// waitPreempted waits until a machine was taken, and returns the states that it showed on the way.
func (w *world) waitPreempted(n cloud.Node) []cloud.State {
	w.Helper()
	var seen []cloud.State
	w.eventually("the machine was taken", func() bool {
		found := w.list(w.p, cloud.Match{Deployment: deployment, NodeID: n.ID})
		if len(found) == 0 {
			w.Fatal("a machine that was taken is not listed any more, so it looks as if it had never been")
		}
		now := found[0]
		seen = append(seen, now.State)
		if now.State == cloud.Preempted && now.Reason == "" {
			w.Fatal("a preempted machine gives no reason")
		}
		return now.State == cloud.Preempted
	})
	if w.alive(n) != 0 {
		w.Errorf("%d processes run on a machine that was taken", w.alive(n))
	}
	return seen
}

// A machine that is taken without notice is gone with all that runs on it, and is listed as taken, with a reason.
func preemptWithoutNotice(w *world) {
	pre := w.preempter()
	r := w.attempt(1, 1)
	w.create(w.p, r)
	n := w.waitRunning(matchOf(r), 1)[0]
	if err := pre.Preempt(w.ctx(), w.offer.Region, n.ID, 0); err != nil {
		w.Fatalf("preempt: %v", err)
	}
	w.waitPreempted(n)
	w.terminate(w.p, matchOf(r)) // closing an attempt does not care how its machines ended
	w.waitEnded(matchOf(r), n)
}

// A machine that is taken with notice is Stopping, and still runs, until the notice is over.
func preemptWithNotice(w *world) {
	pre := w.preempter()
	const notice = 400 * time.Millisecond
	r := w.attempt(1, 1)
	w.create(w.p, r)
	n := w.waitRunning(matchOf(r), 1)[0]
	began := time.Now()
	if err := pre.Preempt(w.ctx(), w.offer.Region, n.ID, notice); err != nil {
		w.Fatalf("preempt: %v", err)
	}
	if w.account.Alive != nil && w.alive(n) == 0 && time.Since(began) < notice {
		w.Error("nothing runs on a machine that is only to be taken")
	}
	seen := w.waitPreempted(n)
	if took := time.Since(began); took < notice {
		w.Errorf("it was taken after %s, before its notice of %s was over", took, notice)
	}
	for _, s := range seen {
		if s == cloud.Running && w.p.Settle() == 0 {
			w.Errorf("it was seen as running after its notice: %v", seen)
			break
		}
	}
}

// Taking one machine of a gang leaves the others.
func preemptOneOfAGang(w *world) {
	pre := w.preempter()
	r := w.gang(1, 2)
	w.create(w.p, r)
	nodes := w.waitRunning(matchOf(r), 2)
	if err := pre.Preempt(w.ctx(), w.offer.Region, nodes[1].ID, 0); err != nil {
		w.Fatalf("preempt: %v", err)
	}
	w.waitPreempted(nodes[1])
	rest := w.list(w.p, cloud.Match{Deployment: deployment, NodeID: nodes[0].ID})
	if len(rest) != 1 || rest[0].State != cloud.Running {
		w.Errorf("the rest of the gang: %+v", rest)
	}
}

// A token whose machine was taken does not get another one: that is a matter of another attempt.
func preemptedIsNotMadeAgain(w *world) {
	pre := w.preempter()
	r := w.attempt(1, 1)
	w.create(w.p, r)
	n := w.waitRunning(matchOf(r), 1)[0]
	if err := pre.Preempt(w.ctx(), w.offer.Region, n.ID, 0); err != nil {
		w.Fatalf("preempt: %v", err)
	}
	w.waitPreempted(n)
	w.makesNothing(r)
	if got := w.list(w.p, matchOf(r)); len(got) != 1 || got[0].State != cloud.Preempted {
		w.Errorf("the machine that was taken is now %+v", got)
	}
}

// There must be a machine to take.
func preemptNothing(w *world) {
	pre := w.preempter()
	for _, id := range []string{"no-such-machine", "", "../x"} {
		if err := pre.Preempt(w.ctx(), w.offer.Region, id, 0); err == nil {
			w.Errorf("machine %q was taken", id)
		}
	}
}

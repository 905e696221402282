package cloudtest

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// A listed machine says whose it is and what it is, in every state.
func listTellsIdentity(w *world) {
	r := w.attemptOf(deployment, 7, 2, 3)
	r.Nodes = 2
	made := w.create(w.p, r)
	check := func(when string) {
		w.Helper()
		nodes := w.list(w.p, matchOf(r))
		for _, n := range nodes {
			want := cloud.Node{
				Identity: r.Identity, Provider: w.p.Name(), Region: r.Offer.Region, Zone: r.Offer.Zone, Type: r.Offer.Type,
				Spot: r.Offer.Spot, Price: r.Offer.Price,
			}
			if diff := cmp.Diff(want, n, cmpopts.IgnoreFields(cloud.Node{}, "ID", "Rank", "State", "Reason", "Address", "CreatedAt")); diff != "" {
				w.Errorf("a machine that is %s (-want +got):\n%s", when, diff)
			}
			if n.CreatedAt.IsZero() {
				w.Errorf("a machine that is %s does not say when it was made", when)
			}
		}
	}
	check("booting")
	nodes := w.waitRunning(matchOf(r), 2)
	if diff := cmp.Diff(ids(made), ids(nodes)); diff != "" {
		w.Errorf("machines made and listed (-made +listed):\n%s", diff)
	}
	check("running")
	w.terminate(w.p, matchOf(r))
	w.waitEnded(matchOf(r), made...)
	check("terminated")
}

// Once a call has settled, no list shows the state before it.
func listIsSettled(w *world) {
	const looks = 8
	r := w.gang(1, 2)
	w.create(w.p, r)
	w.settled()
	for range looks {
		if n := len(w.list(w.p, matchOf(r))); n != 2 {
			w.Errorf("%d machines are listed after they were made, want 2", n)
		}
	}
	w.waitRunning(matchOf(r), 2)
	w.terminate(w.p, matchOf(r))
	w.settled()
	for range looks {
		if n := running(w.list(w.p, matchOf(r))); n != 0 {
			w.Errorf("%d machines are listed as running after they were told to end", n)
		}
	}
}

// A region without machines is an empty list.
func listOfAnEmptyRegion(w *world) {
	nodes, err := w.p.List(w.ctx(), w.offer.Region)
	if err != nil || len(nodes) != 0 {
		w.Errorf("%d machines and error %v, want none", len(nodes), err)
	}
}

// A region that can not exist holds nothing: that is said with an empty list or refused, but never causes a panic or a wait.
func listOfUnknownRegion(w *world) {
	for _, region := range []string{"no-such-region", "", "../..", "a/b"} {
		nodes, err := w.p.List(w.ctx(), region)
		if len(nodes) != 0 {
			w.Errorf("region %q holds %d machines", region, len(nodes))
		}
		if err != nil && w.ctx().Err() != nil {
			w.Errorf("region %q: %v", region, err)
		}
	}
}

// Two deployments in one account and one region, with the same job, task and attempt, do not see or touch each other.
func deploymentsDoNotMeet(w *world) {
	other := w.account.Open(neighbour)
	ours, theirs := w.attempt(1, 1), w.attemptOf(neighbour, 1, 0, 1)
	made := w.create(w.p, ours)
	w.create(other, theirs)
	w.waitRunning(matchOf(ours), 1)
	w.eventually("the neighbour's machine runs", func() bool { return running(w.list(other, matchOf(theirs))) == 1 })
	w.settled()
	for _, p := range []cloud.Provider{w.p, other} {
		all, err := p.List(w.ctx(), w.offer.Region)
		if err != nil {
			w.Fatalf("list: %v", err)
		}
		if len(all) != 1 {
			w.Errorf("%d machines are listed, want the one of this deployment: %+v", len(all), all)
		}
	}
	// The neighbour tries its hand on ours, by identity and by name. It may be refused, but must not succeed.
	_ = other.Terminate(w.ctx(), w.offer.Region, matchOf(ours))
	_ = other.Terminate(w.ctx(), w.offer.Region, cloud.Match{Deployment: neighbour, NodeID: made[0].ID})
	_ = other.Terminate(w.ctx(), w.offer.Region, cloud.Match{NodeID: made[0].ID})
	_ = other.Terminate(w.ctx(), w.offer.Region, cloud.Match{})
	if pre, ok := other.(cloud.Preempter); ok {
		if err := pre.Preempt(w.ctx(), w.offer.Region, made[0].ID, 0); err == nil {
			w.Error("a deployment took another one's machine")
		}
	}
	w.terminate(other, matchOf(theirs))
	w.eventually("the neighbour's machine has ended", func() bool { return running(w.list(other, matchOf(theirs))) == 0 })
	w.settled()
	if n := running(w.list(w.p, matchOf(ours))); n != 1 {
		w.Errorf("%d of our machines run after the neighbour ended its own", n)
	}
	if _, err := w.p.Create(w.ctx(), w.attempt(1, 2)); cloud.ClassOf(err) == job.Invalid {
		w.Errorf("our next attempt is refused: %v", err)
	}
}

// Two jobs with the same id, of which the store has lost one, have machines of their own, and none is ended with the other's:
// also an attempt that was ended for one can be made for the other.
func jobsOfOneIDDoNotMeet(w *world) {
	lost, ours := w.attempt(1, 1), w.attempt(1, 1)
	ours.Nonce = "a4c90b12ffe3"
	ours.Token = job.Token(deployment, 1, ours.Nonce, 0, 1)
	first := w.create(w.p, lost)
	w.waitRunning(matchOf(lost), 1)
	w.terminate(w.p, matchOf(ours))
	w.settled()
	if n := running(w.list(w.p, matchOf(lost))); n != 1 {
		w.Errorf("%d machines of the one job run after the other one's end, want 1", n)
	}
	ours.Attempt, ours.Token = 2, job.Token(deployment, 1, ours.Nonce, 0, 2)
	lost.Attempt = 2
	w.terminate(w.p, matchOf(lost))
	second := w.create(w.p, ours)
	if first[0].ID == second[0].ID {
		w.Errorf("two jobs got the one machine %s", first[0].ID)
	}
	w.waitRunning(matchOf(ours), 1)
	lost.Attempt = 1
	w.terminate(w.p, matchOf(lost))
	w.waitEnded(matchOf(lost), first...)
	if n := running(w.list(w.p, matchOf(ours))); n != 1 {
		w.Errorf("%d machines of the job run, want 1", n)
	}
}

// Package cloudtest is what must hold for every [cloud.Provider], as tests. A new provider starts with
//
//	func TestConformance(t *testing.T) {
//		cloudtest.Run(t, cloudtest.Subject{Account: ...})
//	}
//
// and is done when that passes. What a provider cannot do is left out of its [Account], and the tests of
// that are then skipped.
//
// The suite only knows what the interface promises: an answer may be as late as [cloud.Provider.Settle] and its
// Subject.Wait say, so it waits for what must come about, and for what must not happen it looks once more after that.
package cloudtest

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Subject is a provider under test.
type Subject struct {
	// Account makes an account without machines, for one test. It registers its own clean-up.
	Account func(t *testing.T) Account
	// Wait bounds the wait for something that must come about, such as a boot. 0 means 20 s.
	Wait time.Duration
	// Parallel runs the tests side by side, each in its account.
	Parallel bool
	// Poll is the pause between looks at it. 0 means 10 ms.
	Poll time.Duration
}

// Account is where machines are made, by any number of workers and deployments.
type Account struct {
	// Open returns a provider as one more worker of that deployment has it: two of them share the account and nothing
	// else.
	Open func(deployment string) cloud.Provider
	// Full returns an offer of which there is none now, and the scope that the refusal should have; nil if that cannot
	// be brought about.
	Full func() (o job.Offer, scope string)
	// Break makes the calls of a provider fail for a reason that it cannot classify; nil if that cannot be brought about.
	Break func(cloud.Provider)
	// Alive counts what really runs on a machine, without asking the provider; nil if that cannot be seen.
	Alive func(cloud.Node) int
	// Fits is how many machines of one offer there must be room for. 0 means 4.
	Fits int
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	s.Wait = cmp.Or(s.Wait, 20*time.Second)
	s.Poll = cmp.Or(s.Poll, 10*time.Millisecond)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if s.Parallel {
				t.Parallel()
			}
			a := s.Account(t)
			a.Fits = cmp.Or(a.Fits, 4)
			w := &world{T: t, subject: s, account: a, p: a.Open(deployment)}
			w.offer = w.anyOffer(w.p)
			c.run(w)
		})
	}
}

// cases are the behaviours, each with the sentence that it ensures at its function.
var cases = []struct {
	name string
	run  func(*world)
}{
	{"OffersAreSane", offersAreSane},
	{"OffersAreFoundByTheirWords", offersAreFoundByTheirWords},
	{"SupportIsTotal", supportIsTotal},
	{"RegionsCoverOffers", regionsCoverOffers},

	{"CreateMakesMachines", createMakesMachines},
	{"CreateIsIdempotentByToken", createIsIdempotentByToken},
	{"CreateOnceByManyAtATime", createOnceByManyAtATime},
	{"CreateOnceByTwoWorkers", createOnceByTwoWorkers},
	{"CreateAfterALostAnswer", createAfterALostAnswer},
	{"CreateTwoTokensTwoMachines", createTwoTokensTwoMachines},
	{"CreateAllNodesOrNone", createAllNodesOrNone},
	{"CreateWithoutCapacity", createWithoutCapacity},
	{"CreateOfNonsense", createOfNonsense},
	{"CreateWithUntrustedName", createWithUntrustedName},

	{"ListTellsIdentity", listTellsIdentity},
	{"ListIsSettled", listIsSettled},
	{"ListOfAnEmptyRegion", listOfAnEmptyRegion},
	{"ListOfUnknownRegion", listOfUnknownRegion},
	{"DeploymentsDoNotMeet", deploymentsDoNotMeet},
	{"JobsOfOneIDDoNotMeet", jobsOfOneIDDoNotMeet},

	{"TerminateByAttempt", terminateByAttempt},
	{"TerminateByJob", terminateByJob},
	{"TerminateByNode", terminateByNode},
	{"TerminateNothing", terminateNothing},
	{"TerminateTwice", terminateTwice},
	{"TerminateAtATime", terminateAtATime},
	{"TerminateWhileBooting", terminateWhileBooting},
	{"CreateAfterTerminate", createAfterTerminate},
	{"CreateAfterTerminateOfNothing", createAfterTerminateOfNothing},
	{"CreateAgainstTerminate", createAgainstTerminate},

	{"PreemptWithoutNotice", preemptWithoutNotice},
	{"PreemptWithNotice", preemptWithNotice},
	{"PreemptOneOfAGang", preemptOneOfAGang},
	{"PreemptedIsNotMadeAgain", preemptedIsNotMadeAgain},
	{"PreemptNothing", preemptNothing},

	{"CancelledCallsReturn", cancelledCallsReturn},
	{"UnknownErrorsAreTransient", unknownErrorsAreTransient},
}

// The deployments of the tests. Their names begin alike, to find those who compare too little.
const (
	deployment = "dep"
	neighbour  = "dep-2"
	nonce      = "5f1e0c77a9d2" // of all jobs
)

// world is one test with its account.
type world struct {
	*testing.T
	subject Subject
	account Account
	p       cloud.Provider
	offer   job.Offer
}

// attempt is a request for one machine of the first task of a job.
func (w *world) attempt(id job.ID, number int) cloud.Request {
	return w.attemptOf(deployment, id, 0, number)
}

func (w *world) attemptOf(deployment string, id job.ID, task, number int) cloud.Request {
	return cloud.Request{
		Identity: cloud.Identity{Deployment: deployment, Job: id, Nonce: nonce, Task: task, Attempt: number},
		Token:    job.Token(deployment, id, nonce, task, number),
		Offer:    w.offer, Nodes: 1, Name: fmt.Sprintf("job-%d", id),
	}
}

// gang is a request for n machines.
func (w *world) gang(id job.ID, n int) cloud.Request {
	r := w.attempt(id, 1)
	r.Nodes = n
	return r
}

// matchOf selects the machines of a request.
func matchOf(r cloud.Request) cloud.Match {
	return cloud.Match{Deployment: r.Deployment, Job: r.Job, Nonce: r.Nonce, Task: r.Task, Attempt: r.Attempt}
}

// ctx bounds a call: none of them waits for a machine.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), w.subject.Wait)
	w.Cleanup(cancel)
	return ctx
}

// anyOffer is the cheapest offer of a provider, in whichever market.
func (w *world) anyOffer(p cloud.Provider) job.Offer {
	w.Helper()
	offers, err := p.Offers(w.ctx())
	if err != nil {
		w.Fatalf("offers: %v", err)
	}
	if len(offers) == 0 {
		w.Fatal("there are no offers")
	}
	best := offers[0]
	for _, o := range offers {
		if o.Price < best.Price || (o.Price == best.Price && o.Key() < best.Key()) {
			best = o
		}
	}
	return best
}

func (w *world) create(p cloud.Provider, r cloud.Request) []cloud.Node {
	w.Helper()
	nodes, err := p.Create(w.ctx(), r)
	if err != nil {
		w.Fatalf("create: %v", err)
	}
	return nodes
}

func (w *world) terminate(p cloud.Provider, m cloud.Match) {
	w.Helper()
	if err := p.Terminate(w.ctx(), w.offer.Region, m); err != nil {
		w.Fatalf("terminate %+v: %v", m, err)
	}
}

// list returns the machines of a provider in the region of the test that m selects.
func (w *world) list(p cloud.Provider, m cloud.Match) []cloud.Node {
	w.Helper()
	all, err := p.List(w.ctx(), w.offer.Region)
	if err != nil {
		w.Fatalf("list: %v", err)
	}
	var nodes []cloud.Node
	for _, n := range all {
		if m.Selects(n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// eventually waits until ok, or fails the test.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	deadline := time.NewTimer(w.subject.Wait + w.p.Settle())
	defer deadline.Stop()
	look := time.NewTicker(w.subject.Poll)
	defer look.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			w.Fatalf("it did not come about that %s", what)
		case <-look.C:
		}
	}
}

// settled waits until a provider shows what was done before.
func (w *world) settled() {
	if d := w.p.Settle(); d > 0 {
		<-time.After(d)
	}
}

// waitRunning waits until n machines run and every later list shows it, and returns them.
func (w *world) waitRunning(m cloud.Match, n int) []cloud.Node {
	w.Helper()
	var nodes []cloud.Node
	w.eventually(fmt.Sprintf("%d machines run", n), func() bool {
		nodes = w.list(w.p, m)
		return len(nodes) == n && running(nodes) == n
	})
	w.settled() // until then a list may be older than the one before it
	return nodes
}

// waitEnded waits until no machine that matches can run anything, and that nothing does.
func (w *world) waitEnded(m cloud.Match, made ...cloud.Node) {
	w.Helper()
	w.eventually("the machines have ended", func() bool {
		for _, n := range w.list(w.p, m) {
			if !n.State.Ended() {
				return false
			}
		}
		return true
	})
	for _, n := range made {
		if w.alive(n) != 0 {
			w.Errorf("%d processes run on %s, which has ended", w.alive(n), n.ID)
		}
	}
}

// alive is what really runs on a machine, or 0 if that cannot be seen.
func (w *world) alive(n cloud.Node) int {
	if w.account.Alive == nil {
		return 0
	}
	return w.account.Alive(n)
}

// wantClass fails the test unless err has that class.
func (w *world) wantClass(err error, class job.Class) {
	w.Helper()
	if err == nil {
		w.Fatalf("no error, want one of class %s", class)
	}
	if got := cloud.ClassOf(err); got != class {
		w.Fatalf("class %s, want %s: %v", got, class, err)
	}
}

// running counts the machines that run.
func running(nodes []cloud.Node) int {
	n := 0
	for _, node := range nodes {
		if node.State == cloud.Running {
			n++
		}
	}
	return n
}

// ids are the names of machines in the order of their ranks.
func ids(nodes []cloud.Node) []string {
	byRank := make([]string, len(nodes))
	for _, n := range nodes {
		if n.Rank >= 0 && n.Rank < len(nodes) {
			byRank[n.Rank] = n.ID
		}
	}
	return byRank
}

// within is the same world in a sub-test.
func (w *world) within(t *testing.T) *world {
	inner := *w
	inner.T = t
	return &inner
}

package cloudtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// A machine that is made boots, runs, and has an address then.
func createMakesMachines(w *world) {
	r := w.attempt(1, 1)
	made := w.create(w.p, r)
	if len(made) != 1 {
		w.Fatalf("%d machines were made, want 1", len(made))
	}
	if made[0].State != cloud.Booting && made[0].State != cloud.Running {
		w.Errorf("a new machine is %s", made[0].State)
	}
	n := w.waitRunning(matchOf(r), 1)[0]
	if n.ID != made[0].ID {
		w.Errorf("machine %s was made and %s is listed", made[0].ID, n.ID)
	}
	if n.Address == "" {
		w.Error("a running machine has no address")
	}
	if w.account.Alive != nil && w.alive(n) == 0 {
		w.Error("nothing runs on a running machine")
	}
}

// The same token asks for the same machine, also when it runs and when it has ended.
func createIsIdempotentByToken(w *world) {
	r := w.attempt(1, 1)
	first := w.create(w.p, r)
	again := w.create(w.p, r)
	w.waitRunning(matchOf(r), 1)
	later := w.create(w.p, r)
	for _, nodes := range [][]cloud.Node{again, later} {
		if diff := cmp.Diff(ids(first), ids(nodes)); diff != "" {
			w.Errorf("the same token got other machines (-first +again):\n%s", diff)
		}
	}
	w.settled()
	if n := len(w.list(w.p, matchOf(r))); n != 1 {
		w.Errorf("%d machines are listed, want 1", n)
	}
}

// Twenty creators of one token at a time make one set of machines.
func createOnceByManyAtATime(w *world) {
	const creators, nodes = 20, 2
	r := w.gang(1, nodes)
	got := make([][]cloud.Node, creators)
	errs := make([]error, creators)
	var all sync.WaitGroup
	for i := range creators {
		all.Go(func() { got[i], errs[i] = w.account.Open(deployment).Create(w.ctx(), r) })
	}
	all.Wait()
	for i := range creators {
		if errs[i] != nil {
			w.Fatalf("creator %d: %v", i, errs[i])
		}
		if diff := cmp.Diff(ids(got[0]), ids(got[i])); diff != "" {
			w.Errorf("creator %d got other machines (-first +this):\n%s", i, diff)
		}
	}
	w.waitRunning(matchOf(r), nodes)
}

// Two workers with one token get one machine, each sees it, and each may end it.
func createOnceByTwoWorkers(w *world) {
	other := w.account.Open(deployment)
	r := w.attempt(1, 1)
	if diff := cmp.Diff(ids(w.create(w.p, r)), ids(w.create(other, r))); diff != "" {
		w.Errorf("two workers got two machines:\n%s", diff)
	}
	made := w.waitRunning(matchOf(r), 1)
	if n := len(w.list(other, matchOf(r))); n != 1 {
		w.Errorf("the other worker sees %d machines", n)
	}
	w.terminate(other, matchOf(r))
	w.waitEnded(matchOf(r), made...)
}

// A create call whose answer never arrived is repeated by another worker, and both times mean one set of machines.
func createAfterALostAnswer(w *world) {
	r := w.gang(1, 2)
	ctx, cancel := context.WithCancel(w.ctx())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = w.account.Open(deployment).Create(ctx, r) // its answer is lost, whether it was cut off or not
	}()
	cancel()
	<-done
	made := w.create(w.account.Open(deployment), r)
	if diff := cmp.Diff(ids(made), ids(w.waitRunning(matchOf(r), 2))); diff != "" {
		w.Errorf("machines made and listed (-made +listed):\n%s", diff)
	}
}

// Two attempts get two machines.
func createTwoTokensTwoMachines(w *world) {
	first, second := w.attempt(1, 1), w.attempt(1, 2)
	a, b := w.create(w.p, first), w.create(w.p, second)
	if a[0].ID == b[0].ID {
		w.Errorf("two tokens got the one machine %s", a[0].ID)
	}
	w.waitRunning(cloud.Match{Deployment: deployment, Job: 1}, 2)
}

// The nodes of a gang are all there, with ranks from 0 on, or, if there is no room for all, none is.
func createAllNodesOrNone(w *world) {
	r := w.gang(1, w.account.Fits)
	made := w.create(w.p, r)
	if len(made) != r.Nodes {
		w.Fatalf("%d machines were made, want %d", len(made), r.Nodes)
	}
	ranks := make(map[int]string)
	for _, n := range w.waitRunning(matchOf(r), r.Nodes) {
		ranks[n.Rank] = n.ID
	}
	for rank := range r.Nodes {
		if ranks[rank] == "" {
			w.Errorf("no machine has rank %d: %v", rank, ranks)
		}
	}
	if w.account.Full == nil {
		return
	}
	none := w.gang(2, 2)
	none.Offer, _ = w.account.Full()
	if _, err := w.p.Create(w.ctx(), none); err == nil {
		w.Fatal("an offer without capacity made machines")
	}
	w.settled()
	w.nothingRuns(none)
}

// nothingRuns fails the test if a machine of a request may run, in the region of its own offer.
func (w *world) nothingRuns(r cloud.Request) {
	w.Helper()
	all, err := w.p.List(w.ctx(), r.Offer.Region)
	if err != nil {
		w.Fatalf("list: %v", err)
	}
	for _, n := range all {
		if matchOf(r).Selects(n) && !n.State.Ended() {
			w.Errorf("machine %s is %s", n.ID, n.State)
		}
	}
}

// A lack of capacity is said as such, with its scope, and leaves nothing behind.
func createWithoutCapacity(w *world) {
	if w.account.Full == nil {
		w.Skip("a lack of capacity cannot be brought about")
	}
	o, scope := w.account.Full()
	r := w.attempt(1, 1)
	r.Offer = o
	_, err := w.p.Create(w.ctx(), r)
	w.wantClass(err, job.Capacity)
	if !cloud.IsCapacity(err) {
		w.Error("IsCapacity does not know it")
	}
	if f := cloud.FaultOf(err); f.Scope != scope {
		w.Errorf("scope %q, want %q", f.Scope, scope)
	}
	w.settled()
	w.nothingRuns(r)
}

// What can never be served is Invalid, and permanently so.
func createOfNonsense(w *world) {
	for name, spoil := range map[string]func(*cloud.Request){
		"no such type":       func(r *cloud.Request) { r.Offer.Type = "no-such-type" },
		"no such region":     func(r *cloud.Request) { r.Offer.Region, r.Offer.Zone = "no-such-region", "" },
		"another provider":   func(r *cloud.Request) { r.Offer.Provider = "no-such-provider" },
		"no token":           func(r *cloud.Request) { r.Token = "" },
		"no identity":        func(r *cloud.Request) { r.Job, r.Attempt = 0, 0 },
		"another deployment": func(r *cloud.Request) { r.Deployment = neighbour },
		"negative nodes":     func(r *cloud.Request) { r.Nodes = -1 },
	} {
		w.Run(name, func(t *testing.T) {
			w := w.within(t)
			r := w.attempt(1, 1)
			spoil(&r)
			_, err := w.p.Create(w.ctx(), r)
			w.wantClass(err, job.Invalid)
			if !cloud.IsPermanent(err) {
				w.Error("it is not permanent")
			}
		})
	}
	w.settled()
	if n := w.list(w.p, cloud.Match{Deployment: deployment, Job: 1}); len(n) != 0 {
		w.Errorf("nonsense has made machines: %+v", n)
	}
}

// A name is for people: whatever is in it, the machine is made, and is the same as without it.
func createWithUntrustedName(w *world) {
	names := []string{
		"", "../../etc/passwd", "$(touch /tmp/pwned); `id`", "a\nb\x00c\x1b[2J", "<script>alert(1)</script>", string(make([]byte, 5000)), "\xff\xfe",
	}
	for batch := range slices.Chunk(names, w.account.Fits) {
		made := make(map[job.ID]cloud.Node)
		for i, name := range batch {
			r := w.attempt(job.ID(i+1), len(made)+1)
			r.Name, r.Task, r.Token = name, len(name), job.Token(deployment, r.Job, nonce, len(name), r.Attempt)
			made[r.Job] = w.create(w.p, r)[0]
		}
		for id, n := range made {
			m := cloud.Match{Deployment: deployment, Job: id, NodeID: n.ID}
			w.waitRunning(m, 1)
			w.terminate(w.p, m)
			w.waitEnded(m, n)
		}
	}
}

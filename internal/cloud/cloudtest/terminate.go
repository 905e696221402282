package cloudtest

import (
	"sync"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ending an attempt ends all its machines and no others.
func terminateByAttempt(w *world) {
	gone, stays, sibling := w.gang(1, 2), w.attempt(1, 2), w.attemptOf(deployment, 1, 1, 1)
	made := w.create(w.p, gone)
	w.create(w.p, stays)
	w.create(w.p, sibling)
	w.waitRunning(cloud.Match{Deployment: deployment, Job: 1}, 4)
	w.terminate(w.p, matchOf(gone))
	w.waitEnded(matchOf(gone), made...)
	for _, r := range []cloud.Request{stays, sibling} {
		if n := running(w.list(w.p, matchOf(r))); n != 1 {
			w.Errorf("task %d attempt %d: %d machines run, want 1", r.Task, r.Attempt, n)
		}
	}
}

// Ending a job ends the machines of all its attempts and tasks, and of no other job.
func terminateByJob(w *world) {
	var made []cloud.Node
	for _, r := range []cloud.Request{w.attempt(1, 1), w.attempt(1, 2), w.attemptOf(deployment, 1, 1, 1)} {
		made = append(made, w.create(w.p, r)...)
	}
	other := w.attempt(11, 1) // begins alike
	w.create(w.p, other)
	w.waitRunning(matchOf(other), 1)
	all := cloud.Match{Deployment: deployment, Job: 1}
	w.terminate(w.p, all)
	w.waitEnded(all, made...)
	if n := running(w.list(w.p, matchOf(other))); n != 1 {
		w.Errorf("%d machines of the other job run, want 1", n)
	}
}

// Ending one machine by its name leaves the rest of its gang.
func terminateByNode(w *world) {
	r := w.gang(1, 2)
	w.create(w.p, r)
	nodes := w.waitRunning(matchOf(r), 2)
	one := cloud.Match{Deployment: deployment, NodeID: nodes[0].ID}
	w.terminate(w.p, one)
	w.waitEnded(one, nodes[0])
	rest := w.list(w.p, cloud.Match{Deployment: deployment, NodeID: nodes[1].ID})
	if len(rest) != 1 || rest[0].State != cloud.Running {
		w.Errorf("the rest of the gang: %+v", rest)
	}
}

// What is not there is ended already: not found is success, in an empty region as beside other machines.
func terminateNothing(w *world) {
	w.terminate(w.p, matchOf(w.attempt(404, 1)))
	r := w.attempt(1, 1)
	w.create(w.p, r)
	w.waitRunning(matchOf(r), 1)
	w.terminate(w.p, cloud.Match{Deployment: deployment, Job: 404})
	w.terminate(w.p, matchOf(w.attempt(404, 2)))
	w.terminate(w.p, matchOf(w.attempt(1, 9)))
	w.terminate(w.p, cloud.Match{Deployment: deployment, NodeID: "no-such-machine"})
	w.terminate(w.p, cloud.Match{Deployment: deployment})
	w.settled()
	if n := running(w.list(w.p, matchOf(r))); n != 1 {
		w.Errorf("%d machines run, want 1", n)
	}
}

// Ending twice is ending once.
func terminateTwice(w *world) {
	r := w.attempt(1, 1)
	made := w.create(w.p, r)
	w.waitRunning(matchOf(r), 1)
	w.terminate(w.p, matchOf(r))
	w.terminate(w.p, matchOf(r))
	w.waitEnded(matchOf(r), made...)
	w.terminate(w.account.Open(deployment), matchOf(r))
	w.waitEnded(matchOf(r), made...)
}

// Ten workers that end one gang at a time all succeed.
func terminateAtATime(w *world) {
	r := w.gang(1, 2)
	w.create(w.p, r)
	made := w.waitRunning(matchOf(r), 2)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := w.account.Open(deployment).Terminate(w.ctx(), w.offer.Region, matchOf(r)); err != nil {
				w.Errorf("terminate: %v", err)
			}
		})
	}
	all.Wait()
	w.waitEnded(matchOf(r), made...)
}

// A machine may be ended before it has booted.
func terminateWhileBooting(w *world) {
	r := w.gang(1, 2)
	made := w.create(w.p, r)
	w.terminate(w.p, matchOf(r))
	w.waitEnded(matchOf(r), made...)
}

// A create call that comes after the end of its attempt makes nothing new.
func createAfterTerminate(w *world) {
	r := w.attempt(1, 1)
	made := w.create(w.p, r)
	w.waitRunning(matchOf(r), 1)
	w.terminate(w.p, matchOf(r))
	w.waitEnded(matchOf(r), made...)
	w.makesNothing(r)
}

// That holds also if there never was a machine: its create call was sent before, and arrives after the end.
func createAfterTerminateOfNothing(w *world) {
	r := w.attempt(1, 1)
	w.terminate(w.p, matchOf(r))
	w.makesNothing(r)
}

// makesNothing creates once more by another worker: the answer is Invalid, or what is left of the machines.
func (w *world) makesNothing(r cloud.Request) {
	w.Helper()
	nodes, err := w.account.Open(deployment).Create(w.ctx(), r)
	if err != nil && cloud.ClassOf(err) != job.Invalid {
		w.Errorf("class %s, want %s: %v", cloud.ClassOf(err), job.Invalid, err)
	}
	for _, n := range nodes {
		if !n.State.Ended() && n.State != cloud.Stopping {
			w.Errorf("machine %s is %s", n.ID, n.State)
		}
	}
	w.settled()
	w.nothingRuns(r)
}

// However a create call and the end of its attempt run into each other, nothing is left running once both are through.
func createAgainstTerminate(w *world) {
	for i := range 8 {
		r := w.gang(job.ID(i+1), 2)
		var both sync.WaitGroup
		both.Go(func() { _, _ = w.account.Open(deployment).Create(w.ctx(), r) })
		both.Go(func() {
			if err := w.account.Open(deployment).Terminate(w.ctx(), w.offer.Region, matchOf(r)); err != nil {
				w.Errorf("terminate: %v", err)
			}
		})
		both.Wait()
		w.settled()
		w.waitEnded(matchOf(r))
	}
}

package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// timeline writes small histories: each call takes from one number to another.
type timeline []porcupine.Operation

func (l *timeline) add(from, to int64, c Call, a Answer) {
	c.Began, a.Ended = from, to
	*l = append(*l, Operation(len(*l), c, a))
}

// lease is how long claims in these histories are good.
const lease = 100

func begin(n int64, token string) Call {
	return Call{Kind: Begin, Step: "launch", N: n, Token: token, Raise: 1, Lease: lease}
}

func commit(fence, seq int64, from, to, step string) Call {
	return Call{Kind: Commit, Fence: fence, Seq: seq, From: from, Next: Record{Step: step, Status: to}}
}

var (
	done    = Answer{OK: true}
	refused = Answer{}
	lost    = Answer{Lost: true}
)

// begun is the answer to the first act of a new job, or of one that was redispatched.
func begun(fence, n int64) Answer {
	return Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: n, Ran: n, Fence: fence}}
}

// again is a redispatch of the act after n.
func again(n int64) Call { return Call{Kind: Redispatch, Step: "launch", N: n, Ran: n} }

// Ensure that the model takes what may happen, and nothing else.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		tell  func(l *timeline)
		sound bool
	}{
		{"a life", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "CANCELLED", "done"), done)
			l.add(4, 5, Call{Kind: Resume}, done)
			l.add(6, 7, Call{Kind: Begin, Step: "launch", N: 2, Token: "b", Raise: 1, Lease: lease}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 2, Ran: 2, Fence: 3, Seq: 2}})
		}, true},
		{"two drivers begin one act", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, begin(1, "b"), begun(2, 1))
		}, false},
		{"one of two that begin at once is refused", func(l *timeline) {
			l.add(0, 9, begin(1, "a"), refused)
			l.add(0, 9, begin(1, "b"), begun(1, 1))
		}, true},
		{"a claim is taken from its holder before its time", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, again(1), Answer{OK: true, N: 2})
		}, false},
		{"and after it", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(150, 151, again(1), Answer{OK: true, N: 2})
			l.add(152, 153, begin(2, "b"), begun(3, 2))
		}, true},
		{"a stale driver commits", func(l *timeline) { // the bug G2
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(150, 151, again(1), Answer{OK: true, N: 2})
			l.add(152, 153, begin(2, "b"), begun(3, 2))
			l.add(154, 155, commit(1, 0, "PENDING", "STARTING", "launch"), done)
		}, false},
		{"a stale driver is refused", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(150, 151, again(1), Answer{OK: true, N: 2})
			l.add(154, 155, commit(1, 0, "PENDING", "STARTING", "launch"), refused)
		}, true},
		{"the holder is refused", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "STARTING", "launch"), refused)
		}, false},
		{"a commit whose answer was lost, twice", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "STARTING", "launch"), lost)
			l.add(4, 5, commit(1, 0, "PENDING", "STARTING", "launch"), done)
			l.add(6, 7, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "STARTING", N: 1, Ran: 1, Fence: 1, Seq: 1}})
		}, true},
		{"a commit that was acknowledged and is not there", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "STARTING", "launch"), done)
			l.add(4, 5, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1, Ran: 1, Fence: 1}})
		}, false},
		{"a commit after the claim was given back", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "STARTING", "launch"), done)
			l.add(4, 5, commit(1, 1, "STARTING", "RUNNING", "watch"), done)
		}, false},
		{"a cancel that a commit has taken back", func(l *timeline) { // the bug G7 would be one of these
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, Call{Kind: Cancel}, done)
			l.add(4, 5, commit(1, 0, "PENDING", "STARTING", "launch"), done)
			l.add(6, 7, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "STARTING", N: 1, Ran: 1, Fence: 1, Seq: 1}})
		}, false},
		{"a cancel without an answer, later", func(l *timeline) {
			l.add(0, 1, Call{Kind: Cancel}, lost)
			l.add(2, 3, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1}})
			l.add(4, 5, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1, Cancel: true}})
		}, true},
		{"a job that has ended is cancelled", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "SUCCEEDED", "done"), done)
			l.add(4, 5, Call{Kind: Cancel}, done)
		}, false},
		{"a job that has succeeded goes again", func(l *timeline) {
			l.add(0, 1, begin(1, "a"), begun(1, 1))
			l.add(2, 3, commit(1, 0, "PENDING", "SUCCEEDED", "done"), done)
			l.add(4, 5, Call{Kind: Resume}, done)
		}, false},
		{"what was read goes back", func(l *timeline) {
			l.add(0, 1, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1, Cancel: true}})
			l.add(2, 3, Call{Kind: Read}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1}})
		}, false},
		{"a watch takes a job that is at an act", func(l *timeline) {
			l.add(0, 1, Call{Kind: Claim, Raise: 1, Lease: lease}, Answer{OK: true, Record: Record{Step: "launch", Status: "PENDING", N: 1, Fence: 1}})
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l timeline
			c.tell(&l)
			if got := porcupine.CheckOperations(Model, l); got != c.sound {
				t.Errorf("got %v, want %v", got, c.sound)
			}
		})
	}
}

package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Kind is what a call asks for.
type Kind string

// The kinds of calls. All but Read are methods of the store of that name, or nearly so.
const (
	Read       Kind = "read"       // the record as a whole
	Begin      Kind = "begin"      // act N of a step, under a lease with a token
	Claim      Kind = "claim"      // a look of the watch
	Beat       Kind = "beat"       // prolong a claim
	Commit     Kind = "commit"     // a decision, for the holder of a claim
	Handover   Kind = "handover"   // give a claim back
	Redispatch Kind = "redispatch" // make act N + 1
	Cancel     Kind = "cancel"
	Resume     Kind = "resume"
)

// Record is a job's record, as far as it matters who wrote it.
type Record struct {
	Step   string
	Status string
	N, Ran int64
	Fence  int64
	Seq    int64
	Cancel bool
}

// Call is one call for one job. Times are nanoseconds of one monotonic clock.
type Call struct {
	Job   int64
	Kind  Kind
	Step  string // Begin, Redispatch
	N     int64  // Begin, Redispatch
	Ran   int64  // Redispatch: as it was read
	Token string // Begin; of a Claim it is empty
	Fence int64  // Beat, Commit, Handover: of the caller's claim
	Seq   int64  // Commit: the last one that the caller knows
	From  string // Commit: the status that was decided from
	Next  Record // Commit: of this only Step and Status count
	Keep  bool   // Commit: the claim is kept
	Raise int64  // Begin, Claim: by how much the fence is raised
	Lease int64  // Begin, Claim, Beat: how long the claim is good
	Began int64
}

// Answer is what the caller was told.
type Answer struct {
	OK     bool   // it was done
	Lost   bool   // no answer came: it was done at some time, or never will be
	Record Record // Read, Begin; of a Claim all but Cancel; of a kept Commit and a Beat only Cancel
	N      int64  // Redispatch
	Ended  int64  // when the answer came
}

// never is when a call ends whose answer was lost.
const never = math.MaxInt64

// Operation is a call with its answer, as porcupine takes it.
func Operation(client int, c Call, a Answer) porcupine.Operation {
	if a.Lost {
		a.Ended = never
	}
	return porcupine.Operation{ClientId: client, Input: c, Output: a, Call: c.Began, Return: a.Ended}
}

// state is the record and who holds it.
type state struct {
	Record
	held   bool
	holder string
	until  int64 // before this the claim cannot have run out
}

// free reports whether a claim may be taken by a call that ends at a time.
func (s state) free(ended int64) bool { return !s.held || ended >= s.until }

// Model is the record as a state machine, each job for itself.
var Model = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byJob := map[int64][]porcupine.Operation{}
		var jobs []int64
		for _, op := range all {
			id := op.Input.(Call).Job
			if byJob[id] == nil {
				jobs = append(jobs, id)
			}
			byJob[id] = append(byJob[id], op)
		}
		slices.SortFunc(jobs, cmp.Compare)
		parts := make([][]porcupine.Operation, len(jobs))
		for i, id := range jobs {
			parts[i] = byJob[id]
		}
		return parts
	},
	Init: func() any { return state{Record: Record{Step: "launch", Status: "PENDING", N: 1}} },
	Step: func(s, c, a any) (bool, any) {
		possible, next := s.(state).step(c.(Call), a.(Answer))
		return possible, next
	},
	DescribeOperation: func(c, a any) string { return describe(c.(Call), a.(Answer)) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// step tells whether a call can have had an answer here, and what comes of it.
func (s state) step(c Call, a Answer) (possible bool, next state) {
	done, next := s.do(c, a)
	if a.Lost {
		return true, next // done or not: what was not done stands in the order after all that looked
	}
	return done, next
}

// do is what a call does to a record, and whether that is what the caller was told. A call without an answer does what it
// can.
func (s state) do(c Call, a Answer) (told bool, next state) {
	next = s
	switch c.Kind {
	case Read:
		return a.Record == s.Record, s
	case Begin:
		return s.begin(c, a)
	case Claim: // one that took nothing is no call of this job
		if s.Step != "watch" || !s.free(a.Ended) {
			return false, s
		}
		next.Fence += c.Raise
		next.held, next.holder, next.until = true, "", c.Began+c.Lease
		want := next.Record
		want.Cancel = a.Record.Cancel // it may have come between the claim and the reading
		return a.OK && a.Record == want, next
	case Beat:
		mine := s.held && s.Fence == c.Fence
		if !a.OK && !a.Lost {
			return !mine || s.free(a.Ended), s
		}
		if mine {
			next.until = max(s.until, c.Began+c.Lease)
		}
		return mine && a.Record.Cancel == s.Cancel, next
	case Commit:
		return s.commit(c, a)
	case Handover: // its answer tells nothing
		if s.held && s.Fence == c.Fence {
			next.Fence++
			next.held, next.holder, next.until = false, "", 0
		}
		return true, next
	case Redispatch:
		return s.redispatch(c, a)
	case Cancel:
		if s.Step == "done" {
			return !a.OK, s
		}
		next.Cancel = true
		return a.OK, next
	case Resume:
		if s.Step != "done" || s.Status == "SUCCEEDED" {
			return !a.OK, s
		}
		return a.OK, state{Record: Record{Step: "launch", Status: "PENDING", N: max(s.N, s.Ran) + 1, Ran: s.Ran, Fence: s.Fence + 1, Seq: s.Seq + 1}}
	}
	return false, s
}

func (s state) begin(c Call, a Answer) (bool, state) {
	next := s
	switch {
	case s.Step != c.Step || s.N != c.N: // stale
		return !a.OK, s
	case s.Ran == c.N: // begun before: only this very caller is told so once more
		mine := s.held && s.holder == c.Token
		if a.OK {
			return mine && a.Record == s.Record, s
		}
		return !mine || s.free(a.Ended), s
	case !a.OK && !a.Lost:
		return s.held, s // busy
	case !s.free(a.Ended):
		return false, s
	}
	next.Fence, next.Ran = s.Fence+c.Raise, c.N
	next.held, next.holder, next.until = true, c.Token, c.Began+c.Lease
	return a.Record == next.Record, next
}

func (s state) commit(c Call, a Answer) (bool, state) {
	next := s
	switch {
	case s.Fence == c.Fence && s.Seq == c.Seq+1: // it was written before
	case s.Fence == c.Fence && s.Seq == c.Seq && s.Status == c.From && s.held:
		next.Step, next.Status, next.Seq = c.Next.Step, c.Next.Status, c.Seq+1
		if !c.Keep {
			next.held, next.holder, next.until = false, "", 0
		}
	default:
		return !a.OK, s
	}
	return a.OK && (!c.Keep || a.Record.Cancel == s.Cancel), next
}

func (s state) redispatch(c Call, a Answer) (bool, state) {
	next := s
	switch {
	case s.Step != c.Step || s.Ran != c.Ran:
		return a.N == 0, s
	case a.N == 0 && !a.Lost:
		return s.held || s.N != c.N && s.N != c.N+1, s
	case !s.free(a.Ended):
		return false, s
	case s.N == c.N+1: // made before
		return a.N == s.N, s
	case s.N != c.N:
		return false, s
	}
	next.Fence, next.N = s.Fence+1, s.N+1
	return a.N == next.N, next
}

// describe is a call with its answer for people.
func describe(c Call, a Answer) string {
	text := string(c.Kind)
	switch c.Kind {
	case Begin, Redispatch:
		text += fmt.Sprintf(" %s %d", c.Step, c.N)
	case Commit:
		text += fmt.Sprintf(" fence %d seq %d %s to %s at %s, keep %v", c.Fence, c.Seq+1, c.From, c.Next.Status, c.Next.Step, c.Keep)
	case Beat, Handover:
		text += fmt.Sprintf(" fence %d", c.Fence)
	}
	switch {
	case a.Lost:
		return text + ": no answer"
	case c.Kind == Redispatch:
		return text + fmt.Sprintf(": %d", a.N)
	case !a.OK:
		return text + ": refused"
	}
	return text + fmt.Sprintf(": %+v", a.Record)
}

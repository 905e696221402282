package job

import (
	"errors"
	"strings"
	"testing"
)

// matrix is what the table of transitions must say, written down apart from it: one row for each status, one column
// for each in the same order. '=' is where a task already is, 'x' a legal move, '.' an illegal one.
const matrix = `
                    P S R V C  S C F F F F F
                    E T U E A  U A A S P N C
PENDING             = x . . x  x x . . x x x
STARTING            . = x . x  . . . x x x x
RUNNING             . . = x x  x . x x . . x
RECOVERING          . . x = x  . . . x . x x
CANCELLING          . . . . =  . x . . . . x
SUCCEEDED           . . . . .  = . . . . . .
CANCELLED           . . . . .  . = . . . . .
FAILED              . . . . .  . . = . . . .
FAILED_SETUP        . . . . .  . . . = . . .
FAILED_PRECHECKS    . . . . .  . . . . = . .
FAILED_NO_RESOURCE  . . . . .  . . . . . = .
FAILED_CONTROLLER   . . . . .  . . . . . . =
`

// TestG5_EveryPairOfStatuses walks all pairs: legal moves are made and leave one event, a move to where the task is
// does nothing, every other move is an error that changes nothing and leaves no event. Nothing leaves a final status.
//
// skypilot #4602, #4637: RUNNING was written over CANCELLING. skypilot #9939: STARTING again was an error.
func TestG5_EveryPairOfStatuses(t *testing.T) {
	t.Parallel()
	rows := strings.Split(strings.Trim(matrix, "\n"), "\n")[2:]
	if len(rows) != len(Statuses) {
		t.Fatalf("%d rows for %d statuses", len(rows), len(Statuses))
	}
	for i, row := range rows {
		cells := strings.Fields(row)
		if from := Statuses[i]; cells[0] != string(from) || len(cells) != len(Statuses)+1 {
			t.Fatalf("row %q is not that of %s", row, from)
		}
		for j, cell := range cells[1:] {
			checkMove(t, Statuses[i], Statuses[j], cell)
		}
	}
}

func checkMove(t *testing.T, from, to Status, cell string) {
	t.Helper()
	if (cell == "=") != (from == to) {
		t.Fatalf("the matrix has %q at %s -> %s", cell, from, to)
	}
	if from.Terminal() && cell == "x" {
		t.Errorf("the matrix leaves the final %s", from)
	}
	if got := CanMove(from, to); got != (cell == "x") {
		t.Errorf("CanMove(%s, %s) = %t", from, to, got)
	}
	d := decision{Record: NewRecord(Head{ID: 1, Tasks: make([]TaskHead, 1)}), rules: DefaultRules, now: 1000}
	d.Tasks[0].Status = from
	err := d.move(0, to, Cause{Code: CodeUserExit, Text: "a cause"})
	var illegal *IllegalMoveError
	switch {
	case cell == "." && (!errors.As(err, &illegal) || illegal.From != from || illegal.To != to):
		t.Errorf("move %s -> %s: error %v", from, to, err)
	case cell != "." && err != nil:
		t.Errorf("move %s -> %s: %v", from, to, err)
	}
	wantStatus, wantEvents := from, 0
	if cell == "x" {
		wantStatus, wantEvents = to, 1
	}
	if d.Tasks[0].Status != wantStatus || len(d.Events) != wantEvents {
		t.Errorf("after the move %s -> %s: status %s, %d events", from, to, d.Tasks[0].Status, len(d.Events))
	}
	if ended := !d.Tasks[0].EndedAt.IsZero(); ended != (cell == "x" && to.Terminal()) {
		t.Errorf("after the move %s -> %s: ended at %d", from, to, d.Tasks[0].EndedAt)
	}
}

// TestIllegalMoveIsAFault ensures that a decision which wants an illegal move changes nothing but the fault budget.
func TestIllegalMoveIsAFault(t *testing.T) {
	t.Parallel()
	d := decision{Record: NewRecord(Head{ID: 1, Tasks: make([]TaskHead, 1)}), rules: DefaultRules, now: 1000}
	d.Tasks[0].Status, d.Step = Failed, StepCleanup
	if d.must(0, Running, Cause{}) {
		t.Fatal("must allowed FAILED -> RUNNING")
	}
	if d.Tasks[0].Status != Failed || d.Fault.N != 1 || !strings.Contains(d.Fault.Text, "no transition from FAILED to RUNNING") || d.Due <= d.now {
		t.Errorf("status %s, fault %+v, due %d", d.Tasks[0].Status, d.Fault, d.Due)
	}
}

// TestFirstCauseStays ensures which cause explains a task: the first of an ending, with the codes of others beside it;
// and an ending in the middle of a recovery by itself, with the loss as its evidence (G13).
//
// skypilot #7151: a later reason was written over the real one.
func TestFirstCauseStays(t *testing.T) {
	t.Parallel()
	d := decision{Record: NewRecord(Head{ID: 1, Tasks: make([]TaskHead, 1)}), rules: DefaultRules, now: 1000}
	for _, step := range []struct {
		to    Status
		cause Cause
	}{
		{Starting, Cause{}},
		{Running, Cause{}},
		{Recovering, Cause{Code: CodePreempted, Text: "taken"}},
		{Cancelling, Cause{Code: CodeCancelled, Text: "cancelled by ann"}},
		{FailedController, Cause{Code: CodeController, Text: "a fault"}},
	} {
		if err := d.move(0, step.to, step.cause); err != nil {
			t.Fatal(err)
		}
	}
	task := d.Tasks[0]
	if want := (Cause{Code: CodeCancelled, Text: "cancelled by ann", Evidence: "taken"}); task.Cause != want {
		t.Errorf("cause %+v, want %+v", task.Cause, want)
	}
	if len(task.Later) != 2 || task.Later[0] != CodePreempted || task.Later[1] != CodeController {
		t.Errorf("beside it %v", task.Later)
	}
	if last := d.Events[len(d.Events)-1]; last.Cause.Code != CodeController {
		t.Errorf("the history tells %+v of the last move", last.Cause)
	}
}

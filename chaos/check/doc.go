// Package check judges a run of the fault suite: from what was recorded ([history.History]) it tells which guarantees were
// broken, where, and by what that shows.
//
//	history ─► file ─► one judge a guarantee ─► violations
//
// It shares no code with the workers, so that it cannot share a mistake with them: it imports package history and nothing
// else of ours, and the linter sees to that. What it goes by is what the sim's own ledger says of machines and of the user's
// code on them, what code on local machines wrote about itself, and what a client was told.
//
// A judge is a pure function in a file of its own, g1_*.go to g13_*.go, and begins with what it holds against a run. Each
// has a table of small histories that are sound, and of one for each kind of violation (the tests beside it), and a bug
// planted in the product that a run of the suite must find (package planted, `make chaos-planted`).
//
// A judge must be certain: nothing that a slow computer may do is a violation. So times are only compared where they follow
// from the settings of the run ([history.Times]), and time in which nobody could have acted does not count (faults.go).
package check

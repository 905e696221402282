// Package job says what a job is and what to do about it. It has no clock, no input or output and imports
// nothing of ours: whoever drives a job reads its [Record], looks at the world, and calls [Decide], which
// returns the record as it is to be committed next and the one thing to [Do] in the world after that.
//
//	      ┌────────────────────────────────────────────────┐
//	      ▼                                                │ Seen: what came of it
//	record ─► Decide(record, seen, rules, now) ─► record' ─┴► commit ─► Do
//
// Every intent is committed before it is acted upon, so a driver may die anywhere: the next one reads the record,
// decides with an empty [Seen], and is told to do the same thing again. Everything in [Do] may be done twice.
//
// A record is always at one of five steps:
//
//	launch   a machine is sought, made and started            decide_launch.go
//	watch    the user's code runs, somebody looks at times    decide_watch.go
//	recover  lost machines are being closed, then launch      decide_close.go
//	cleanup  the task has ended, its machines are closed      decide_close.go
//	done     nothing is left to do
//
// Statuses, which people read, move through one table (transitions.go) and are never set otherwise.
//
// On failure: an error of a provider or a machine reaches Decide as a classified [Fault] and leads to a wait
// that is kept in the record; an error of our own goes through [Faulted], which gives a job ten tries over about
// three hours before it says FAILED_CONTROLLER.
package job

// Package place decides where a task's next machine is made. It is pure: offers, the task's wishes and what it
// remembers of its hunt go in, a [job.Choice] comes out. No clock, no I/O, no chance: the same input always gives
// the same answer, whatever the order in which a provider listed its offers.
//
// # A round
//
// A hunt goes in rounds. Within a round every offer that is still possible is tried at most once, the next one at
// once after a failure. When all have failed the round is over, and only then is there a wait, which grows from
// round to round ([Backoff]).
//
//	           ┌───────── Failed ◄── create refused ──┐
//	           ▼                                      │
//	Search ─► Choose ─► Offer ────────────────────► create ──► runs ──► Won
//	           │  ▲                                                      │
//	           │  └──────── Search.Lost is set ◄── machine lost ◄────────┘
//	           ├─► Until ─► RoundOver, committed together with the wait; Choose again when it has passed
//	           └─► None: nothing can ever serve the task
//
// [Choose] changes nothing. Its caller applies [job.Search.Failed], [job.Search.RoundOver] and [job.Search.Won] and
// commits the [job.Search] that they return together with whatever else the step changes, so that a worker's death
// neither repeats a round nor resets a wait.
//
// # The order
//
// Offers are cheapest first, or entry by entry as written if the resources are ordered, and cheapest within an entry.
// A strategy then moves the region where the last machine was lost to the end or to the front, and offers with a
// penalty that has not expired go behind all others. [Order] shows the result with a reason for each offer.
package place

// Package tasks is a job's life as asynq tasks. A task carries a name and a number, nothing else: the record in the
// store says what is due and which act must exist, so any task may be lost, late, doubled or stale.
//
//	queue watch     watch-<shard>:<epoch>     look at what is due in a shard, every second          watch.go
//	queue launch    launch:<job>:<n>          offer → intent → create → boot → start                act.go
//	queue control   recover:<job>:<n>         close the lost machine, then launch
//	                cleanup:<job>:<n>         close the machines of a task that has ended
//	queue fleet     view:<provider>:<region>:<epoch>   list all machines, wake jobs that lost one,
//	                                          collect what belongs to nobody                        fleet.go
//	                admission:<epoch>         hand out freed launch slots
//	                offers:<provider>:<epoch> tell clients what it has, and what it makes of fields   offers.go
//	                hooks:<epoch>             make the deliveries that are due
//	queue hooks     hook:<job>:<n>            tell news of a job to webhooks and callbacks          hooks.go
//
// # Watching
//
// One task a shard returns a sentinel error at the end of each tick, on which asynq moves the same task to its next
// time in one script (queue.go). A tick claims what is due, asks each job's agent how it goes, decides, and commits in
// batches. A job whose code runs quietly costs one probe, a share of one claim and a share of one commit.
//
// # Acting
//
// An act begins by raising the job's fence and taking its lease, and then goes round (driver.go):
//
//	observe ─► job.Decide ─► commit ─► do ─┐
//	   ▲                                   │
//	   └───────────────────────────────────┘
//
// It ends when the next thing to do is to wait for longer than two seconds: waiting holds nothing. The commit says when
// the job is due again, and the watch makes the next act then.
//
// # Failure
//
// A worker that dies leaves claims that run out; the watch takes them up. A shard whose watch died is noticed by every
// worker within seconds (chain.go): its epoch is raised, and a task of the old epoch ends at its next begin. A store that
// does not answer is a pause. What an error of ours does to a job, job.Faulted decides.
package tasks

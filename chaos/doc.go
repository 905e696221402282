// Chaos runs the fault suite: real workers, real Redis servers, real clients, and everything that can break breaking at
// random while jobs run. Then a judge that shares no code with the workers says which guarantees were broken.
//
//	go run ./chaos -seed 7 -for 3m -v
//	go run ./chaos -seed 7 -for 1m -rounds single -faults 'Redis killed,worker frozen' -kinds chain -keep
//	go run ./chaos -judge FOLDER     a history once more, after the judge has changed
//
//	      enqueue (load.go)           workers (fleet.go)
//	           │                     │     │     │
//	         proxy                 proxy proxy proxy            network.go: cut, slow, deaf; one worker at a time
//	           └──────────┬──────────┴─────┴─────┘
//	         redis-server, or a master with a replica          redis.go, sentinel.go: killed, frozen, full, failed over
//	           and three Sentinels
//
//	workers ─► the sim provider ─► redis-server of its own     cloud.go: what a cloud does to machines and to calls
//	workers ─► the local provider: processes of this computer
//
// A run is rounds, each with a deployment, a history and a verdict of its own: most with one Redis, one with Sentinels. In a
// round jobs whose right endings are known beforehand (kinds.go) are submitted, cancelled and asked for, while the plan
// (plan.go) breaks one thing after the other from the table of faults (faults.go). Then all is healed, the jobs come to
// their ends, and what is left is written down (dump.go). What was recorded is package history, who judges is package check.
//
// # What depends on the seed
//
// The plan and the load are thrown from the seed. What the processes of the product make of them is not: two runs of one
// seed break the same things in the same order, and may meet different moments.
//
// # What it leaves
//
// A run without violations leaves nothing. Otherwise the histories stay, with the logs of workers and of Redis, and the
// output ends with where they are and with the command that runs the same seed again.
package main

// Package sim is a provider whose machines exist only in Redis, for tests, benchmarks and simulation. It runs nothing: the
// agent of such a machine plays the user's code, of which it knows echo, sleep and exit (see compile).
//
// A world is what [Open] finds or founds: zones with prices, boot times and capacities that change, the machines in them, and
// the faults that calls meet. All who open the world of the same name in the same Redis share it: workers, dialers, tests. Two
// deployments in one world share its capacity and do not see each other.
//
// All changes are Lua scripts, and all time is that of Redis. A machine is a line of words in a hash, and the line holds
// what is to come as well: when it has booted, when its notice is over, when it is gone. So the state of a machine at any
// time is a pure function of its line (see machine.state), and so is what its run has printed by then and how it ended (see
// run.status): nobody has to run anything, a poll is two fields read, and a list can be as of an earlier time. What has come
// about already is never changed, so nobody sees a past that is rewritten.
//
//	sim:{world}:began       when it was founded, Unix ms
//	  homes, owners, regions  numbers of the regions of deployments
//	  m:<home> r:<home>     machines and their runs, by the name of the machine
//	  j:<home>              machines by job
//	  x:<home>:<attempt>    it was terminated: nothing is made for it any more
//	  live:<zone>           machines that take up capacity, by a random number; those on demand last, which are never taken
//	  going:<zone>          machines that will end, by when; they take up capacity until then
//	  due                   events that are to happen, by when: they are told in the ledger, and ended machines are forgotten
//	  room, set, applied    capacities as of now, those that were set by hand, and until when changes have been applied
//	  faults, hits          faults that calls meet, and how many they have hit
//	  ledger                a stream of all that happened, for who wants to judge; see [Event]
//
// # On failure
//
// The sim fails when its Redis fails: provider calls with errors of no class, agents by not answering. Every script may run
// twice, since clients repeat those whose answer got lost.
package sim

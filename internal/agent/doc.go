// Package agent is what runs on a node: it starts the user's code once, watches it, keeps its log and
// remembers how it ended, whoever asks and whatever dies.
//
// It is one program without a daemon and without a port. A worker runs it over a shell with a command in its
// arguments, and reads one line of JSON from its standard output. All it knows is in the directory of the
// attempt, so that any worker can go on where another one stopped:
//
//	lock        locked by the supervisor for its whole life
//	claimed     the token of the attempt that this directory belongs to
//	launching   made just before the user's code is started; who finds it never starts anything here again
//	run.json    the process that runs now: pid, its start time, boot, supervisor
//	out.log     everything the user's code wrote; written by it directly, so that it survives the supervisor
//	out.log.gap what was dropped of it to keep it within its limit; the file keeps its length, so that offsets stay
//	out.log.marks  when what was written, and where setup and run begin
//	exit.json   how it ended; written once by the supervisor, after the last process of the run is gone
//	stop.json   somebody wants it to end
//	notice.json the machine will be taken; the user's code is told this path
//	lease       touched by each poll
//	mounts/     files that the user wants elsewhere; symbolic links lead here, and go when the run has ended
//	workdir/    where the user's code runs; workdir.sha256 names the bundle that it was unpacked from
//
// # Starting once
//
// The one who starts takes the lock, claims the directory and hands the lock on to a supervisor in a session of
// its own. The supervisor makes "launching" and then runs the user's setup and run, one after the other.
//
//	lock    launching  run.json     means
//	free    no         -            nothing ever ran: starting is safe (Absent)
//	held    no         -            about to start (Starting)
//	held    yes        yes          Setup or Running
//	free    yes        yes or no    the supervisor is dead: Unsupervised while a process of the run lives, else Lost
//
// The last row is final: Lost is never started again here, since it may have run. That no process lives is
// found out from /proc, by a mark in the environment that all processes of a run inherit and by the recorded
// process; a process that has taken on the pid of an earlier one is told apart by its start time.
//
// # What happens on failure
//
// Whoever starts may be killed at any point: another start finishes the work or finds it done. If the
// supervisor is killed the user's code runs on and its log stays whole, but its exit code is lost; to make that
// rare, the kernel is asked to spare the supervisor when memory is short. A full disk can not hide an exit, its
// room is kept free from the beginning. A stop is a file, so it is not lost with whoever asked for it; a stop
// before the start forbids the start. A log that would fill the disk loses its middle: the supervisor gives its room
// back while the code writes on, and after its death whoever polls does so. If a supervisor dies with a stop half done, the next stop ends it.
//
// Secret values reach the supervisor through a pipe and the user's code through its environment. They are in
// no file, no argument and no error.
package agent
